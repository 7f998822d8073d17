"""Seconds from the start of `python -m app.server` until `/health/ready` responds with 200.

    python benchmarks/speed/start.py

With a bundle of 3,000 items, a wide part included, and an SQLite database whose schema is up to
date; both are built in a temporary directory. Every run is paired with a process that only imports
torch, which bounds the start from below. Medians; the first pair fills the cache of files, and
modules are compiled before. Writes benchmarks/speed/results/start.json.

Processor time is that of the process when it is ready: unlike the wall time, it does not count what
other programs take of the machine.
"""

import argparse
import http.client
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import psutil

from benchmarks.speed.synthetic_bundle import build_bundle, count_events
from migrations.run import upgrade
from model.bundle.writing import write_bundle
from model.store.store import BundleStore
from model.wide import WideConfig

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "start.json"
LAST_AT = 1_700_000_000_000_000
PATIENCE_SECONDS = 120.0
SECONDS_BETWEEN_PROBES = 0.01


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    starts: list[tuple[float, float]] = []
    imports: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as directory:
        variables = _prepare(Path(directory), arguments.items)
        for run in range(arguments.runs + 1):
            start, imported = _measure_start(variables), _measure_import("torch")
            if run:
                starts.append(start)
                imports.append(imported)
    record = {
        "command": (
            f"python benchmarks/speed/start.py --items {arguments.items} --runs {arguments.runs}"
        ),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "items": arguments.items,
        "cores": os.cpu_count(),
        "until_ready": _summarize(starts),
        "import_torch": _summarize(imports),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _prepare(directory: Path, items: int) -> dict[str, str]:
    """Publish a bundle and create a database; return the environment of the service."""
    counts = count_events(items, np.random.default_rng(0), last_at=LAST_AT)
    bundle = build_bundle(items, last_at=LAST_AT, wide=WideConfig(), counts=counts)
    BundleStore(directory / "bundles").publish(partial(write_bundle, bundle))
    database_url = f"sqlite:///{directory / 'kairos.db'}"
    upgrade(database_url)
    variables = {
        **os.environ,
        "KAIROS_BUNDLE_STORE": str(directory / "bundles"),
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_RUNTIME_DIRECTORY": str(directory / "runtime"),
    }
    # Every process would otherwise compile the modules that are new.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def _measure_start(variables: dict[str, str]) -> tuple[float, float]:
    """Measure the wall and the processor seconds until a process is ready."""
    port = _find_free_port()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.server"],
        cwd=ROOT,
        env={**variables, "KAIROS_PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not _is_ready(port):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_SECONDS:
                raise SystemExit(f"the service ended, or is not ready on port {port}")
            time.sleep(SECONDS_BETWEEN_PROBES)
        wall = time.perf_counter() - began
        times = psutil.Process(process.pid).cpu_times()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)
    return wall, times.user + times.system


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/health/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _measure_import(module: str) -> tuple[float, float]:
    """Measure the wall and the processor seconds of a process that imports a module and ends."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _summarize(measured: list[tuple[float, float]]) -> dict[str, float | list[float]]:
    wall, processor = zip(*measured, strict=True)
    return {
        "wall_seconds": round(statistics.median(wall), 2),
        "processor_seconds": round(statistics.median(processor), 2),
        "all_wall_seconds": [round(each, 2) for each in wall],
        "all_processor_seconds": [round(each, 2) for each in processor],
    }


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=3_000)
    parser.add_argument("--runs", type=int, default=10)
    return parser.parse_args()


if __name__ == "__main__":
    main()
