"""Answers as JSON, written by orjson straight from dataclasses."""

from typing import Any

import orjson
from fastapi import FastAPI, Response


class JsonResponse(Response):
    """A JSON answer. Returned by a route as it is, it skips FastAPI's second validation."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as UTF-8 JSON."""
        return orjson.dumps(content)


_SAYS_NOTHING = "Successful Response"


def describe_responses(app: FastAPI) -> None:
    """Say in the API's description what each answer is, not only that there is one."""
    derive = app.openapi

    def openapi() -> dict[str, Any]:
        description = derive()
        schemas = description["components"]["schemas"]
        for operations in description["paths"].values():
            for operation in operations.values():
                for response in operation["responses"].values():
                    if response["description"] == _SAYS_NOTHING:
                        response["description"] = _told(response, schemas)
        return description

    app.openapi = openapi  # type: ignore[method-assign]


def _told(response: dict[str, Any], schemas: dict[str, Any]) -> str:
    """The first line that the schema of an answer says of itself."""
    content = response.get("content")
    if content is None:
        return "It is done; there is nothing to tell."
    (media_type,) = content.values()
    name = media_type["schema"].get("$ref", "").rpartition("/")[2]
    return str(schemas[name]["description"]).partition("\n\n")[0] if name else "As plain text."
