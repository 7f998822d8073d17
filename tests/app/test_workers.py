"""Several workers behind one address, as real processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.processes import (
    LOCAL_TOKEN,
    ROOT,
    Server,
    Start,
    eventually,
    find_local_token,
    free_port,
    processes,
)

pytestmark = pytest.mark.slow

WORKERS = 2
MODELS = {"route": "/v1/models", "status": "200"}
HISTORY = [{"item_id": "i1", "timestamp": number} for number in range(10)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Server]:
    """A service with several workers, for tests that do not change its state."""
    directory = tmp_path_factory.mktemp("workers")
    bundle_store = shutil.copytree(published, directory / "bundles")
    with processes(directory, bundle_store) as start:
        yield start_workers(start)


def start_workers(start: Start, **settings: str) -> Server:
    """Start a service, and wait until all of its workers accept connections."""
    service = start(KAIROS_WORKERS=str(WORKERS), **settings)
    eventually(lambda: service.log.read_text().count("worker_started") == WORKERS)
    return service


def list_workers(service: Server) -> list[psutil.Process]:
    """List the running workers of a service."""
    return [each for each in psutil.Process(service.process.pid).children() if is_alive(each)]


def is_alive(worker: psutil.Process) -> bool:
    """Return whether a worker has not ended; it may do so while this looks."""
    try:
        return worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def are_gone(workers: list[psutil.Process]) -> bool:
    """Return whether all of these workers have ended."""
    return not any(map(is_alive, workers))


def count_connections(worker: psutil.Process) -> int:
    """Count the connections that a worker has accepted and not closed."""
    return sum(each.status == "ESTABLISHED" for each in worker.net_connections("tcp"))


def connect(service: Server) -> httpx.Client:
    """Return a client with a connection of its own, which reaches one of the workers."""
    return httpx.Client(base_url=service.url, auth=LOCAL_TOKEN, timeout=30)


def read_metric(client: httpx.Client, name: str, **labels: str) -> float:
    """Read one value of `/metrics`."""
    return next(
        sample.value
        for family in text_string_to_metric_families(client.get("/metrics").raise_for_status().text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_every_worker_answers_requests_with_the_token(service: Server) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(service)) for _ in range(24)]
        for client in clients:
            request = {"history": HISTORY}
            assert client.post("/v1/recommendations", json=request).status_code == 200
        workers = list_workers(service)
        assert len(workers) == WORKERS
        assert all(count_connections(worker) for worker in workers)


def is_counted(client: httpx.Client, number: int) -> bool:
    """Return whether the metrics count this number of responses to `GET /v1/models`."""
    return read_metric(client, "http_requests_total", **MODELS) == number


def test_every_worker_reports_the_counts_of_all(service: Server) -> None:
    for number in range(1, 25):
        with connect(service) as client, connect(service) as other:
            assert client.get("/v1/models").status_code == 200
            # A response may be counted a moment after its client has read it.
            eventually(partial(is_counted, other, number))
            assert read_metric(client, "kairos_inference_in_progress") == 0
            assert read_metric(client, "kairos_model_info") == 1


def test_the_workers_are_one_instance_to_the_dashboard(service: Server) -> None:
    names = set()
    for _ in range(16):
        with connect(service) as client:
            metrics = client.get("/v1/metrics").json()
            names.add((metrics["instance"], metrics["started_at"]))
    assert len(names) == 1


def test_a_killed_worker_is_replaced_during_requests(start: Start) -> None:
    service = start_workers(start)
    victim, other = list_workers(service)
    answered, failed, counts = 0, 0, []
    deadline = time.monotonic() + 60
    while len({each.pid for each in list_workers(service)} - {victim.pid}) < WORKERS or (
        service.log.read_text().count("worker_started") <= WORKERS
    ):
        assert time.monotonic() < deadline
        if answered == 20 and not failed:  # once: the next request may be the one that fails
            victim.kill()
        try:
            with connect(service) as client:
                assert client.get("/v1/models").status_code == 200
                answered += 1
                counts.append(read_metric(client, "http_requests_total", **MODELS))
        except httpx.TransportError:
            failed += 1  # it was on the killed worker
    assert failed <= 3
    assert answered > 40
    assert counts == sorted(counts)
    assert counts[-1] <= answered + failed
    assert other.is_running()
    with connect(service) as client:
        assert read_metric(client, "http_requests_total", **MODELS) >= answered
        # Of the workers that run, not of the killed one.
        assert read_metric(client, "kairos_database_in_progress", lane="writes") == 0


def test_sigterm_completes_requests_and_exits_with_0(start: Start, tmp_path: Path) -> None:
    service = start_workers(start, TMPDIR=str(tmp_path), KAIROS_DRAIN_SECONDS="1")
    workers = list_workers(service)
    assert [*tmp_path.glob("kairos-metrics-*")]
    body = b'{"history": []}'
    with ExitStack() as stack:
        uploads = [
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            for _ in range(20)
        ]
        for upload in uploads:
            upload.sendall(
                b"POST /v1/recommendations HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n"
                + f"Authorization: Bearer {service.token}\r\n".encode()
                + f"Content-Length: {len(body)}\r\n\r\n".encode()
            )
        eventually(lambda: sum(map(count_connections, workers)) >= len(uploads))
        assert all(count_connections(worker) for worker in workers)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: not service.is_ready())
        for upload in uploads:
            upload.sendall(body)
        for upload in uploads:
            assert upload.recv(65536).startswith(b"HTTP/1.1 200")
    assert service.process.wait(20) == 0
    assert are_gone(workers)
    assert find_local_token(service.port) is None
    assert not [*tmp_path.glob("kairos-metrics-*")]


def test_a_signal_to_the_group_drains_as_one_to_it(start: Start) -> None:
    service = start_workers(start, KAIROS_DRAIN_SECONDS="1")
    began = time.monotonic()
    for each in [*list_workers(service), psutil.Process(service.process.pid)]:
        each.send_signal(signal.SIGTERM)
    assert service.process.wait(20) == 0
    assert time.monotonic() - began > 1


def test_a_second_signal_ends_all_workers_at_once(start: Start) -> None:
    service = start_workers(start, KAIROS_DRAIN_SECONDS="600")
    workers = list_workers(service)
    service.process.send_signal(signal.SIGTERM)
    eventually(lambda: not service.is_ready())
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(5) == 128 + signal.SIGTERM
    assert are_gone(workers)


def test_workers_end_with_a_killed_supervisor(start: Start, tmp_path: Path) -> None:
    service = start_workers(start, TMPDIR=str(tmp_path), KAIROS_DRAIN_SECONDS="600")
    workers = list_workers(service)
    service.process.kill()
    service.process.wait()
    eventually(lambda: are_gone(workers), within_seconds=20)
    assert not [*tmp_path.glob("kairos-metrics-*")]
    again = start(KAIROS_PORT=str(service.port))
    assert again.is_ready()


def run_to_end(tmp_path: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run a service that cannot start."""
    return subprocess.run(
        [sys.executable, "-m", "app.server"],
        cwd=ROOT,
        env={
            **os.environ,
            "KAIROS_WORKERS": str(WORKERS),
            "KAIROS_PORT": str(free_port()),
            "KAIROS_DATABASE_URL": f"sqlite:///{tmp_path / 'kairos.db'}",
            "KAIROS_RUNTIME_DIRECTORY": str(tmp_path / "runtime"),
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_error_of_a_worker_ends_the_service(tmp_path: Path) -> None:
    settings = {"KAIROS_BUNDLE_KEY": "short"}
    alone = run_to_end(tmp_path, KAIROS_WORKERS="1", **settings)
    ended = run_to_end(tmp_path, **settings)
    assert (ended.returncode, ended.stderr) == (1, alone.stderr)
    assert ended.stderr.startswith("error ")


def test_an_address_in_use_is_reported_as_by_one_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {"KAIROS_PORT": str(taken.getsockname()[1])}
        alone = run_to_end(tmp_path, KAIROS_WORKERS="1", **settings)
        ended = run_to_end(tmp_path, **settings)
    assert (ended.returncode, ended.stderr) == (1, alone.stderr)
    assert "Address already in use" in ended.stderr
