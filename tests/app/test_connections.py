"""Bounds on connections, with real sockets and a small application."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from app.connections import (
    LISTENERS,
    MAX_HEAD_BYTES,
    ConnectionLimits,
    ConnectionPool,
    bind_protocol,
)
from app.observability.metrics import Metrics
from app.settings import Settings
from tests.processes import eventually, free_port

ROOMY = ConnectionLimits(
    connections=100,
    per_address=100,
    backlog=100,
    headers_seconds=600.0,
    body_seconds=600.0,
    response_seconds=600.0,
)
BRIEF = 0.2
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HOLD = b"GET /hold HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class Service:
    """A server with limits on a thread of its own."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.metrics = Metrics()
        self.released = threading.Event()
        self.held = 0
        self.ended = 0
        self.port = free_port()
        pool = ConnectionPool(limits, self.metrics)
        self.server = uvicorn.Server(
            uvicorn.Config(
                self.respond,
                interface="asgi3",
                port=self.port,
                http=bind_protocol(pool),
                log_config=None,
                lifespan="off",
                timeout_keep_alive=600,
            )
        )

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, wait if the path says so, and respond."""
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
        self.ended += 1
        if message["type"] == "http.disconnect":
            return
        if scope["path"] == "/hold":
            self.held += 1
            while not self.released.is_set():
                await asyncio.sleep(0.01)
        body = bytes(50_000_000) if scope["path"] == "/large" else b"ok"
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def connect(self, sent: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
        client = socket.socket()
        client.settimeout(60)
        client.bind((address, 0))
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def closed(self, reason: str) -> float:
        labels = {"reason": reason}
        value = self.metrics.registry.get_sample_value("kairos_connections_closed_total", labels)
        return value or 0.0

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)


@contextmanager
def serving(**limits: float) -> Iterator[Service]:
    service = Service(replace(ROOMY, **limits))  # type: ignore[arg-type]
    thread = threading.Thread(target=service.server.run)
    thread.start()
    try:
        eventually(lambda: service.server.started)
        yield service
    finally:
        service.released.set()
        service.server.force_exit = service.server.should_exit = True
        thread.join()


def read(client: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    received = b""
    try:
        while part := client.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def read_status(client: socket.socket) -> int:
    """Read one response; return its status, 0 if the connection is closed instead."""
    try:
        return int((client.recv(65536)[9:12]) or 0)
    except ConnectionResetError:
        return 0


def problem_of(answer: bytes) -> dict[str, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"connection: close" in head.lower()
    document: dict[str, str] = json.loads(body)
    assert document["request_id"].encode() in head
    return document


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
def test_a_connection_without_a_request_is_closed(sent: bytes) -> None:
    with serving(headers_seconds=BRIEF) as service, service.connect(sent) as client:
        assert read(client) == b""
        assert service.closed("headers") == 1


def test_headers_that_never_end_get_408() -> None:
    with serving(headers_seconds=BRIEF) as service, service.connect(GET[:-2]) as client:
        assert problem_of(read(client))["code"] == "request_timeout"


def test_slow_headers_after_a_response_get_408() -> None:
    with serving(headers_seconds=BRIEF) as service, service.connect(GET) as client:
        assert read_status(client) == 200
        client.sendall(GET[:-2])
        assert problem_of(read(client))["status"] == 408


def test_line_breaks_do_not_keep_an_idle_connection() -> None:
    with serving(headers_seconds=BRIEF) as service, service.connect(GET) as client:
        assert read_status(client) == 200
        client.sendall(b"\r\n")
        assert read(client) == b""


@pytest.mark.parametrize("headers", [b"Content-Length: 9\r\n\r\n12", CHUNKED[len(POST) :]])
def test_a_body_that_never_ends_gets_408(headers: bytes) -> None:
    with serving(body_seconds=BRIEF) as service, service.connect(POST + headers) as client:
        assert "body" in problem_of(read(client))["detail"]
        eventually(lambda: service.ended == 1)


def test_a_request_in_progress_has_no_time_limit() -> None:
    with (
        serving(headers_seconds=BRIEF, body_seconds=BRIEF) as service,
        service.connect(HOLD) as client,
        service.connect() as idle,
    ):
        eventually(lambda: service.held == 1)
        assert read(idle) == b""
        service.released.set()
        assert read_status(client) == 200


@pytest.mark.parametrize("header", [b"", b"Connection: close\r\n"])
def test_a_response_that_nobody_reads_is_dropped(header: bytes) -> None:
    request = GET[:-2].replace(b"/ ", b"/large ", 1) + header + b"\r\n"
    with serving(response_seconds=BRIEF) as service, service.connect(request) as client:
        eventually(lambda: service.closed("response") == 1)
        eventually(lambda: service.connections == 0)
        assert len(read(client)) < 50_000_000


ENDLESS: dict[str, Callable[[int], bytes]] = {
    "path": lambda _: b"x" * 1000,
    "header": lambda _: b"x" * 1000,
    "headers": lambda number: b"X-%d: %s\r\n" % (number, b"x" * 1000),
    "chunk extension": lambda _: b"x" * 1000,
    "trailers": lambda number: b"X-%d: %s\r\n" % (number, b"x" * 1000),
}
BEGINNINGS = {
    "path": b"GET /",
    "header": GET[:-2] + b"X-A: ",
    "headers": GET[:-2],
    "chunk extension": CHUNKED + b"1;",
    "trailers": CHUNKED + b"1\r\nx\r\n0\r\n",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_is_no_body_is_limited_in_size(kind: str) -> None:
    with serving() as service, service.connect(BEGINNINGS[kind]) as client:
        sent = 0
        try:
            while sent < 100 * MAX_HEAD_BYTES:
                client.sendall(ENDLESS[kind](sent))
                sent += 1000
        except OSError:
            pass
        # The kernel's buffers hold a part of it.
        assert sent < 100 * MAX_HEAD_BYTES
        assert service.closed("malformed") == 1


def test_large_headers_get_431() -> None:
    request = GET[:-2] + b"X-A: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n"
    with serving() as service, service.connect(request) as client:
        assert problem_of(read(client))["code"] == "head_too_large"


def test_a_body_in_chunks_of_one_byte_is_accepted() -> None:
    with serving() as service, service.connect(CHUNKED) as client:
        client.sendall(b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
        assert read_status(client) == 200


def test_requests_of_a_pipeline_are_answered_in_order() -> None:
    with serving() as service, service.connect(HOLD + 16 * GET) as client:
        eventually(lambda: service.held == 1)
        service.released.set()
        received = b""
        while received.count(b"HTTP/1.1 200") < 17:
            received += client.recv(65536)


def test_an_endless_pipeline_is_refused() -> None:
    with serving() as service, service.connect(HOLD + 17 * GET) as client:
        assert "16 requests" in problem_of(read(client))["detail"]
        assert service.closed("malformed") == 1
        eventually(lambda: service.connections == 0)
    with serving() as service, service.connect() as client:
        with suppress(OSError):
            for _ in range(200):
                client.sendall(1_000 * GET)
        assert b"16 requests" in read(client)


def test_what_is_not_http_is_a_problem() -> None:
    with serving() as service, service.connect(b"nonsense\r\n\r\n") as client:
        assert problem_of(read(client))["code"] == "malformed_request"


def test_new_clients_take_the_place_of_idle_ones() -> None:
    with serving(connections=10) as service, ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(service.connect())
        for _ in range(5):
            client = stack.enter_context(service.connect(GET))
            assert read_status(client) == 200
            assert service.connections <= 10
        assert service.closed("evicted") >= 40


@pytest.mark.parametrize("sent", [GET[:-2], POST + b"Content-Length: 9\r\n\r\n", GET])
def test_new_clients_take_the_place_of_slow_ones(sent: bytes) -> None:
    with serving(connections=10) as service, ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(service.connect(sent))
        client = stack.enter_context(service.connect(GET))
        assert read_status(client) == 200
        assert service.connections <= 10


def test_an_address_with_many_connections_loses_its_own() -> None:
    with serving(connections=10) as service, ExitStack() as stack:
        neighbour = stack.enter_context(service.connect(GET))
        assert read_status(neighbour) == 200
        for _ in range(50):
            stack.enter_context(service.connect(address="127.0.0.2"))
        eventually(lambda: service.closed("evicted") == 41)
        neighbour.sendall(GET)
        assert read_status(neighbour) == 200


def test_one_address_is_limited_on_its_own() -> None:
    with serving(per_address=5) as service, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(service.connect(address="127.0.0.2"))
        eventually(lambda: service.closed("evicted") == 15)
        assert service.connections <= 5


@pytest.mark.parametrize("limit", ["connections", "per_address"])
def test_a_request_in_progress_keeps_its_place(limit: str) -> None:
    with serving(**{limit: 3}) as service, ExitStack() as stack:
        working = [stack.enter_context(service.connect(HOLD)) for _ in range(3)]
        eventually(lambda: service.held == 3)
        # Without a request of its own, so that nothing unread resets the connection.
        answer = read(stack.enter_context(service.connect()))
        assert problem_of(answer)["code"] == "too_many_connections"
        assert b"retry-after: 1" in answer.lower()
        service.released.set()
        assert [read_status(client) for client in working] == [200] * 3


def test_a_closed_connection_gives_its_place_back() -> None:
    with serving(connections=2) as service:
        for _ in range(20):
            with service.connect(HOLD) as client:
                service.released.set()
                assert read_status(client) == 200
            eventually(lambda: service.connections == 0)
        assert service.closed("evicted") == service.closed("refused") == 0


def test_half_of_the_descriptors_are_left_for_the_rest() -> None:
    limits = ConnectionLimits.from_settings(Settings(), descriptors=256)
    assert (limits.connections, limits.per_address) == (96, 96)
    assert limits.connections + 2 * LISTENERS <= 128, "connections that are being closed"
    assert limits.connections + limits.backlog < 256
    roomy = ConnectionLimits.from_settings(Settings(), descriptors=1_000_000)
    assert roomy.connections == Settings().max_connections
    assert roomy.per_address == Settings().max_connections_per_address
