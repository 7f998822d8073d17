"""Latency of every GET operation on a small database and on one with ten times the rows.

    python benchmarks/speed/reads.py            # after `make demo` has trained once
    python benchmarks/speed/reads.py --events 100000 --store STORE --database postgresql://...

Fills a database with bulk SQL: events of many users, of whom one has a twentieth and one item a
tenth of all events; impressions, a tenth as many as events, and clicks on two fifths of them;
items; changes of the served models; training runs. Asks each operation repeatedly over one
connection, and writes medians, 99th percentiles and the ratio of the medians to
benchmarks/speed/results/reads_sqlite.json, or reads_postgresql.json. An operation whose cost does
not grow has a ratio near 1.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import text

from app.db.engine import WRITES, open_engine
from app.keys.issuing import create_key
from migrations.run import downgrade, upgrade
from model.clock import MICROSECONDS_PER_DAY, now
from model.store.store import BundleStore

RESULTS = Path(__file__).parent / "results"
USERS_SHARE, IMPRESSIONS_SHARE, ITEMS_SHARE = 100, 10, 100
"""Events per user, per impression and per item."""
CHANGES_SHARE = 1000
SPAN = 330 * MICROSECONDS_PER_DAY


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    sizes = (arguments.events // 10, arguments.events)
    store = BundleStore(arguments.store)
    paths = list_paths(store.read_current() or "")
    measured = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="kairos-reads-") as directory:
            url = arguments.database or f"sqlite:///{directory}/kairos.db"
            fill(url, size, str(store.read_current()))
            measured[size] = measure(url, Path(directory), store.root, paths, arguments.requests)
    record = {
        "command": f"python benchmarks/speed/reads.py --events {arguments.events}",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "database": "postgresql" if arguments.database else "sqlite",
        "events": sizes,
        "operations": {
            path: {
                "p50_ms": [round(measured[size][path][0], 2) for size in sizes],
                "p99_ms": [round(measured[size][path][1], 2) for size in sizes],
                "ratio": round(measured[sizes[1]][path][0] / measured[sizes[0]][path][0], 2),
            }
            for path in paths
        },
    }
    results = RESULTS / f"reads_{record['database']}.json"
    results.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def list_paths(version: str) -> list[str]:
    """List the paths of the reads, at their default and their largest size."""
    return [
        f"/v1/models/{quote(version)}",
        "/v1/models",
        "/v1/models/traffic",
        "/v1/models/changes",
        "/v1/training-runs",
        "/v1/users",
        "/v1/users?limit=500",
        "/v1/users?prefix=u1",
        "/v1/users?prefix=nobody",
        "/v1/users/heavy?limit=1000",
        "/v1/users/u00000101",
        "/v1/users/heavy/recommendations",
        "/v1/items?limit=500",
        "/v1/items?q=title%207",
        "/v1/items?q=nowhere",
        "/v1/items/i00000007",
        "/v1/items/i00000007/popularity",
        "/v1/items/heavy/popularity",
        "/v1/items/heavy/popularity?step=month",
        "/v1/caller",
        "/health/ready",
        "/metrics",
        "/v1/metrics",
    ]


def fill(database_url: str, events: int, version: str) -> None:
    """Fill a database, in place of what an earlier measurement left in it."""
    upgrade(database_url)
    downgrade(database_url, "base")
    upgrade(database_url)
    engine = open_engine(database_url)
    is_sqlite = engine.dialect.name == "sqlite"
    with engine.execution_options(**WRITES).connect() as connection:
        if is_sqlite:
            # A copy that a crash may lose is built several times as fast.
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA synchronous=OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        for statement in _list_fillings(is_sqlite, events, version):
            connection.execute(text(statement))
        connection.commit()
    with engine.connect() as connection:
        connection.execute(text("ANALYZE"))
        connection.commit()
    engine.dispose()


def _list_fillings(is_sqlite: bool, events: int, version: str) -> list[str]:
    def number(rows: int) -> str:
        if not is_sqlite:
            return f"generate_series(0, {rows - 1}) AS numbers(n)"
        return (
            "(WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count "
            f"WHERE n < {rows - 1}) SELECT n FROM count) AS numbers"
        )

    def pad(letter: str, expression: str) -> str:
        if is_sqlite:
            return f"printf('{letter}%08d', {expression})"
        return f"'{letter}' || lpad(CAST({expression} AS text), 8, '0')"

    first_at = now() - SPAN
    users, items = events // USERS_SHARE, events // ITEMS_SHARE
    impressions, changes = events // IMPRESSIONS_SHARE, max(events // CHANGES_SHARE, 10)
    user = f"CASE WHEN n % 20 = 1 THEN 'heavy' ELSE {pad('u', f'(n * 7919) % {users}')} END"
    item = f"CASE WHEN n % 10 = 0 THEN 'heavy' ELSE {pad('i', f'(n * 104729) % {items}')} END"
    at = f"{first_at} + n * {SPAN // events}"
    shown_at = f"{first_at} + n * {SPAN // impressions}"
    return [
        "INSERT INTO items (item_id, title, search_title, categories, updated_at) SELECT "
        f"{pad('i', 'n')}, 'Title ' || n, 'title ' || n, '[]', 1 FROM {number(items)}",
        "INSERT INTO recommendations (recommendation_id, user_id, model_version, at, item_ids) "
        f"SELECT {pad('r', 'n')}, {pad('u', f'(n * 7919) % {users}')}, '{version}', {shown_at}, "
        f'\'["i00000001", "i00000002"]\' FROM {number(impressions)}',
        "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) SELECT "
        f"{pad('e', 'n')}, {user}, {item}, 'view', {at}, {at} FROM {number(events)}",
        "INSERT INTO events (event_id, user_id, item_id, action, at, received_at, "
        f"recommendation_id) SELECT {pad('c', 'n')}, {pad('u', f'(n * 7919) % {users}')}, "
        f"'i00000001', 'click', {shown_at}, {shown_at}, {pad('r', 'n')} "
        f"FROM {number(impressions)} WHERE n % 5 < 2",
        "INSERT INTO model_changes (at, actor, change, version, previous_version) SELECT "
        f"n, 'nobody', 'activate', {pad('v', 'n')}, {pad('v', 'n - 1')} FROM {number(changes)}",
        "INSERT INTO training_runs (run_id, started_at, finished_at, result, report) SELECT "
        f"{pad('t', 'n')}, n, n + 1, 'promoted', NULL FROM {number(changes)}",
    ]


def measure(
    database_url: str, directory: Path, store: Path, paths: list[str], requests: int
) -> dict[str, tuple[float, float]]:
    """Measure the median and the 99th percentile of each path, in milliseconds."""
    key = create_key(database_url, "benchmark", "admin").secret
    with _run_service(directory, store, database_url) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        return {path: _measure_path(connection, key, path, requests) for path in paths}


@contextmanager
def _run_service(directory: Path, store: Path, database_url: str) -> Iterator[int]:
    """Run the service on a copy of the store; yield its port."""
    copy = directory / "bundles"
    shutil.copytree(store, copy)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    environment = os.environ | {
        "KAIROS_BUNDLE_STORE": str(copy),
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_PORT": str(port),
        "KAIROS_LOG_LEVEL": "warning",
    }
    service = subprocess.Popen([sys.executable, "-m", "app.server"], env=environment)
    try:
        _wait_until_ready(port)
        yield port
    finally:
        service.terminate()
        service.wait(30)


def _wait_until_ready(port: int) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready").read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the service must be ready within 60 s, but is not; run kairos doctor")


def _measure_path(
    connection: http.client.HTTPConnection, key: str, path: str, requests: int
) -> tuple[float, float]:
    seconds: list[float] = []
    for _ in range(requests + 1):
        began = time.perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        response.read()
        seconds.append(time.perf_counter() - began)
        if response.status != 200:
            print(f"{path}: status {response.status}")
            break
        if sum(seconds) > 30:
            break
    measured = sorted(seconds[1:] or seconds)
    figures = (
        statistics.median(measured) * 1e3,
        measured[min(int(len(measured) * 0.99), len(measured) - 1)] * 1e3,
    )
    print(f"{path}: p50 {figures[0]:.2f} ms, p99 {figures[1]:.2f} ms", flush=True)
    return figures


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("var/bundles"))
    parser.add_argument("--database", help="an empty PostgreSQL database; default: SQLite")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=100)
    return parser.parse_args()


if __name__ == "__main__":
    main()
