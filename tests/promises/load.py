"""Load on a running service: closed loops that wait for answers, and open ones that do not.

One event loop and bare sockets, so that the sender takes as little as it can of the processor it
shares with the service. Every answer is kept with its status and time; a request that got none is
kept with what happened to it instead.
"""

import asyncio
import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, TypeVar

import orjson
import uvloop

Outcome = TypeVar("Outcome")

HOST = "127.0.0.1"
NO_ANSWER = 0
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request, ready to be sent.

    Attributes:
        name: what kind of request it is, to tell them apart in the figures.
        content: head and body.
    """

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request.

    Attributes:
        name: of the request.
        status: `NO_ANSWER` where none came.
        seconds: from the instant it was due to be sent until the last byte of its answer.
        at: when that was, on the clock of `time.perf_counter`.
        head: status line and headers; where no answer came, what happened instead.
        body: what followed; dropped once a load's `seen` has had a look.
    """

    name: str
    status: int
    seconds: float
    at: float
    head: bytes
    body: bytes

    def json(self) -> Any:
        """The body."""
        return orjson.loads(self.body)

    def header(self, name: str) -> str | None:
        """The value of a header."""
        wanted = name.lower().encode() + b":"
        for line in self.head.split(b"\r\n")[1:]:
            if line.lower().startswith(wanted):
                return line[len(wanted) :].strip().decode()
        return None


@dataclass
class Load:
    """What came back.

    Attributes:
        wall: seconds from the first request to the last answer.
        late: seconds by which an open loop was late, at worst, to send a request.
    """

    answers: list[Answer] = field(default_factory=list)
    wall: float = 0.0
    late: float = 0.0

    @property
    def statuses(self) -> Counter[int]:
        """How often each status came."""
        return Counter(answer.status for answer in self.answers)

    def of(self, *statuses: int, name: str | None = None) -> list[Answer]:
        """The answers of some statuses, and of one kind of request where it is named."""
        return [a for a in self.answers if a.status in statuses and name in {None, a.name}]

    def quantile(self, share: float, status: int = 200) -> float:
        """Seconds within which a share of the answers of a status came; NaN if none did."""
        ordered = sorted(answer.seconds for answer in self.answers if answer.status == status)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else math.nan

    def rate(self, status: int = 200) -> float:
        """Answers of a status a second."""
        return len(self.of(status)) / self.wall


Seen = Callable[[Answer], None]


def request(method: str, path: str, body: object = None, *, name: str | None = None) -> Request:
    """A request with a JSON body, or none."""
    content = b"" if body is None else orjson.dumps(body)
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(content)}"]
    if body is not None:
        head.append("Content-Type: application/json")
    return Request(name or f"{method} {path}", "\r\n".join([*head, "", ""]).encode() + content)


