"""Slow clients: each holds a connection open and sends or reads almost nothing."""

import select
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_DRIP_SECONDS = 1.0
_BODY_BYTES = 4096


@dataclass(frozen=True)
class SlowRequest:
    """The bytes of a slow request.

    Attributes:
        opening: sent at once.
        drip: sent once a second after that.
    """

    opening: bytes
    drip: bytes


def slow_head() -> SlowRequest:
    """A request with headers that never end."""
    return SlowRequest(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n", b"X-Slow: 1\r\n")


def slow_body(key: str) -> SlowRequest:
    """A request whose body arrives one byte at a time."""
    headers = ["Content-Type: application/json", f"Content-Length: {_BODY_BYTES}"]
    return SlowRequest(_head("POST /v1/recommendations", key, *headers), b" ")


def slow_reader(key: str) -> SlowRequest:
    """A request for a response of more than a megabyte, which the client does not read."""
    return SlowRequest(_head("GET /dashboard/vendor/plotly-basic.min.js", key), b"")


class SlowClient:
    """A client that sends one slow request, and reconnects when the connection is closed.

    Attributes:
        connects: how often it has connected.
    """

    def __init__(self, port: int, address: str, request: SlowRequest) -> None:
        self._port = port
        self._address = address
        self._request = request
        self.connects = 0
        self._connect()

    def drip(self) -> None:
        """Send a little more; reconnect if the connection was closed."""
        try:
            if self._is_closed():
                self._socket.close()
                self._connect()
            # Nothing to send keeps the connection as it is.
            self._socket.sendall(self._request.drip)
        except OSError:
            self._socket.close()
            self._connect()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _connect(self) -> None:
        self._socket = socket.socket()
        # A small buffer, so that unread bytes stay with the sender.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(10)
        self._socket.bind((self._address, 0))
        self._socket.connect(("127.0.0.1", self._port))
        self._socket.sendall(self._request.opening)
        self._socket.setblocking(False)
        self.connects += 1

    def _is_closed(self) -> bool:
        # Not by reading: what a slow reader has not read hides the end behind it.
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return bool(poll.poll(0))


@contextmanager
def run_slow_clients(
    port: int, request: SlowRequest, count: int, addresses: Sequence[str]
) -> Iterator[list[SlowClient]]:
    """Runs slow clients on some addresses of this machine for the duration of the block."""
    clients = [
        SlowClient(port, addresses[number % len(addresses)], request) for number in range(count)
    ]
    stopping = threading.Event()

    def drip() -> None:
        while not stopping.wait(_DRIP_SECONDS):
            for client in clients:
                with suppress(OSError):
                    client.drip()

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield clients
    finally:
        stopping.set()
        thread.join()
        for client in clients:
            client.close()


def _head(request_line: str, key: str, *headers: str) -> bytes:
    lines = [f"{request_line} HTTP/1.1", "Host: localhost", f"X-API-Key: {key}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()
