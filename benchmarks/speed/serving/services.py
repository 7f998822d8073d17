"""The services that are measured, each in a process of its own with one thread."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.keys.issuing import create_key
from benchmarks.speed.serving.generator import MeasurementError
from migrations.run import upgrade

_READY_SECONDS = 300.0
_STOP_SECONDS = 20.0
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Service:
    """A running service.

    Attributes:
        port: on this machine.
        key: the API key; empty if it needs none.
        process: the process that was started.
    """

    port: int
    key: str
    process: psutil.Process

    def read_processor_seconds(self) -> float:
        """Read the processor time of the service so far, in all of its processes."""
        processes = [self.process, *self.process.children(recursive=True)]
        times = [each.cpu_times() for each in processes]
        return float(sum(each.user + each.system for each in times))


@contextmanager
def run_kairos(
    directory: Path, store: Path, database_url: str, *, workers: int = 1
) -> Iterator[Service]:
    """Run Kairos on a bundle store and a database, with a key of the role `read`.

    `workers` is the number of its processes (`KAIROS_WORKERS`).
    """
    upgrade(database_url)
    key = create_key(database_url, "benchmark", "read").secret
    port = _find_free_port()
    variables = {
        "KAIROS_BUNDLE_STORE": str(store),
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_ERASURE_LOG": str(directory / "erasures"),
        "KAIROS_RUNTIME_DIRECTORY": str(directory),
        "KAIROS_PORT": str(port),
        "KAIROS_LOG_LEVEL": "warning",
        "KAIROS_REQUESTS_PER_SECOND": "1000000",
    }
    if workers > 1:
        variables["KAIROS_WORKERS"] = str(workers)
    command = [sys.executable, "-m", "app.server"]
    with _run(command, port, key=key, variables=variables, ready="/health/ready") as service:
        _wait_for_workers(port, workers)
        yield service


@contextmanager
def run_echo() -> Iterator[Service]:
    """Run the bare FastAPI service."""
    port = _find_free_port()
    with _run([sys.executable, "-m", "benchmarks.speed.serving.echo", str(port)], port) as service:
        yield service


@contextmanager
def run_peer(interpreter: Path, script: Path, *, items: int) -> Iterator[Service]:
    """Run a peer's model behind a bare FastAPI, in the peer's own environment."""
    port = _find_free_port()
    command = [str(interpreter), str(script), "--port", str(port), "--items", str(items)]
    with _run(command, port) as service:
        yield service


@contextmanager
def _run(
    command: list[str],
    port: int,
    *,
    key: str = "",
    variables: dict[str, str] | None = None,
    ready: str = "/",
) -> Iterator[Service]:
    """Run a command until the block ends; wait until it responds, with status 200 if named."""
    environment = os.environ | _ONE_THREAD | (variables or {})
    with subprocess.Popen(command, env=environment) as process:
        try:
            _wait_until_ready(process, port, ready)
            yield Service(port, key, psutil.Process(process.pid))
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, path: str) -> None:
    """Wait for a response; for one with status 200 unless the path is that of no operation."""
    request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode()
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                connection.sendall(request)
                status = connection.recv(64)[9:12]
        except OSError:
            status = b""
        if status == b"200" or (status and path == "/"):
            return
        time.sleep(0.1)
    raise MeasurementError(f"port {port} must respond within {_READY_SECONDS:g} s, but does not")


def _wait_for_workers(port: int, workers: int) -> None:
    """Wait until each worker has opened the model: the first answers before the others."""
    activated = f'kairos_model_swaps_total{{result="activated"}} {float(workers)}'
    deadline = time.monotonic() + _READY_SECONDS
    while activated not in _read_metrics(port):
        if time.monotonic() > deadline:
            raise MeasurementError(
                f"{workers} workers must serve within {_READY_SECONDS:g} s, but they do not; "
                "read what they log"
            )
        time.sleep(0.1)


def _read_metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
        return str(response.read(), "utf-8")


def _find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
