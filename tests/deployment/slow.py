"""Clients that take their time: each holds a connection, and hardly uses it."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_DRIP_SECONDS = 1.0
_BODY_BYTES = 4096


@dataclass(frozen=True)
class Slowness:
    """A way of being slow.

    Attributes:
        opening: what is sent at once.
        drip: what is sent then, once a second.
    """

    opening: bytes
    drip: bytes


def slow_head() -> Slowness:
    """Headers that never end."""
    return Slowness(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n", b"X-Slow: 1\r\n")


def slow_body(key: str) -> Slowness:
    """A body that comes a byte at a time."""
    headers = ["Content-Type: application/json", f"Content-Length: {_BODY_BYTES}"]
    return Slowness(_head("POST /v1/recommendations", key, *headers), b" ")


def slow_reader(key: str) -> Slowness:
    """An answer of five megabytes that is asked for, and not read."""
    return Slowness(_head("GET /dashboard/plotly.min.js", key), b"")


class SlowClient:
    """One slow client. Thrown out, it comes again."""

    def __init__(self, port: int, address: str, slowness: Slowness) -> None:
        self._port = port
        self._address = address
        self._slowness = slowness
        self.comes = 0
        self._come()

    def go_on(self) -> None:
        """Send a little more."""
        try:
            if self._was_thrown_out():
                self._wire.close()
                self._come()
            self._wire.sendall(self._slowness.drip)
        except OSError:
            self._wire.close()
            self._come()

    def close(self) -> None:
        """Go away for good."""
        self._wire.close()

    def _come(self) -> None:
        self._wire = socket.socket()
        # Little room, so that what is not read stays with whoever sent it.
        self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._wire.settimeout(10)
        self._wire.bind((self._address, 0))
        self._wire.connect(("127.0.0.1", self._port))
        self._wire.sendall(self._slowness.opening)
        self._wire.setblocking(False)
        self.comes += 1

    def _was_thrown_out(self) -> bool:
        try:
            return self._wire.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False


@contextmanager
def kept_slow(
    port: int, slowness: Slowness, count: int, addresses: Sequence[str]
) -> Iterator[list[SlowClient]]:
    """So many slow clients, spread over addresses of this machine, for as long as the block."""
    clients = [
        SlowClient(port, addresses[number % len(addresses)], slowness) for number in range(count)
    ]
    stopping = threading.Event()

    def drip() -> None:
        while not stopping.wait(_DRIP_SECONDS):
            for client in clients:
                with suppress(OSError):
                    client.go_on()

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        yield clients
    finally:
        stopping.set()
        dripping.join()
        for client in clients:
            client.close()


def _head(request: str, key: str, *headers: str) -> bytes:
    lines = [f"{request} HTTP/1.1", "Host: localhost", f"X-API-Key: {key}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()
