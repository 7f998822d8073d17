"""What the headers of a request say of its cost: who sends it, and how large it is."""

import re

from starlette.requests import Request
from starlette.types import Scope

from app.auth.loopback import get_client_network

_KEY_ID = re.compile(rb"kairos_([0-9a-f]{16})_")
_MOST_DIGITS = 18
_HEADERS = frozenset({b"authorization", b"x-api-key"})


def identify_caller(scope: Scope) -> str:
    """Return the id of the key that a request presents, or the network of one without a key.

    The key is not verified: before the request is authorized, the id is a claim.
    """
    for name, value in scope["headers"]:
        if name in _HEADERS and (match := _KEY_ID.search(value)) is not None:
            return match.group(1).decode()
    return get_client_network(Request(scope))


def get_body_size(scope: Scope) -> int:
    """Return the declared size of the body in bytes; 0 if it is not declared or not a number."""
    for name, value in scope["headers"]:
        # Python refuses to convert thousands of digits; nothing longer passes the limit of a body.
        if name == b"content-length" and value.isdigit():
            return int(value[:_MOST_DIGITS])
    return 0
