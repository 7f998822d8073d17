"""Load generators: closed loops wait for each answer, open loops send at a given rate.

One event loop and plain sockets keep the CPU time of the sender low, as it shares the machine with
the service. Every answer is recorded with its status and time; a request without an answer is
recorded with its error.
"""

import asyncio
import math
import random
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, TypeVar

import orjson
import uvloop

from tests.processes import find_local_token

Outcome = TypeVar("Outcome")

HOST = "127.0.0.1"
NO_ANSWER = 0
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request, ready to be sent.

    Attributes:
        name: kind of the request; figures are grouped by it.
        content: head and body.
    """

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a request.

    Attributes:
        name: name of the request.
        status: HTTP status; `NO_ANSWER` if the connection failed or timed out.
        seconds: from the instant it was due to be sent until the last byte of its answer.
        at: end of the answer in seconds of `time.perf_counter`.
        head: status line and headers; without an answer, the error's text.
        body: body; dropped after the load's `on_answer` callback.
    """

    name: str
    status: int
    seconds: float
    at: float
    head: bytes
    body: bytes

    def json(self) -> Any:
        """Parse the body."""
        return orjson.loads(self.body)

    def header(self, name: str) -> str | None:
        """Read the value of a header; None if absent."""
        prefix = name.lower().encode() + b":"
        for line in self.head.split(b"\r\n")[1:]:
            if line.lower().startswith(prefix):
                return line[len(prefix) :].strip().decode()
        return None


@dataclass
class Load:
    """All answers of a load.

    Attributes:
        wall: seconds from the first request to the last answer.
        late: largest delay in seconds with which an open loop sent a request.
    """

    answers: list[Answer] = field(default_factory=list)
    wall: float = 0.0
    late: float = 0.0

    @property
    def statuses(self) -> Counter[int]:
        """Count the answers by status."""
        return Counter(answer.status for answer in self.answers)

    def select(self, *statuses: int, name: str | None = None) -> list[Answer]:
        """Select answers by status, and by name of the request if given."""
        return [a for a in self.answers if a.status in statuses and name in {None, a.name}]

    def quantile(self, share: float, status: int = 200) -> float:
        """Compute a quantile of the seconds of answers with a status; NaN without any."""
        ordered = sorted(answer.seconds for answer in self.answers if answer.status == status)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else math.nan

    def add(self, other: "Load") -> None:
        """Add the answers of another round of the same load."""
        self.answers.extend(other.answers)
        self.wall += other.wall
        self.late = max(self.late, other.late)

    def rate(self, status: int = 200) -> float:
        """Compute answers of a status per second."""
        return len(self.select(status)) / self.wall


AnswerCallback = Callable[[Answer], None]


def build_request(
    method: str, path: str, body: object = None, *, name: str | None = None
) -> Request:
    """Serialize a request, with a JSON body unless it is None."""
    content = b"" if body is None else orjson.dumps(body)
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(content)}"]
    if body is not None:
        head.append("Content-Type: application/json")
    return Request(name or f"{method} {path}", "\r\n".join([*head, "", ""]).encode() + content)


def run(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run a load on an event loop of its own, and return its result."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def closed_loop(
    port: int,
    requests: Iterable[Request],
    *,
    clients: int,
    seconds: float | None = None,
    most: int | None = None,
    on_answer: AnswerCallback | None = None,
    until: Callable[[], bool] = lambda: False,
    backs_off: bool = False,
) -> Load:
    """Run clients that each wait for an answer before the next request.

    Args:
        requests: sent in order by the next free client, and repeated cyclically.
        seconds: duration of the load.
        most: number of requests; either bound, or `until`, ends the load.
        on_answer: called with each answer, including its body.
        until: evaluated before each request; true ends the load.
        backs_off: whether clients wait for about the seconds of `Retry-After`.
    """
    load, turns, chance = Load(), cycle(requests), random.Random(0)
    began = time.perf_counter()
    ends = began + seconds if seconds is not None else float("inf")
    left = iter(range(most)) if most is not None else iter(int, 1)

    async def run_client() -> None:
        connection = Connection(port)
        while time.perf_counter() < ends and not until() and next(left, None) is not None:
            answer = await connection.send(next(turns))
            _record(load, answer, on_answer)
            wait = answer.header("Retry-After") if backs_off else None
            if wait is not None:
                await asyncio.sleep(float(wait) * chance.uniform(0.5, 1.5))
        connection.close()

    await asyncio.gather(*(run_client() for _ in range(clients)))
    load.wall = time.perf_counter() - began
    return load


