"""What stored events take: bytes and seconds an event, in SQLite and PostgreSQL.

    python -m benchmarks.scale.event_store --events 1000000

Imports events as `kairos import-events` does: users have 100 events each, of 5,000 items, with ids
of up to seven characters. Bytes are those of the whole database, indexes and log included, over
those of an empty one. Writes benchmarks/scale/results/event_store.json.
"""

import argparse
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import psutil
from sqlalchemy import create_engine, text

from app.imports import import_events
from benchmarks.speed.serving.databases import DatabaseKind, run_database
from migrations.run import upgrade
from training.data.sources import read_stored_events

RESULTS = Path(__file__).parent / "results" / "event_store.json"
ITEMS, EVENTS_OF_USER, DAYS = 5_000, 100, 180


def main() -> None:
    """Measure both databases, and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    arguments = parser.parse_args()
    record: dict[str, object] = {"cores": psutil.cpu_count(), "events": arguments.events}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "events.parquet"
        _draw_events(arguments.events).write_parquet(file)
        events = read_stored_events(file)
        for kind in ("sqlite", "postgresql"):
            with run_database(kind, Path(directory)) as url:
                record[kind] = _measure(kind, url, events, Path(directory))
                print(kind, record[kind], flush=True)
    record["recorded_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")


def _draw_events(count: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    until = int(time.time()) - 86_400
    seconds = until - rng.integers(0, DAYS * 86_400, count)
    return pl.DataFrame(
        {
            "user_id": [f"u{number}" for number in rng.integers(0, count // EVENTS_OF_USER, count)],
            "item_id": [f"i{number}" for number in rng.integers(0, ITEMS, count)],
            "timestamp": pl.Series(seconds * 1_000_000).cast(pl.Datetime("us", "UTC")),
            "action": ["view"] * count,
        }
    )


def _measure(
    kind: DatabaseKind, url: str, events: pl.DataFrame, directory: Path
) -> dict[str, float]:
    upgrade(url)
    empty = _measure_size(kind, url, directory)
    began = time.perf_counter()
    imported = import_events(url, events)
    seconds = time.perf_counter() - began
    size = _measure_size(kind, url, directory)
    return {
        "stored": imported.stored,
        "seconds": round(seconds, 1),
        "events_per_second": round(imported.stored / seconds),
        "bytes_per_event": round((size - empty) / imported.stored, 1),
    }


def _measure_size(kind: DatabaseKind, url: str, directory: Path) -> int:
    if kind == "sqlite":
        return sum(file.stat().st_size for file in directory.glob("kairos.db*"))
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as connection:
        size = connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
    engine.dispose()
    return int(size)


if __name__ == "__main__":
    main()
