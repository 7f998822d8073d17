"""The load generator: sends prepared requests from a process of its own, and times the responses.

It shares the cores with the service, so it does as little as possible: blocking sockets, one
`select` per wake-up (which waits to the microsecond, while event loops round up to a millisecond),
and of a response it reads the status and the length only.

Open loop: a request is due at its intended start, however late the responses are; its latency
counts from there, also while it waits for the generator or for a connection. Closed loop: each
connection sends its next request upon a response; latency counts from sending.
"""

import contextlib
import gc
import os
import pickle
import select
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

NO_RESPONSE = 0
"""In place of a status: the connection broke, or no response came within the patience."""
_PATIENCE_SECONDS = 10.0
_IDLE_SECONDS = 4.0
"""An idle connection is renewed after this time, before the service closes it."""
_CHUNK = 65_536
_PRIORITY = -10
"""Clients of a real service do not wait for its cores. Only privileged users may raise it."""
_START = "from benchmarks.speed.serving.generator import main; main()"


class MeasurementError(Exception):
    """A case could not be measured."""


@dataclass(frozen=True)
class Load:
    """A load to send.

    Attributes:
        port: of the service on this machine.
        requests: whole HTTP/1.1 requests.
        starts: intended starts in seconds, one per request; None for a closed loop.
        seconds: the duration; a closed loop repeats the requests until then.
        connections: most connections at a time; each is kept alive.
        repeat: whether a closed loop begins anew after the last request.
        watched: bytes of a response whose first occurrence is timed; none if empty.
    """

    port: int
    requests: list[bytes]
    starts: list[float] | None
    seconds: float
    connections: int
    repeat: bool = True
    watched: bytes = b""


@dataclass
class Outcome:
    """What became of a load. Times are seconds since `began`.

    Attributes:
        began: when the load began, of `time.perf_counter`, which processes of a machine share.
        starts: intended starts, in the order of sending; of a closed loop the times of sending.
        sent: times of sending.
        latencies: None for a request without a response.
        statuses: number of responses by status.
        ended: time of the last response.
        processor_seconds: processor time of the generator.
        watched_at: when the watched bytes first occurred.
    """

    began: float
    starts: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    latencies: list[float | None] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    ended: float = 0.0
    processor_seconds: float = 0.0
    watched_at: float | None = None

    @property
    def failed(self) -> int:
        """The requests that were refused, failed, or got no response."""
        return len(self.starts) - self.statuses[200]


def generate(load: Load, meanwhile: Callable[[], None] | None = None) -> Outcome:
    """Send a load from a new process; `meanwhile` runs in this one."""
    with subprocess.Popen(
        [sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(load, process.stdin)
        process.stdin.close()
        if meanwhile is not None:
            meanwhile()
        printed = process.stdout.read()
    if process.returncode:
        raise MeasurementError(f"the load generator ended with status {process.returncode}")
    outcome: Outcome = pickle.loads(printed)
    return outcome


def main() -> None:
    """Read a load from standard input, send it, and write the outcome to standard output."""
    load: Load = pickle.load(sys.stdin.buffer)
    gc.disable()
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _PRIORITY)
    pickle.dump(send(load), sys.stdout.buffer)


def send(load: Load) -> Outcome:
    """Send a load from this process."""
    idle: list[_Connection] = []
    busy: dict[int, _Connection] = {}
    starts, count = load.starts, len(load.requests)
    processor_seconds = time.process_time()
    outcome = Outcome(began=time.perf_counter())
    number = 0
    while True:
        now = time.perf_counter() - outcome.began
        while (start := _get_start(load, number, now)) is not None and start <= now:
            if not idle and len(busy) >= load.connections:
                break
            connection = idle.pop() if idle else _Connection(load.port)
            outcome.starts.append(start)
            outcome.sent.append(now)
            outcome.latencies.append(None)
            connection.send(number, load.requests[number % count], now)
            busy[connection.descriptor] = connection
            number += 1
            now = time.perf_counter() - outcome.began
        if (start is None and not busy) or now > load.seconds + _PATIENCE_SECONDS:
            break
        waits_for_start = starts is not None and start is not None and start > now
        timeout = start - now if waits_for_start and start is not None else _PATIENCE_SECONDS
        for descriptor in select.select(list(busy), [], [], timeout)[0]:
            connection = busy[descriptor]
            status = connection.receive()
            if status is None:
                continue
            del busy[descriptor]
            now = time.perf_counter() - outcome.began
            outcome.statuses[status] += 1
            if status == NO_RESPONSE:
                connection.close()
                continue
            outcome.latencies[connection.number] = now - outcome.starts[connection.number]
            outcome.ended = now
            if load.watched and outcome.watched_at is None and load.watched in connection.received:
                outcome.watched_at = now
            idle.append(connection)
    outcome.statuses[NO_RESPONSE] += len(busy)
    for connection in (*idle, *busy.values()):
        connection.close()
    outcome.processor_seconds = time.process_time() - processor_seconds
    return outcome


def _get_start(load: Load, number: int, now: float) -> float | None:
    """Return the intended start of a request, or None if there are no more."""
    if load.starts is not None:
        return load.starts[number] if number < len(load.starts) else None
    has_more = load.repeat or number < len(load.requests)
    return now if has_more and now < load.seconds else None


class _Connection:
    """A connection that carries one request at a time.

    Attributes:
        number: of the latest request.
        received: what has arrived of its response.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._connect()

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.descriptor = self._socket.fileno()
        self._used_at: float | None = None

    def send(self, number: int, request: bytes, now: float) -> None:
        """Send a request."""
        if self._used_at is not None and now - self._used_at > _IDLE_SECONDS:
            self.close()
            self._connect()
        self.number, self.received = number, b""
        self._missing: int | None = None
        self._used_at = now
        # A broken connection is noticed when the response is read.
        with contextlib.suppress(OSError):
            self._socket.sendall(request)

    def receive(self) -> int | None:
        """Read what has arrived; return the status once the response is complete."""
        try:
            chunk = self._socket.recv(_CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            return NO_RESPONSE
        self.received += chunk
        if self._missing is None:
            head_end = self.received.find(b"\r\n\r\n")
            if head_end < 0:
                return None
            head = self.received[:head_end].lower()
            length = head[head.index(b"content-length:") + 15 :].partition(b"\r\n")[0]
            self._missing = head_end + 4 + int(length)
        return int(self.received[9:12]) if len(self.received) >= self._missing else None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
