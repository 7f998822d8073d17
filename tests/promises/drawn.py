"""Requests that Schemathesis draws from the API's description, sent to an application here."""

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

from tests.promises.asked import Answer, Asked

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
"""What Schemathesis holds against the description."""


def drawing(description: Mapping[str, Any]) -> OpenApiSchema:
    """What draws requests by a description; keys are left to us, or it would invent some."""
    keyless = copy.deepcopy(dict(description))
    for operations in keyless["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)
    return schemathesis.openapi.from_dict(keyless)


def as_sent(case: Case) -> tuple[Asked, requests.PreparedRequest]:
    """A drawn request as it stands on the wire."""
    told = case.as_transport_kwargs(base_url="http://localhost")
    prepared = requests.Request(
        **{name: told[name] for name in told if name != "timeout"}
    ).prepare()
    context = urlsplit(str(prepared.url))
    target = context.path + (f"?{parts.query}" if context.query else "")
    headers = tuple(
        (_bytes(name), _bytes(value))
        for name, value in prepared.headers.items()
        if name.lower() not in {"host", "connection"}
    )
    body = prepared.body or b""
    content = body.encode() if isinstance(body, str) else bytes(body)
    return Asked(str(prepared.method), target.encode("ascii"), headers, content), prepared


def among(case: Case, known: Mapping[str, Sequence[str]], random: Random) -> Case:
    """A drawn request that names only known things: users, items, versions."""

    def replaced(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: replaced(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [replaced(inner, name) for inner in value]
        for kind, names in known.items():
            if isinstance(value, str) and kind in name.removesuffix("s"):
                return random.choice(names)
        return value

    case.path_parameters = replaced(case.path_parameters, "")
    if case.body is not NOT_SET:
        case.body = replaced(case.body, "")
    return case


def as_schemathesis_reads(answer: Answer, request: requests.PreparedRequest) -> Response:
    """An answer as Schemathesis judges it."""
    return Response(
        status_code=answer.status,
        headers={name: [value] for name, value in answer.headers.items()},
        content=answer.content,
        request=request,
        elapsed=0.0,
        verify=False,
        encoding="utf-8",
    )


def _bytes(text: str | bytes) -> bytes:
    return text.encode("latin-1") if isinstance(text, str) else text
