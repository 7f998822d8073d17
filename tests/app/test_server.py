"""The service as a process, with real sockets and signals."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.processes import Server, Start, eventually, processes

pytestmark = pytest.mark.slow

SECRET_USER = "user-that-must-not-be-logged"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, published: Path) -> Iterator[Server]:
    """A process for tests that do not change its state."""
    directory = tmp_path_factory.mktemp("server")
    bundle_store = shutil.copytree(published, directory / "bundles")
    with processes(directory, bundle_store) as start:
        yield start()


def event(number: int) -> dict[str, object]:
    return {
        "user_id": SECRET_USER,
        "item_id": f"i{number % 20}",
        "action": "view",
        "timestamp": 1_767_225_600 + number,
    }


def test_a_process_serves_logs_and_stops_on_sigterm(start: Start) -> None:
    server = start()
    assert server.http.post("/v1/events", json={"events": [event(1)]}).json()["accepted"] == 1
    request = {"user_id": SECRET_USER, "explain": "attention"}
    answer = server.http.post("/v1/recommendations", json=request)
    assert answer.json()["history_used"] == 1
    assert server.http.get(f"/v1/users/{SECRET_USER}").status_code == 200
    assert server.http.post("/v1/recommendations", content=b"{").status_code == 415
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) == 0
    lines = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert {"bundle_activated", "request"} <= {line["event"] for line in lines}
    assert all(line["level"] and line["timestamp"].endswith("Z") for line in lines)
    assert answer.headers["X-Request-ID"] in [line.get("request_id") for line in lines]
    assert SECRET_USER not in server.log.read_text()


def test_threads_do_not_grow_with_use(server: Server) -> None:
    history = [{"item_id": "i1", "timestamp": number} for number in range(50)]

    def count_threads() -> int:
        answer = server.http.post("/v1/recommendations", json={"history": history})
        assert answer.status_code == 200
        return psutil.Process(server.process.pid).num_threads()

    before = count_threads()
    assert {count_threads() for _ in range(100)} == {before}


def test_the_numeric_libraries_use_one_thread(tmp_path: Path) -> None:
    script = """
import uvicorn
uvicorn.Server.run = lambda self: setattr(self, "started", True)
from app import server, settings
server.run(settings.Settings())
import faiss, torch
print(torch.get_num_threads(), faiss.omp_get_max_threads())
"""
    environment = {key: value for key, value in os.environ.items() if "_NUM_THREADS" not in key}
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert run.stdout.split() == [b"1", b"1"]


@contextmanager
def upload(server: Server, *headers: str) -> Iterator[socket.socket]:
    """A raw connection that has sent the head of a POST."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        head = [
            *("POST /v1/events HTTP/1.1", "Host: localhost", "Content-Type: application/json"),
            f"Authorization: Bearer {server.token}",
        ]
        connection.sendall("\r\n".join([*head, *headers, "", ""]).encode())
        yield connection


def test_an_endless_body_costs_no_memory(server: Server) -> None:
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent = 0
    with upload(server, "Transfer-Encoding: chunked") as connection:
        try:
            while sent < 256 * 2**20:
                connection.sendall(chunk)
                sent += 0x10000
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            answer = connection.recv(65536)
        except ConnectionResetError:
            answer = b""
    assert not answer or answer.startswith(b"HTTP/1.1 413")
    assert process.memory_info().rss - before < 50 * 2**20
    assert server.is_ready()


def test_a_declared_length_beyond_the_limit_is_refused_early(server: Server) -> None:
    with upload(server, f"Content-Length: {2**30}") as connection:
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"application/problem+json" in answer
    assert b"connection: close" in answer.lower()


def test_a_refusal_reaches_a_client_that_is_still_sending(server: Server) -> None:
    body = b" " * 2**19
    for _ in range(10):
        with upload(
            server, f"Content-Length: {len(body)}", "Content-Encoding: gzip", "Connection: close"
        ) as connection:
            for begin in range(0, len(body), 2**16):
                connection.sendall(body[begin : begin + 2**16])
                time.sleep(0.002)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 415")


def test_a_client_disconnect_in_mid_body_is_no_failure(server: Server) -> None:
    with upload(server, "Content-Length: 1000") as connection:
        connection.sendall(b'{"events": [')
    eventually(lambda: '"status": 400' in server.log.read_text())
    assert server.is_ready()
    assert "request_failed" not in server.log.read_text()
