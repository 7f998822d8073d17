"""A proxy on a real socket in front of the application that injects faults."""

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


class Fault(Enum):
    """What happens to a request."""

    NONE = auto()
    LOST_REQUEST = auto()
    """The connection closes before the application receives the request."""
    LOST_RESPONSE = auto()
    """The application handles the request; the connection closes without a response."""
    PARTIAL_RESPONSE = auto()
    """The application handles the request; the connection closes in the middle of the body."""
    UNAVAILABLE = auto()
    """503 with a Retry-After."""
    RATE_LIMITED = auto()
    """429 with a Retry-After."""
    GATEWAY_TIMEOUT = auto()
    """The application handles the request; a proxy responds 504 in HTML."""
    OTHER_PROGRAM = auto()
    """200 with the JSON of another program."""
    SLOW_BODY = auto()
    """The body arrives one byte at a time, over many seconds."""


class FaultyProxy:
    """The proxy's recorded requests, and the faults of the next ones.

    Attributes:
        user_id: a user without any events yet.
        faults: one per request, in order; later requests have none.
        requests: method and path of each request.
        at: when each request arrived, in seconds of the monotonic clock.
    """

    def __init__(self, url: str, application: Client) -> None:
        self.url = url
        self.user_id = f"user-{uuid4()}"
        self.application = application
        self.faults: deque[Fault] = deque()
        self.retry_after = "0"
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.at: list[float] = []
        self._lock = threading.Lock()

    def record(self, request: str, body: bytes, headers: dict[str, str]) -> Fault:
        """Records a request and returns its fault."""
        with self._lock:
            self.requests.append(request)
            self.bodies.append(body)
            self.headers.append(headers)
            self.at.append(time.monotonic())
            return self.faults.popleft() if self.faults else Fault.NONE

    def forward(self, method: str, path: str, body: bytes, headers: Any) -> httpx.Response:
        """Sends a request to the application."""
        return self.application.request(
            method, "http://localhost" + path, content=body, headers=headers
        )

    def count_stored_events(self) -> int:
        """Counts the events of `user_id` in the application."""
        response = self.application.get(f"/v1/users/{self.user_id}?limit=1000")
        return len(response.json()["events"])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        kept = {"content-type", "authorization"}
        headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
        fault = self.proxy.record(f"{self.command} {self.path}", body, dict(self.headers.items()))
        if fault is Fault.LOST_REQUEST:
            self.close_connection = True
        elif fault is Fault.UNAVAILABLE:
            self._send_problem(503, "overloaded")
        elif fault is Fault.RATE_LIMITED:
            self._send_problem(429, "rate_limited")
        elif fault is Fault.OTHER_PROGRAM:
            self._write(200, {"Content-Type": "application/json"}, b'{"hello":"world"}')
        else:
            response = self.proxy.forward(self.command, self.path, body, headers)
            self._send_response(response, fault)

    do_GET = do_POST = do_PUT = do_DELETE = handle_request  # noqa: N815

    def log_message(self, format: str, *args: object) -> None: ...

    def _send_response(self, response: httpx.Response, fault: Fault) -> None:
        if fault is Fault.GATEWAY_TIMEOUT:
            self._write(504, {"Content-Type": "text/html"}, b"<h1>504 Gateway Time-out</h1>")
            return
        kept = {"content-type", "retry-after", "x-request-id"}
        headers = {name: value for name, value in response.headers.items() if name in kept}
        self.close_connection = fault is not Fault.NONE
        if fault is Fault.LOST_RESPONSE:
            return
        content, chunks = response.content, [response.content]
        if fault is Fault.PARTIAL_RESPONSE:
            chunks = [content[: len(content) // 2]]
        elif fault is Fault.SLOW_BODY:
            chunks = [content[at : at + 1] for at in range(len(content))]
        self._write(response.status_code, headers, *chunks, length=len(content))

    def _send_problem(self, status: int, code: str) -> None:
        problem = b'{"code":"%b","detail":"come again","request_id":"r1"}' % code.encode()
        headers = {
            "Content-Type": "application/problem+json",
            "Retry-After": self.proxy.retry_after,
        }
        self._write(status, headers, problem)

    def _write(
        self, status: int, headers: dict[str, str], *chunks: bytes, length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(chunks[0]) if length is None else length))
        self.end_headers()
        for number, chunk in enumerate(chunks):
            if number:
                time.sleep(0.05)
            self.wfile.write(chunk)
            self.wfile.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None: ...


@contextmanager
def run_faulty_proxy(application: Client) -> Iterator[FaultyProxy]:
    """Runs a proxy of the application on a free port."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    handler.proxy = FaultyProxy(f"http://127.0.0.1:{server.server_port}", application)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield handler.proxy
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
