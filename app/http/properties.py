"""Free-form properties of events and items, within bounds."""

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

MAX_BYTES = 16 * 1024
_MAX_DEPTH = 16


def _require_bounds(properties: dict[str, Any]) -> dict[str, Any]:
    unstorable = PydanticCustomError(
        "properties_unstorable",
        "properties nest at most {depth} deep and hold no NUL characters",
        {"depth": _MAX_DEPTH},
    )
    # The size first: it bounds the work of the second check.
    try:
        size = len(orjson.dumps(properties))
    except orjson.JSONEncodeError as error:
        raise unstorable from error
    if size > MAX_BYTES:
        raise PydanticCustomError(
            "properties_too_large",
            "properties take at most {bytes} bytes as JSON",
            {"bytes": MAX_BYTES},
        )
    if not _is_storable(properties, _MAX_DEPTH):
        raise unstorable
    return properties


def _is_storable(value: object, depth: int) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    if not isinstance(value, dict | list):
        return True
    if depth == 0:
        return False
    if isinstance(value, dict):
        return all(
            _is_storable(key, depth) and _is_storable(inner, depth - 1)
            for key, inner in value.items()
        )
    return all(_is_storable(inner, depth - 1) for inner in value)


Properties = Annotated[dict[str, Any], AfterValidator(_require_bounds)]
"""A JSON object of at most 16 KiB, nested at most 16 deep."""
