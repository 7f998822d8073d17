"""Encoding of ids, instants, query strings and JSON bodies."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from kairos_client.errors import InvalidError

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_ID_LENGTH = 256


def format_instant(at: datetime) -> str:
    """Format an instant as RFC 3339 in UTC.

    Raises:
        InvalidError: if `at` is naive, or outside the years 1 to 9999 in UTC.
    """
    if at.utcoffset() is None:
        raise InvalidError(
            f"an instant needs an offset from UTC, but got {at.isoformat()}; give it a tzinfo, "
            "such as datetime.UTC or zoneinfo.ZoneInfo('Europe/Berlin')",
            code="instant_naive",
        )
    try:
        return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError as error:
        raise InvalidError(
            f"an instant lies within the years 1 to 9999 (UTC), but got {at.isoformat()}; "
            "choose one that does",
            code="instant_range",
        ) from error


def format_path(template: str, *ids: str) -> str:
    """Replace each `{}` of a path by an id, percent-encoded including `/`.

    Raises:
        InvalidError: if an id is malformed.
    """
    for value in ids:
        _require_id(value)
    return template.format(*map(_encode_segment, ids))


def _require_id(value: str) -> None:
    if not 1 <= len(value) <= _MAX_ID_LENGTH or _UNPRINTABLE.search(value):
        raise InvalidError(
            f"an id is 1 to {_MAX_ID_LENGTH} characters, none of them a control character or a "
            f"surrogate, but got {value[:_MAX_ID_LENGTH]!r}; choose one that is",
            code="id_format",
        )


def _encode_segment(value: str) -> str:
    # quote() leaves dots as they are, but `/./` and `/../` are relative path segments.
    return value.replace(".", "%2E") if value in {".", ".."} else quote(value, safe="")


def encode_query(parameters: Mapping[str, object]) -> str:
    """Encode the parameters that are not None as a query string, with its `?`."""
    given = [
        (name, _encode_value(value)) for name, value in parameters.items() if value is not None
    ]
    return f"?{urlencode(given, quote_via=quote)}" if given else ""


def _encode_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return format_instant(value) if isinstance(value, datetime) else str(value)


def to_json_fields(fields: Mapping[str, object]) -> dict[str, Any]:
    """Convert the fields that are not None, with instants and iterables as JSON values.

    Omitted fields are not sent: the service applies its own defaults, and a service older than
    this client accepts requests that leave out the fields it does not have yet.
    """
    return {name: _to_json_value(value) for name, value in fields.items() if value is not None}


def _to_json_value(value: object) -> object:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [_to_json_value(inner) for inner in value]
    return value


def encode_json(value: object) -> bytes:
    """Encode a value as UTF-8 JSON.

    Raises:
        InvalidError: if JSON cannot hold it: NaN, infinities, lone surrogates, other types.
    """
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidError(
            "a body is JSON: text, finite numbers, booleans, null, lists and objects of them, "
            f"but {error}; send only such values",
            code="not_json",
        ) from error
