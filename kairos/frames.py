"""Events and items from frames: Polars, pandas, or anything that exports Arrow."""

from pathlib import Path
from typing import Any, Protocol

import polars as pl

from model.errors import EventSourceError
from training.data.columns import RawTable, UnreadableSourceError, parse_events, parse_items
from training.data.sources import read_events, read_items


class ArrowFrame(Protocol):
    """A frame of another library, such as pandas, PyArrow or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Export the frame as a stream of Arrow."""


Frame = pl.DataFrame | pl.LazyFrame | ArrowFrame
Source = Frame | str | Path
"""A frame, or a location that `training.data.sources` reads: files, or a database URL."""

_ONE_USER = "history"
_CONVERSION_ERRORS = (ImportError, TypeError, ValueError, pl.exceptions.PolarsError)
"""PyArrow's own errors are of the second and the third class."""


def to_events(source: Source) -> pl.DataFrame:
    """Read events in `EVENT_SCHEMA` from `user_id`, `item_id`, `timestamp`[, `action`, `value`].

    Raises:
        EventSourceError: if an event is invalid; the message names row and column.
    """
    if isinstance(source, str | Path):
        return read_events(source)
    return _parse_events(_to_polars(source, "events"), "events")


def to_items(source: Source) -> pl.DataFrame:
    """Read items in `ITEM_SCHEMA` from `item_id`[, `title`, `categories`].

    Raises:
        EventSourceError: if an item is invalid; the message names row and column.
    """
    if isinstance(source, str | Path):
        return read_items(source)
    return parse_items(_name_rows(_to_polars(source, "items"), "items"))


def to_history(source: Frame) -> pl.DataFrame:
    """Read the events of one user, for which `item_id` and `timestamp` are enough.

    Raises:
        EventSourceError: if an event is invalid, or the events are of several users.
    """
    frame = _to_polars(source, "history")
    if "user_id" in frame.columns and (users := frame["user_id"].n_unique()) > 1:
        raise UnreadableSourceError(
            "history", "a history is of one user", f"this one is of {users}", "filter it"
        )
    return _parse_events(frame.with_columns(user_id=pl.lit(_ONE_USER)), "history")


def _parse_events(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    _require_zone(frame, name)
    return parse_events(_name_rows(frame, name))


def _require_zone(frame: pl.DataFrame, name: str) -> None:
    """Refuse a column without a time zone here: the remedy is not that of a file."""
    dtype = frame.schema.get("timestamp")
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        raise UnreadableSourceError(
            f"{name}, column 'timestamp'",
            "an instant needs an offset from UTC",
            "this column has no time zone",
            "say which one it is in, .dt.replace_time_zone('UTC') in Polars or "
            ".dt.tz_localize('UTC') in pandas",
        )


def _name_rows(frame: pl.DataFrame, name: str) -> RawTable:
    return RawTable(name, frame, locate=lambda row: f"row {row}")


def _to_polars(source: Frame, name: str) -> pl.DataFrame:
    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if not hasattr(source, "__arrow_c_stream__"):
        raise EventSourceError(
            f"{name} are a frame of Polars or pandas, or one that exports Arrow, but got "
            f"{type(source).__name__}; make it one, such as with polars.DataFrame(...)"
        )
    try:
        # Of pandas, missing texts and numbers are both NaN.
        is_pandas = type(source).__module__.partition(".")[0] == "pandas"
        return pl.from_pandas(source) if is_pandas else pl.DataFrame(source)
    except _CONVERSION_ERRORS as error:
        remedy = "pip install pyarrow" if isinstance(error, ImportError) else "give it one type"
        raise EventSourceError(
            f"{name}: a column has values of one type that Arrow has, but converting them "
            f"failed: {' '.join(str(error).split())}; {remedy}"
        ) from error
