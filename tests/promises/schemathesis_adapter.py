"""Requests that Schemathesis generates from the API's description, for the ASGI client."""

import copy
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any
from urllib.parse import urlsplit

import requests
import schemathesis
from schemathesis import Case, checks
from schemathesis.core import NOT_SET
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.schemas import OpenApiSchema

from tests.promises.asgi_client import RawRequest, RawResponse

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
"""The checks of Schemathesis that every response must pass."""


def build_schema(description: Mapping[str, Any]) -> OpenApiSchema:
    """Build the generator of requests, without security: the ASGI client adds the key."""
    keyless = copy.deepcopy(dict(description))
    for operations in keyless["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    return schemathesis.openapi.from_dict(keyless)


def to_raw_request(case: Case) -> tuple[RawRequest, requests.PreparedRequest]:
    """Serialize a generated request."""
    arguments = case.as_transport_kwargs(base_url="http://localhost")
    prepared = requests.Request(
        **{name: arguments[name] for name in arguments if name != "timeout"}
    ).prepare()
    url = urlsplit(str(prepared.url))
    target = url.path + (f"?{url.query}" if url.query else "")
    headers = tuple(
        (_to_bytes(name), _to_bytes(value))
        for name, value in prepared.headers.items()
        # The last one is random: the same seed must send the same bytes.
        if name.lower() not in {"host", "connection", "x-schemathesis-testcaseid"}
    )
    body = prepared.body or b""
    content = body.encode() if isinstance(body, str) else bytes(body)
    return RawRequest(str(prepared.method), target.encode("ascii"), headers, content), prepared


def use_known_ids(case: Case, known: Mapping[str, Sequence[str]], random: Random) -> Case:
    """Replace the ids in a generated request by those of known users, items and versions."""

    def replace(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: replace(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [replace(inner, name) for inner in value]
        for kind, names in known.items():
            if isinstance(value, str) and kind in name.removesuffix("s"):
                return random.choice(names)
        return value

    case.path_parameters = replace(case.path_parameters, "")
    if case.body is not NOT_SET:
        case.body = replace(case.body, "")
    return case


def to_schemathesis_response(response: RawResponse, request: requests.PreparedRequest) -> Response:
    """Convert a response to the type that the checks of Schemathesis take."""
    return Response(
        status_code=response.status,
        headers={name: [value] for name, value in response.headers.items()},
        content=response.content,
        request=request,
        elapsed=0.0,
        verify=False,
        encoding="utf-8",
    )


def _to_bytes(text: str | bytes) -> bytes:
    return text.encode("latin-1") if isinstance(text, str) else text
