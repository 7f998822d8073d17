"""Latency of POST /v1/recommendations: 100 inline events, one worker, a publish halfway.

    python benchmarks/speed/serving.py            # after `make demo` has trained once

Starts the real service on a copy of the demo's bundle store, sends 10,000 requests over one
connection and 10,000 over eight, publishes a second version halfway through each, and writes
benchmarks/speed/results/serving.json. The client shares the machine with the service.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import orjson
from load import Load, send

from model.bundle.writing import write_bundle
from model.clock import to_datetime
from model.store.store import BundleStore
from training.data.dataset import Dataset
from training.data.sources import read_events

RESULTS = Path(__file__).parent / "results" / "serving.json"
EVENTS_PER_REQUEST = 100


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    if arguments.publish_into is not None:
        _publish_on_eof(BundleStore(arguments.publish_into))
        return
    bodies = _build_bodies(arguments.events)
    record: dict[str, object] = {
        "command": "python benchmarks/speed/serving.py",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "requests": arguments.requests,
        "events_per_request": EVENTS_PER_REQUEST,
    }
    with tempfile.TemporaryDirectory() as directory:
        store = BundleStore(Path(directory) / "bundles")
        shutil.copytree(arguments.store, store.root)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        service = _start(directory, store.root, port)
        try:
            send(port, bodies, requests=500, connections=2)
            for connections in (1, 8):
                load = _send_and_publish(store, port, bodies, arguments.requests, connections)
                record[f"connections_{connections}"] = _format_figures(load)
                print(connections, "connections:", json.dumps(_format_figures(load)))
        finally:
            service.terminate()
            service.wait(20)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _send_and_publish(
    store: BundleStore, port: int, bodies: list[bytes], requests: int, connections: int
) -> Load:
    """Send the load, and publish a new version after about half of it.

    Another process publishes, because publishing blocks the other threads of its process, which
    would be the clients.
    """
    loads: list[Load] = []

    def send_load() -> None:
        loads.append(send(port, bodies, requests=requests, connections=connections))

    publish = [sys.executable, __file__, "--publish-into", str(store.root)]
    with subprocess.Popen(publish, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as publisher:
        assert publisher.stdin is not None
        assert publisher.stdout is not None
        publisher.stdout.readline()
        worker = threading.Thread(target=send_load)
        worker.start()
        time.sleep(_estimate_half_time(requests, connections))
        publisher.stdin.close()
        worker.join()
    return loads[0]


def _publish_on_eof(store: BundleStore) -> None:
    """Open the current bundle, print "ready", and publish it again when standard input ends."""
    opened = store.open()
    print("ready", flush=True)
    sys.stdin.read()
    store.publish(partial(write_bundle, opened.bundle))


def _estimate_half_time(requests: int, connections: int) -> float:
    """Estimate after how many seconds half of the requests are done, at a few milliseconds each."""
    return requests * (0.0015 if connections == 1 else 0.001)


def _format_figures(load: Load) -> dict[str, object]:
    return {
        "p50_ms": round(load.quantile(0.5), 2),
        "p90_ms": round(load.quantile(0.9), 2),
        "p99_ms": round(load.quantile(0.99), 2),
        "requests_per_second": round(len(load.seconds) / load.wall),
        "statuses": {str(status): count for status, count in load.statuses.items()},
        "answers_by_version": sorted(load.versions.values(), reverse=True),
    }


def _build_bodies(events: Path) -> list[bytes]:
    """Build request bodies with the first 100 events of 100 users."""
    dataset = Dataset.of(read_events(events))
    users = np.flatnonzero(np.diff(dataset.offsets) >= EVENTS_PER_REQUEST)[:100]
    bodies = []
    for start in dataset.offsets[users]:
        span = slice(start, start + EVENTS_PER_REQUEST)
        history = [
            {
                "item_id": dataset.catalog.item_id(int(row)),
                "timestamp": to_datetime(int(at)).isoformat(),
                "action": dataset.actions[action - 1],
            }
            for row, at, action in zip(
                dataset.rows[span], dataset.times[span], dataset.action_rows[span], strict=True
            )
        ]
        query_time = int(dataset.times[span][-1]) + 7 * 86_400_000_000
        bodies.append(
            orjson.dumps(
                {
                    "history": history,
                    "query_time": to_datetime(query_time).isoformat(),
                    "n": 10,
                    "exclude_seen": False,
                    "explain": "attention",
                }
            )
        )
    return bodies


def _start(directory: str, store: Path, port: int) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "KAIROS_BUNDLE_STORE": str(store),
        "KAIROS_DATABASE_URL": f"sqlite:///{directory}/kairos.db",
        "KAIROS_PORT": str(port),
        "KAIROS_LOG_LEVEL": "warning",
    }
    service = subprocess.Popen([sys.executable, "-m", "app.server"], env=environment)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready").read()
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
        else:
            return service
    raise SystemExit("the service must be ready within 30 s, but is not; run kairos doctor")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("var/bundles"))
    parser.add_argument("--events", type=Path, default=Path("demo/events.parquet"))
    parser.add_argument("--publish-into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=10_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
