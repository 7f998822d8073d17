"""Export of the service's events to a Parquet file that `read_events` reads."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl

from training.data.columns import EVENT_SCHEMA
from training.data.database_source import stream_database_events


def write_events(
    address: str,
    output: Path,
    until: int | None = None,
    *,
    on_chunk: Callable[[int], None] | None = None,
) -> int:
    """Write every event of a database into a Parquet file, in order of arrival.

    Erased users are left out. Rows are streamed through temporary parts, and the file is replaced
    atomically.

    Args:
        address: a database URL.
        until: leave out events later than this instant (epoch microseconds, UTC).
        on_chunk: called with the number of rows of each part.

    Returns:
        The number of events.

    Raises:
        EventSourceError: if the database cannot be read.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        parts = [folder / "0.parquet"]
        EVENT_SCHEMA.to_frame().write_parquet(parts[0])
        rows = 0
        for events in stream_database_events(address, until):
            parts.append(folder / f"{len(parts)}.parquet")
            events.write_parquet(parts[-1])
            rows += len(events)
            if on_chunk is not None:
                on_chunk(len(events))
        whole = folder / "whole.parquet"
        pl.scan_parquet(parts, glob=False).sink_parquet(whole)
        with whole.open("rb") as written:
            os.fsync(written.fileno())
        whole.replace(output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows
