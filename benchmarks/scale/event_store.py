"""What stored events take: bytes and seconds an event, in SQLite and PostgreSQL.

    python -m benchmarks.scale.event_store --events 1000000

Imports events as `kairos import-events` does: users have 100 events each, of 5,000 items, with ids
of up to seven characters. Then stores impressions of ten items, as the service does. Bytes are
those of the whole database, indexes and log included, over those before. Writes
benchmarks/scale/results/event_store.json.
"""

import argparse
import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import numpy as np
import polars as pl
import psutil
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.imports import import_events
from app.recommendations.repository import ImpressionRepository
from app.serving.impressions import Impression
from benchmarks.speed.serving.databases import DatabaseKind, run_database
from migrations.run import upgrade
from training.data.sources import read_stored_events

RESULTS = Path(__file__).parent / "results" / "event_store.json"
ITEMS, EVENTS_OF_USER, DAYS = 5_000, 100, 180
BATCH = 500


def main() -> None:
    """Measure both databases, and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--events", type=int, default=1_000_000, help="0 to keep what is recorded of them"
    )
    parser.add_argument("--impressions", type=int, default=100_000)
    arguments = parser.parse_args()
    record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    record |= {"cores": psutil.cpu_count(), "impressions": arguments.impressions}
    if arguments.events:
        record["events"] = arguments.events
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "events.parquet"
        _draw_events(arguments.events or 1_000).write_parquet(file)
        events = read_stored_events(file)
        for kind in ("sqlite", "postgresql"):
            with run_database(kind, Path(directory)) as url:
                measured = _measure(kind, url, events, Path(directory))
                own = measured if arguments.events else record.get(kind, {})
                size = _measure_impressions(kind, url, arguments.impressions, Path(directory))
                record[kind] = own | {"bytes_per_impression": size}
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


def _measure_impressions(kind: DatabaseKind, url: str, count: int, directory: Path) -> float:
    before = _measure_size(kind, url, directory)
    rng = np.random.default_rng(1)
    at = int(time.time() * 1e6)
    engine = open_engine(url)
    for _ in range(0, count, BATCH):
        impressions = [
            Impression(
                recommendation_id=str(uuid4()),
                user_id=f"u{rng.integers(0, 10_000)}",
                model_version="20260101T000000Z-0123456789ab",
                at=at,
                fallback=None,
                item_ids=tuple(f"i{item}" for item in rng.integers(0, ITEMS, 10)),
            )
            for _ in range(BATCH)
        ]
        with Session(engine.execution_options(**WRITES)) as session, session.begin():
            ImpressionRepository(session).add(impressions)
    engine.dispose()
    return round((_measure_size(kind, url, directory) - before) / count, 1)


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
