"""Export of the service's events to a file that `read_events` and `read_stored_events` read."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl

from model.errors import EventSourceError
from training.data.columns import STORED_EVENT_SCHEMA
from training.data.database_source import stream_stored_events

_RFC_3339 = "%Y-%m-%dT%H:%M:%S%.6fZ"


def write_left_out(events: pl.DataFrame, output: Path) -> None:
    """Write events of an import that were not stored to a CSV file that can be imported again."""
    output.parent.mkdir(parents=True, exist_ok=True)
    instants = pl.col("timestamp", "received_at").dt.strftime(_RFC_3339)
    events.with_columns(instants).write_csv(output)


def write_events(
    address: str,
    output: Path,
    until: int | None = None,
    *,
    on_chunk: Callable[[int], None] | None = None,
) -> int:
    """Write every event of a database into a file, in order of arrival.

    All columns are written, so that importing the file anywhere adds no event twice. Erased users
    are left out. Rows are streamed through temporary parts, and the file is replaced
    atomically.

    Args:
        address: a database URL.
        output: a file ending in `.parquet` or `.csv`, which decides the format.
        until: leave out events later than this instant (epoch microseconds, UTC).
        on_chunk: called with the number of rows of each part.

    Returns:
        The number of events.

    Raises:
        EventSourceError: if the database cannot be read, or the file's name ends otherwise.
    """
    if output.suffix not in (".parquet", ".csv"):
        raise EventSourceError(
            f"an export ends in .parquet or .csv, but this one in {output.suffix!r}; rename it"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        parts = [folder / "0.parquet"]
        STORED_EVENT_SCHEMA.to_frame().write_parquet(parts[0])
        rows = 0
        for events in stream_stored_events(address, until):
            parts.append(folder / f"{len(parts)}.parquet")
            events.write_parquet(parts[-1])
            rows += len(events)
            if on_chunk is not None:
                on_chunk(len(events))
        whole = folder / f"whole{output.suffix}"
        if output.suffix == ".csv":
            instants = pl.col("timestamp", "received_at").dt.strftime(_RFC_3339)
            pl.scan_parquet(parts, glob=False).with_columns(instants).sink_csv(whole)
        else:
            pl.scan_parquet(parts, glob=False).sink_parquet(whole)
        with whole.open("rb") as written:
            os.fsync(written.fileno())
        whole.replace(output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows
