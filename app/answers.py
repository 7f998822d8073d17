"""Answers as JSON, written by orjson straight from dataclasses."""

from typing import Any

import orjson
from fastapi import Response


class JsonAnswer(Response):
    """A JSON answer. Returned by a route as it is, it skips FastAPI's second validation."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as UTF-8 JSON."""
        return orjson.dumps(content)