async def open_loop(
    port: int,
    requests: Iterable[Request],
    *,
    per_second: float,
    seconds: float,
    on_answer: AnswerCallback | None = None,
    seed: int = 0,
) -> Load:
    """Send requests as a Poisson process, however long the answers take.

    Each request has a connection of its own until it is answered. Its time counts from the instant
    it was due, so that a late sender does not shorten the measured times.
    """
    load, turns, free = Load(), cycle(requests), deque[Connection]()
    pending: set[asyncio.Task[None]] = set()

    async def send(due: float) -> None:
        connection = free.pop() if free else Connection(port)
        _record(load, await connection.send(next(turns), due), on_answer)
        free.append(connection)

    began = time.perf_counter()
    for due in _arrivals(began, per_second, seconds, random.Random(seed)):
        while (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        load.late = max(load.late, -wait)
        task = asyncio.create_task(send(due))
        pending.add(task)
        task.add_done_callback(pending.discard)
    while pending:
        await asyncio.wait(pending)
    load.wall = time.perf_counter() - began
    for connection in free:
        connection.close()
    return load


def _arrivals(
    began: float, per_second: float, seconds: float, chance: random.Random
) -> Iterator[float]:
    at = began
    while (at := at + chance.expovariate(per_second)) < began + seconds:
        yield at


def _record(load: Load, answer: Answer, on_answer: AnswerCallback | None) -> None:
    if on_answer is not None:
        on_answer(answer)
    head = answer.head if answer.status != 200 else b""
    load.answers.append(Answer(answer.name, answer.status, answer.seconds, answer.at, head, b""))


class Connection:
    """A connection that is opened on the first request, and reopened after a close.

    Requests without a key carry the local token of the process, as it was at that time.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._protocol: _Protocol | None = None
        self._authorization = b""

    async def send(self, request: Request, due: float | None = None) -> Answer:
        """Send a request and wait for its answer."""
        began = time.perf_counter() if due is None else due
        try:
            if self._protocol is None or self._protocol.is_closed:
                loop = asyncio.get_running_loop()
                _, self._protocol = await loop.create_connection(_Protocol, HOST, self._port)
                token = find_local_token(self._port)
                self._authorization = b"" if token is None else _format_authorization(token)
            content = request.content
            if not re.search(rb"\r\n(Authorization|X-API-Key): ", content):
                content = content.replace(b"\r\n", b"\r\n" + self._authorization, 1)
            head, body = await asyncio.wait_for(self._protocol.exchange(content), _TIMEOUT_SECONDS)
            status = int(head[9:12])
        except (OSError, TimeoutError) as error:
            status, head, body = NO_ANSWER, repr(error).encode(), b""
            self.close()
        at = time.perf_counter()
        return Answer(request.name, status, at - began, at, head, body)

    def close(self) -> None:
        """Close the connection if it is open."""
        if self._protocol is not None:
            self._protocol.close()
            self._protocol = None


class _Protocol(asyncio.Protocol):
    """Client side of HTTP/1.1 with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._response: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._head = -1
        self._end = 0
        self.is_closed = False

    def exchange(self, content: bytes) -> "asyncio.Future[tuple[bytes, bytes]]":
        """Send a request; the future yields head and body of the answer."""
        self._response = asyncio.get_running_loop().create_future()
        self._received.clear()
        self._head = -1
        if self.is_closed:
            self._response.set_exception(ConnectionResetError("closed before it was sent"))
        else:
            self._transport.write(content)
        return self._response

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._received += data
        if self._head < 0:
            self._head = self._received.find(b"\r\n\r\n")
            if self._head < 0:
                return
            head = bytes(self._received[: self._head]).lower()
            self._end = self._head + 4 + int(_find_header(head, b"content-length:"))
            if _find_header(head, b"connection:") == b"close":
                self.is_closed = True
        if len(self._received) >= self._end and not self._response.done():
            content = bytes(self._received)
            self._response.set_result((content[: self._head], content[self._head + 4 :]))
            if self.is_closed:
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.is_closed = True
        if self._response is not None and not self._response.done():
            message = f"closed after {len(self._received)} bytes of the answer"
            self._response.set_exception(error or ConnectionResetError(message))


def _format_authorization(token: str) -> bytes:
    return f"Authorization: Bearer {token}\r\n".encode()


def _find_header(head: bytes, name: bytes) -> bytes:
    """Find the value of a header in a lower-case head; 0 if absent."""
    start = head.find(b"\r\n" + name)
    if start < 0:
        return b"0"
    end = head.find(b"\r\n", start + 2)
    return head[start + 2 + len(name) : end if end >= 0 else None].strip()
