"""Conversion of raw columns to the event schema; errors name the row."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, final

import polars as pl

from model.clock import FIRST_INSTANT, LAST_INSTANT, MICROSECONDS_PER_SECOND
from model.errors import EventSourceError

EVENT_SCHEMA = pl.Schema(
    {
        "user_id": pl.String(),
        "item_id": pl.String(),
        "timestamp": pl.Datetime("us", "UTC"),
        "action": pl.String(),
        "value": pl.Float64(),
    }
)
STORED_EVENT_SCHEMA = pl.Schema(
    {
        **EVENT_SCHEMA,
        "event_id": pl.String(),
        "sender_event_id": pl.String(),
        "recommendation_id": pl.String(),
        "properties": pl.String(),
        "received_at": EVENT_SCHEMA["timestamp"],
    }
)
"""An event with all that the service stores of it; the further columns may be null. `properties` is
a JSON object as text."""
ITEM_SCHEMA = pl.Schema(
    {"item_id": pl.String(), "title": pl.String(), "categories": pl.List(pl.String())}
)

DEFAULT_ACTION = "event"

_INSTANT = EVENT_SCHEMA["timestamp"]

_MOST_SHOWN = 200
"""Characters of a cell in an error."""

# Milliseconds mistaken for seconds land far outside, at least if they were taken after 1978.
_EARLIEST_SECOND = FIRST_INSTANT // MICROSECONDS_PER_SECOND
_LATEST_SECOND = LAST_INSTANT // MICROSECONDS_PER_SECOND

_DATE_AND_TIME = r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?"
_RFC_3339 = _DATE_AND_TIME + r"([Zz]|[+-]\d{2}:?\d{2})$"


@final
class UnreadableSourceError(EventSourceError):
    """A source breaks a rule; the message also says what was found there.

    Attributes:
        record: the message without what was found. Records are kept and shown to others, and a
            cell, a line or a header may hold the id of a user who is erased later.
    """

    def __init__(self, place: str, rule: str, found: str, remedy: str) -> None:
        """Build the message.

        Args:
            place: the source, its row and column; empty if there is none. It quotes no content.
            found: what is there instead, as a clause such as "got 'x'".
        """
        start = f"{place}: {rule}" if place else rule
        super().__init__(f"{start}, but {found}; {remedy}")
        self.record = f"{start}; {remedy}"


@dataclass(frozen=True)
class RawTable:
    """A table as read from its source, and the location of its rows.

    Attributes:
        name: of the table in errors: a file path, or a database address without password.
        frame: the raw columns.
        locate: formats the location of a data row (0-based), such as "row 3" or "line 4".
    """

    name: str
    frame: pl.DataFrame
    locate: Callable[[int], str]


def parse_events(table: RawTable) -> pl.DataFrame:
    """Convert a table to `EVENT_SCHEMA`, in the table's order.

    Raises:
        EventSourceError: if a column is missing or a value is invalid.
    """
    _require_columns(table, "user_id", "item_id", "timestamp")
    columns = [
        _parse_ids(table, "user_id"),
        _parse_ids(table, "item_id"),
        _parse_instants(table, "timestamp"),
        _parse_texts(table, "action").replace("", None).fill_null(DEFAULT_ACTION),
        _parse_numbers(table, "value"),
    ]
    return pl.DataFrame(columns, schema=EVENT_SCHEMA)


def parse_stored_events(table: RawTable) -> pl.DataFrame:
    """Convert a table to `STORED_EVENT_SCHEMA`, in the table's order; all further columns may miss.

    Raises:
        EventSourceError: if a column is missing or a value is invalid.
    """
    further = [
        _parse_optional_ids(table, "event_id"),
        _parse_optional_ids(table, "sender_event_id"),
        _parse_optional_ids(table, "recommendation_id"),
        _parse_objects(table, "properties"),
        _parse_instants(table, "received_at", is_required=False),
    ]
    return parse_events(table).with_columns(further)


def parse_items(table: RawTable) -> pl.DataFrame:
    """Convert a table to `ITEM_SCHEMA`, in the table's order.

    Raises:
        EventSourceError: if `item_id` is missing, an id is invalid, or an item appears twice.
    """
    _require_columns(table, "item_id")
    item_ids = _parse_ids(table, "item_id")
    is_repeat = ~item_ids.is_first_distinct()
    _refuse_first_row(table, item_ids, is_repeat, "an item is listed once", "drop the repeat")
    columns = [item_ids, _parse_texts(table, "title"), _parse_categories(table, "categories")]
    return pl.DataFrame(columns, schema=ITEM_SCHEMA)


def _require_columns(table: RawTable, *names: str) -> None:
    for name in names:
        if name not in table.frame.columns:
            present = ", ".join(table.frame.columns) or "none"
            raise UnreadableSourceError(
                table.name,
                f"a column {name!r} is required",
                f"the columns are: {_shorten(present)}",
                "add it, or rename the one that holds it; commas separate .csv, tabs .tsv",
            )


def _refuse_first_row(
    table: RawTable, raw: pl.Series, is_bad: pl.Series, rule: str, remedy: str
) -> None:
    if is_bad.any():
        row = is_bad.to_list().index(True)
        raise UnreadableSourceError(
            f"{table.name}, {table.locate(row)}, column {raw.name!r}",
            rule,
            f"got {_format_value(raw[row])}",
            remedy,
        )


def _format_value(value: object) -> str:
    """Format a cell in one line."""
    return _shorten(repr(value.to_list() if isinstance(value, pl.Series) else value))


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _parse_ids(table: RawTable, column: str) -> pl.Series:
    raw, ids = table.frame[column], _parse_optional_ids(table, column)
    rule = "an id must not be empty"
    _refuse_first_row(table, raw, ids.is_null(), rule, "fill it in or drop the row")
    return ids


def _parse_optional_ids(table: RawTable, column: str) -> pl.Series:
    """Convert ids to text as it is: 007, 1e5 and NaN are ids like any other; empty ones to null."""
    if column not in table.frame.columns:
        return _fill_missing(table, column)
    raw = table.frame[column]
    if not (_is_text(raw) or raw.dtype.is_integer()):
        rule = "an id is text or a whole number"
        _refuse_first_row(table, raw, raw.is_not_null(), rule, "convert the column to text")
    return raw.cast(pl.String).replace("", None)


def _parse_instants(table: RawTable, column: str, *, is_required: bool = True) -> pl.Series:
    if column not in table.frame.columns:
        return _fill_missing(table, column)
    raw = table.frame[column]
    if isinstance(raw.dtype, pl.Datetime) and raw.dtype.time_zone is not None:
        instants = _convert_datetimes(raw, raw.dtype.time_unit)
        raw = raw.to_physical()  # errors show values out of range as ticks
    elif raw.dtype.is_numeric():
        instants = _convert_seconds(raw.cast(pl.Float64))
    elif _is_text(raw):
        texts = raw.cast(pl.String)
        seconds = _convert_seconds(texts.cast(pl.Float64, strict=False))
        instants = seconds.fill_null(_convert_rfc_3339(texts)) if seconds.has_nulls() else seconds
    else:
        instants = pl.Series(column, [None] * len(raw), dtype=_INSTANT)
    is_bad = instants.is_null()
    if not is_required:
        is_bad &= raw.is_not_null()
        if _is_text(raw):
            is_bad &= raw.cast(pl.String) != ""
    if is_bad.any():
        _refuse_first_row(table, raw, is_bad, *_explain_bad_time(raw.filter(is_bad)[0]))
    return instants


def _convert_datetimes(moments: pl.Series, unit: Literal["ms", "us", "ns"]) -> pl.Series:
    ticks_per_second = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[unit]
    ticks = moments.to_physical()
    inside = ticks.set(~_is_representable(ticks // ticks_per_second), None)
    in_unit = inside.cast(pl.Datetime(unit, "UTC"))
    return in_unit.dt.cast_time_unit("us")


def _convert_seconds(seconds: pl.Series) -> pl.Series:
    inside = seconds.set(~_is_representable(seconds), None)
    # Rounded apart from the whole seconds, the fraction is exact to the microsecond until 2242.
    whole = inside.floor()
    fraction = ((inside - whole) * 1e6).round()
    return (whole.cast(pl.Int64) * 1_000_000 + fraction.cast(pl.Int64)).cast(_INSTANT)


def _convert_rfc_3339(texts: pl.Series) -> pl.Series:
    regular = (
        texts.set(~texts.str.contains(_RFC_3339), None)
        .str.replace(r"[Zz]$", "+00:00")
        .str.replace(r"[Tt]", " ")
    )
    found = regular.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_unit="us", strict=False)
    return found.set(~_is_representable(found.dt.epoch("s")), None)


def _is_representable(seconds: pl.Series) -> pl.Series:
    return seconds.is_between(_EARLIEST_SECOND, _LATEST_SECOND)


def _explain_bad_time(value: object) -> tuple[str, str]:
    """Explain the rule that an invalid timestamp breaks, and the remedy."""
    if value is None:
        return "an event needs an instant", "fill it in or drop the row"
    is_naive_text = isinstance(value, str) and re.match(_DATE_AND_TIME + "$", value)
    if is_naive_text or isinstance(value, datetime):
        return "an instant needs an offset from UTC", "add one, such as Z or +02:00"
    if _is_number(value):
        rule = "an instant must be finite and within the years 1 to 9999"
        return rule, "check the unit: epoch times are in seconds"
    rule = "an instant is RFC 3339 with an offset, or epoch seconds, in the years 1 to 9999"
    return rule, "write it like 2026-01-31T09:30:00Z or 1769851800"


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _fill_missing(table: RawTable, column: str) -> pl.Series:
    return pl.Series(column, [None] * len(table.frame), dtype=STORED_EVENT_SCHEMA[column])


def _parse_objects(table: RawTable, column: str) -> pl.Series:
    """Convert JSON objects, which are text or the structs of a Parquet file, to text."""
    if column not in table.frame.columns:
        return _fill_missing(table, column)
    raw = table.frame[column]
    # Polars does not encode bytes: it panics.
    can_encode = isinstance(raw.dtype, pl.Struct) and not _holds_bytes(raw.dtype)
    texts = raw.struct.json_encode() if can_encode else raw
    if not _is_text(texts):
        _refuse_first_row(table, raw, raw.is_not_null(), _OBJECT, "convert the column to text")
        return _fill_missing(table, column)
    texts = texts.cast(pl.String).replace("", None).set(raw.is_null(), None)
    is_bad = texts.is_not_null() & ~pl.Series(
        [_is_object(text) for text in texts], dtype=pl.Boolean
    )
    _refuse_first_row(table, raw, is_bad, _OBJECT, 'write it like {"price": 3}')
    return texts.rename(column)


_OBJECT = "properties are one JSON object"


def _is_object(text: str | None) -> bool:
    return text is not None and read_object(text) is not None


def read_object(text: str) -> dict[str, Any] | None:
    """Parse one JSON object; None if the text is anything else, or nested too deeply to parse."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(constant: str) -> None:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(constant)


