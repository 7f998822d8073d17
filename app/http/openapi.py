"""The OpenAPI description: responses, problems and authentication that FastAPI does not derive."""

from typing import Any

import orjson
from fastapi import FastAPI

from app.http.problems import MEDIA_TYPE, Problem
from app.http.routes import ROLE_EXTENSION

_FASTAPI_DEFAULT = "Successful Response"
_CHALLENGE = {
    "WWW-Authenticate": {
        "description": "The scheme of the key: `Bearer`.",
        "schema": {"type": "string"},
    }
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer"},
    }
}


def complete_openapi(app: FastAPI) -> None:
    """Extend the description that `app.openapi()` returns."""
    derive = app.openapi
    is_complete = False

    def openapi() -> dict[str, Any]:
        nonlocal is_complete
        description = derive()
        # FastAPI derives the description once and returns the same object from then on.
        if not is_complete:
            _describe_responses(description)
            _add_problem_schema(description)
            _describe_authentication(description)
            is_complete = True
        return description

    app.openapi = openapi  # type: ignore[method-assign]


def serialize_openapi(app: FastAPI) -> bytes:
    """Serialize the description of an application as JSON, indented for review line by line."""
    return orjson.dumps(app.openapi(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _describe_responses(description: dict[str, Any]) -> None:
    """Replace FastAPI's generic description of each response by that of its schema."""
    schemas = description["components"]["schemas"]
    for operations in description["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                if response["description"] == _FASTAPI_DEFAULT:
                    response["description"] = _summarize_response(response, schemas)


def _summarize_response(response: dict[str, Any], schemas: dict[str, Any]) -> str:
    content = response.get("content")
    if content is None:
        return "Success, without a body."
    (media_type,) = content.values()
    name = media_type["schema"].get("$ref", "").rpartition("/")[2]
    return str(schemas[name]["description"]).partition("\n\n")[0] if name else "Plain text."


def _add_problem_schema(description: dict[str, Any]) -> None:
    """Add the schema of problem documents, which no route returns by itself."""
    schemas = description["components"]["schemas"]
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    description["components"]["schemas"] = dict(sorted(schemas.items()))


def _describe_authentication(description: dict[str, Any]) -> None:
    """Add the key scheme, and the refusals of every operation that requires a role."""
    description["components"].setdefault("securitySchemes", {})["ApiKey"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key; the header X-API-Key is accepted, too. Until a first key is "
        "created, the local token of the process takes its place on the machine itself.",
    }
    for operations in description["paths"].values():
        for operation in operations.values():
            if ROLE_EXTENSION in operation:
                _describe_role(operation)


def _describe_role(operation: dict[str, Any]) -> None:
    operation["security"] = [{"ApiKey": []}]
    roles = " or ".join(f"'{role}'" for role in dict.fromkeys((operation[ROLE_EXTENSION], "admin")))
    refusals = {
        "401": _build_refusal("`unauthenticated`: a valid API key is needed", _CHALLENGE),
        "403": _build_refusal(f"`forbidden`: the role of the key must be {roles}"),
        "429": _build_refusal("`rate_limited`: too many requests with this key", _RETRY_AFTER),
    }
    own = operation["responses"].get("429")
    if own is not None:
        refusals["429"]["description"] += "; " + own["description"]
    operation["responses"] = dict(sorted({**operation["responses"], **refusals}.items()))


def _build_refusal(description: str, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    response: dict[str, Any] = {"description": description, "content": {MEDIA_TYPE: problem}}
    return response if headers is None else {**response, "headers": headers}
