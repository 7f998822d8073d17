"""A real socket in front of the application, on which everything goes wrong that can."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import httpx

from tests.app.client import Client


class Mishap(Enum):
    """What may become of a request."""

    NONE = auto()
    LOST_REQUEST = auto()
    """The connection closes before the application sees the request."""
    LOST_ANSWER = auto()
    """The application does as asked; the connection closes without a word of it."""
    HALF_AN_ANSWER = auto()
    """The application does as asked; the connection closes amid the body."""
    UNAVAILABLE = auto()
    """503 with a Retry-After."""
    LIMITED = auto()
    """429 with a Retry-After."""
    GATEWAY = auto()
    """The application does as asked; a proxy answers 504 in HTML."""
    NOT_OURS = auto()
    """200, but of some other program."""
    TRICKLE = auto()
    """The body comes one byte at a time, and takes ever so long."""


class Flaky:
    """What was asked over the socket, and what shall go wrong next.

    Attributes:
        user_id: a user of whom the application knows nothing yet.
    """

    def __init__(self, url: str, application: Client) -> None:
        self.url = url
        self.user_id = f"user-{uuid4()}"
        self.application = application
        self.mishaps: deque[Mishap] = deque()
        self.retry_after = "0"
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.at: list[float] = []
        self._lock = threading.Lock()

    def next(self, asked: str, body: bytes, headers: dict[str, str]) -> Mishap:
        with self._lock:
            self.asked.append(asked)
            self.bodies.append(body)
            self.headers.append(headers)
            self.at.append(time.monotonic())
            return self.mishaps.popleft() if self.mishaps else Mishap.NONE

    def forward(self, method: str, path: str, body: bytes, headers: Any) -> httpx.Response:
        return self.application.request(
            method, "http://localhost" + path, content=body, headers=headers
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    flaky: Flaky

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        kept = {"content-type", "authorization"}
        headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
        mishap = self.flaky.next(f"{self.command} {self.path}", body, dict(self.headers.items()))
        if mishap is Mishap.LOST_REQUEST:
            self.close_connection = True
        elif mishap is Mishap.UNAVAILABLE:
            self._refuse(503, "overloaded")
        elif mishap is Mishap.LIMITED:
            self._refuse(429, "rate_limited")
        elif mishap is Mishap.NOT_OURS:
            self._write(200, {"Content-Type": "application/json"}, b'{"hello":"world"}')
        else:
            told = self.flaky.forward(self.command, self.path, body, headers)
            self._tell(told, mishap)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None: ...

    def _tell(self, told: httpx.Response, mishap: Mishap) -> None:
        if mishap is Mishap.GATEWAY:
            self._write(504, {"Content-Type": "text/html"}, b"<h1>504 Gateway Time-out</h1>")
            return
        kept = {"content-type", "retry-after", "x-request-id"}
        headers = {name: value for name, value in told.headers.items() if name in kept}
        self.close_connection = mishap is not Mishap.NONE
        if mishap is Mishap.LOST_ANSWER:
            return
        content, steps = told.content, [told.content]
        if mishap is Mishap.HALF_AN_ANSWER:
            steps = [content[: len(content) // 2]]
        elif mishap is Mishap.TRICKLE:
            steps = [content[at : at + 1] for at in range(len(content))]
        self._write(told.status_code, headers, *steps, length=len(content))

    def _refuse(self, status: int, code: str) -> None:
        problem = b'{"code":"%b","detail":"come again","request_id":"r1"}' % code.encode()
        headers = {
            "Content-Type": "application/problem+json",
            "Retry-After": self.flaky.retry_after,
        }
        self._write(status, headers, problem)

    def _write(
        self, status: int, headers: dict[str, str], *steps: bytes, length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(steps[0]) if length is None else length))
        self.end_headers()
        for number, step in enumerate(steps):
            if number:
                time.sleep(0.05)
            self.wfile.write(step)
            self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None: ...


@contextmanager
def flaky_service(application: Client) -> Iterator[Flaky]:
    """The application behind a socket of its own."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    handler.flaky = Flaky(f"http://127.0.0.1:{server.server_port}", application)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield handler.flaky
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