def run(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """What comes of sending some load, on an event loop of its own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def closed_loop(
    port: int,
    requests: Iterable[Request],
    *,
    clients: int,
    seconds: float | None = None,
    most: int | None = None,
    seen: Seen | None = None,
    until: Callable[[], bool] = lambda: False,
    backs_off: bool = False,
) -> Load:
    """Clients that each wait for an answer before they ask again.

    Args:
        requests: taken from the front by whoever is free, and from the start again at the end.
        seconds: after which nobody asks again.
        most: requests to send; either bound, or `until`, ends the load.
        seen: has a look at each answer while it still has its body.
        until: asked before each request whether to end.
        backs_off: whether a client who is told when to come back waits about that long.
    """
    load, turns, chance = Load(), cycle(requests), random.Random(0)
    began = time.perf_counter()
    ends = began + seconds if seconds is not None else float("inf")
    left = iter(range(most)) if most is not None else iter(int, 1)

    async def ask_on() -> None:
        connection = Connection(port)
        while time.perf_counter() < ends and not until() and next(left, None) is not None:
            answer = await connection.ask(next(turns))
            _keep(load, answer, seen)
            wait = answer.header("Retry-After") if backs_off else None
            if wait is not None:
                await asyncio.sleep(float(wait) * chance.uniform(0.5, 1.5))
        connection.close()

    await asyncio.gather(*(ask_on() for _ in range(clients)))
    load.wall = time.perf_counter() - began
    return load


async def open_loop(
    port: int,
    requests: Iterable[Request],
    *,
    per_second: float,
    seconds: float,
    seen: Seen | None = None,
    seed: int = 0,
) -> Load:
    """Requests that arrive at random at a steady rate, however long the answers take.

    Each has a connection to itself until it is answered. Its time counts from the instant it was
    due, so that a sender that falls behind does not flatter the service.
    """
    load, turns, free = Load(), cycle(requests), deque[Connection]()
    asking: set[asyncio.Task[None]] = set()

    async def ask(due: float) -> None:
        connection = free.pop() if free else Connection(port)
        _keep(load, await connection.ask(next(turns), due), seen)
        free.append(connection)

    began = time.perf_counter()
    for due in _arrivals(began, per_second, seconds, random.Random(seed)):
        while (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        load.late = max(load.late, -wait)
        task = asyncio.create_task(ask(due))
        asking.add(task)
        task.add_done_callback(asking.discard)
    while asking:
        await asyncio.wait(asking)
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


def _keep(load: Load, answer: Answer, seen: Seen | None) -> None:
    if seen is not None:
        seen(answer)
    head = answer.head if answer.status != 200 else b""
    load.answers.append(Answer(answer.name, answer.status, answer.seconds, answer.at, head, b""))


class Connection:
    """A connection that is opened when it is needed, and again after it was closed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._wire: _Wire | None = None

    async def ask(self, request: Request, due: float | None = None) -> Answer:
        """Send a request, and wait for its answer."""
        began = time.perf_counter() if due is None else due
        try:
            if self._wire is None or self._wire.is_closed:
                loop = asyncio.get_running_loop()
                _, self._wire = await loop.create_connection(_Wire, HOST, self._port)
            head, body = await asyncio.wait_for(
                self._wire.exchange(request.content), _TIMEOUT_SECONDS
            )
            status = int(head[9:12])
        except (OSError, TimeoutError) as error:
            status, head, body = NO_ANSWER, repr(error).encode(), b""
            self.close()
        at = time.perf_counter()
        return Answer(request.name, status, at - began, at, head, body)

    def close(self) -> None:
        """Close it, if it is open."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None


class _Wire(asyncio.Protocol):
    """Bytes to and from the service: one exchange at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._answered: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._head = -1
        self._end = 0
        self.is_closed = False

    def exchange(self, content: bytes) -> "asyncio.Future[tuple[bytes, bytes]]":
        """Send a request; the head and the body of the answer."""
        self._answered = asyncio.get_running_loop().create_future()
        self._received.clear()
        self._head = -1
        if self.is_closed:
            self._answered.set_exception(ConnectionResetError("closed before it was sent"))
        else:
            self._transport.write(content)
        return self._answered

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        """Called by the event loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._received += data
        if self._head < 0:
            self._head = self._received.find(b"\r\n\r\n")
            if self._head < 0:
                return
            head = bytes(self._received[: self._head]).lower()
            self._end = self._head + 4 + int(_after(head, b"content-length:"))
            if _after(head, b"connection:") == b"close":
                self.is_closed = True
        if len(self._received) >= self._end and not self._answered.done():
            content = bytes(self._received)
            self._answered.set_result((content[: self._head], content[self._head + 4 :]))
            if self.is_closed:
                self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the event loop."""
        self.is_closed = True
        if self._answered is not None and not self._answered.done():
            told = f"closed after {len(self._received)} bytes of the answer"
            self._answered.set_exception(error or ConnectionResetError(told))


def _after(head: bytes, name: bytes) -> bytes:
    """The value of a header in a lower-case head; 0 where there is none."""
    place = head.find(b"\r\n" + name)
    if place < 0:
        return b"0"
    end = head.find(b"\r\n", place + 2)
    return head[place + 2 + len(name) : end if end >= 0 else None].strip()