def _parse_texts(table: RawTable, column: str) -> pl.Series:
    if column not in table.frame.columns:
        return pl.Series(column, [None] * len(table.frame), dtype=pl.String)
    raw = table.frame[column]
    if not _has_text_form(raw.dtype):
        rule = f"{column} must be text"
        _refuse_first_row(table, raw, raw.is_not_null(), rule, "convert the column to text")
        return pl.Series(column, [None] * len(raw), dtype=pl.String)
    return raw.cast(pl.String)


def _parse_numbers(table: RawTable, column: str) -> pl.Series:
    if column not in table.frame.columns:
        return pl.Series(column, [None] * len(table.frame), dtype=pl.Float64)
    raw = table.frame[column]
    if _is_text(raw):
        numbers = raw.cast(pl.String).cast(pl.Float64, strict=False)
    elif raw.dtype.is_numeric() or raw.dtype == pl.Boolean:
        numbers = raw.cast(pl.Float64, strict=False)
    else:
        numbers = pl.Series(column, [None] * len(raw), dtype=pl.Float64)
    is_bad = raw.is_not_null() & ~numbers.is_finite().fill_null(value=False)
    rule = "a value is a finite number"
    _refuse_first_row(table, raw, is_bad, rule, "correct it, or leave it empty")
    return numbers


