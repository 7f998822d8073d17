"""Checks of a request's path and query before anything reads them.

Starlette decodes bytes that are no UTF-8 to U+FFFD, so that `/v1/users/caf%E9` would name another
user, and FastAPI ignores parameters that an operation does not have.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from fastapi import params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from starlette.types import Scope

from app.errors import UnprocessableError

_MOST_ERRORS = 20


def list_query_parameters(dependant: Dependant) -> tuple[str, ...]:
    """List the names of an operation's query parameters. Each takes a single value."""
    return tuple(
        field.alias
        for field in get_flat_params(dependant)
        if isinstance(field.field_info, params.Query)
    )


def require_utf8(scope: Scope) -> None:
    """Check that the percent-decoded path and query are UTF-8.

    Raises:
        UnprocessableError: if one of them is not.
    """
    for part, raw in (("path", scope.get("raw_path", b"")), ("query", scope["query_string"])):
        try:
            unquote_to_bytes(raw).decode()
        except UnicodeDecodeError as error:
            raise UnprocessableError(
                f"a {part} must be percent-encoded UTF-8, but its decoded byte {error.start} is "
                f"0x{error.object[error.start]:02X}; encode the text as UTF-8 first, so that "
                "'\u00e9' becomes %C3%A9"
            ) from error


def require_known_parameters(scope: Scope, known: Sequence[str]) -> None:
    """Check that the query names only known parameters, each at most once.

    Args:
        scope: of a request whose query is percent-encoded UTF-8.
        known: the names of the operation's parameters.

    Raises:
        RequestValidationError: if it names others, or one of them twice.
    """
    query = scope["query_string"]
    if not query:
        return
    counted = Counter(name for name, _ in parse_qsl(query.decode(), keep_blank_values=True))
    errors = [
        _build_error(name, count, known)
        for name, count in counted.items()
        if name not in known or count > 1
    ]
    if errors:
        raise RequestValidationError(errors[:_MOST_ERRORS])


def _build_error(name: str, count: int, known: Sequence[str]) -> dict[str, Any]:
    error = {"loc": ("query", name[:60]), "input": name}
    if name in known:
        message = f"this parameter is sent once, not {count} times"
        return {**error, "type": "repeated_parameter", "msg": message}
    if not known:
        message = "this operation has no query parameters"
        return {**error, "type": "unknown_parameter", "msg": message}
    names = ", ".join(f"'{one}'" for one in known)
    (nearest,) = difflib.get_close_matches(name[:60], known, n=1, cutoff=0.0)
    message = f"a query parameter is one of {names} (nearest: '{nearest}')"
    return {**error, "type": "unknown_parameter", "msg": message}
