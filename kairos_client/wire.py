"""How ids, instants and bodies travel."""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from kairos_client.errors import InvalidError

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LONGEST_ID = 256


def instant(at: datetime) -> str:
    """An instant as the service reads it: RFC 3339, in UTC.

    Raises:
        InvalidError: if `at` is naive, or leaves the years 1 to 9999 in UTC.
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


def address(template: str, *ids: str, ambiguous: Iterable[str] = ()) -> str:
    """A path with ids in the place of `{}`, each percent-encoded, `/` included.

    `ambiguous` are the suffixes by which the service would read the path as another operation.

    Raises:
        InvalidError: if an id is not one, or ends in an ambiguous suffix.
    """
    for given in ids:
        _require_id(given)
        for suffix in ambiguous:
            if given.endswith(suffix):
                raise InvalidError(
                    f"an id in this address must not end in {suffix!r}, which the service reads "
                    f"as another operation, but got {given!r}; ask for it in another way",
                    code="id_ambiguous",
                )
    return template.format(*map(_segment, ids))


def _require_id(given: str) -> None:
    if not 1 <= len(given) <= _LONGEST_ID or _UNPRINTABLE.search(given):
        raise InvalidError(
            f"an id is 1 to {_LONGEST_ID} characters, none of them a control character or a "
            f"surrogate, but got {given[:_LONGEST_ID]!r}; choose one that is",
            code="id_format",
        )


def _segment(given: str) -> str:
    # A lone dot is unreserved, but `/./` and `/../` are steps, not names.
    return given.replace(".", "%2E") if given in {".", ".."} else quote(given, safe="")


def query(parameters: Mapping[str, object]) -> str:
    """The query of an address, from the parameters that were given (are not None)."""
    given = [(name, _text(value)) for name, value in parameters.items() if value is not None]
    return f"?{urlencode(given, quote_via=quote)}" if given else ""


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return instant(value) if isinstance(value, datetime) else str(value)


def given(fields: Mapping[str, object]) -> dict[str, Any]:
    """The fields that were given (are not None), as JSON has them.

    What is not given is not sent: the service's defaults are its own, and one that does not know a
    field of a newer client yet works on with those that do not use it.
    """
    return {name: _plain(value) for name, value in fields.items() if value is not None}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [_plain(inner) for inner in value]
    return value


def body(value: object) -> bytes:
    """A value as UTF-8 JSON.

    Raises:
        InvalidError: if it is no JSON: NaN, infinities, lone surrogates, types JSON does not have.
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