def _parse_categories(table: RawTable, column: str) -> pl.Series:
    if column not in table.frame.columns:
        return pl.Series(column, [[]] * len(table.frame), dtype=ITEM_SCHEMA[column])
    raw = table.frame[column]
    if _is_text(raw):
        raw = raw.cast(pl.String).replace("", None).str.split("|")
    elif not (isinstance(raw.dtype, pl.List) and _has_text_form(raw.dtype.inner)):
        rule = "categories are a list of texts, or one text joined by |"
        _refuse_first_row(table, raw, raw.is_not_null(), rule, "convert the column")
        return pl.Series(column, [[]] * len(raw), dtype=ITEM_SCHEMA[column])
    nothing = pl.Series([[]], dtype=ITEM_SCHEMA[column])
    return raw.cast(ITEM_SCHEMA[column]).fill_null(nothing)


def _is_text(column: pl.Series) -> bool:
    return column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)


def _has_text_form(dtype: pl.DataType | pl.datatypes.DataTypeClass) -> bool:
    """Return whether a cast gives each value's text: of others it fails, or gives nobody's text."""
    return not (dtype.is_nested() or dtype in (pl.Binary, pl.Duration, pl.Object))


def _holds_bytes(dtype: pl.DataType | pl.datatypes.DataTypeClass) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_bytes(dtype.inner)
    return dtype in (pl.Binary, pl.Object)
