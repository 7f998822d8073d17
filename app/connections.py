"""Bounds on connections: how many there are, and how long and how much each may keep waiting.

Behind a proxy, slow and idle clients end there. A process that clients reach directly bounds them
itself, so that no client can take the descriptors or the memory that others need. uvicorn has a
limit for idle keep-alive connections only.
"""

import asyncio
import ipaddress
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, final
from uuid import uuid4

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from app.errors import (
    HeadTooLargeError,
    MalformedRequestError,
    RequestTimeoutError,
    ServiceError,
    TooManyConnectionsError,
)
from app.http.problems import build_error_response
from app.observability.metrics import Metrics
from app.response_transport import ResponseTransport
from app.settings import Settings

MAX_HEAD_BYTES = 64 * 1024
"""Most bytes of a request line with its headers; also of everything else that is not body."""

_FRAMING_BYTES = 8
"""Bytes of chunk headers allowed per byte of a body: chunks of one byte have five."""

_MOST_WAITING = 16
"""Requests of one connection that may wait while it is being answered; one read has thousands."""

_LEAST_BYTES = 64 * 1024
"""Bytes of a response that a client must read within the time limit."""

_IPV6_SITE = 64

LISTENERS = 16
"""Listeners on each address. Each accepts one connection per iteration of uvloop's event loop, and
under load an iteration takes a tenth of a second: one listener alone kept 500 clients waiting for
more than a minute."""

_CLOSING = 2 * LISTENERS
"""Most connections that are replaced but not closed yet: uvloop closes one two iterations later."""

Reason = Literal["headers", "body", "response", "evicted", "refused", "malformed"]


@final
@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The bounds of one process.

    Attributes:
        connections: most open connections.
        per_address: most open connections of one IPv4 address, or one IPv6 /64 network.
        backlog: most connections that the kernel completes before the process accepts them.
        headers_seconds: time limit from the connection, or the first byte of a later request, to
            the end of the headers.
        body_seconds: time limit from there to the end of the body.
        response_seconds: time in which the client must read 64 KiB of a response, or its rest.
    """

    connections: int
    per_address: int
    backlog: int
    headers_seconds: float
    body_seconds: float
    response_seconds: float

    @classmethod
    def from_settings(
        cls, settings: Settings, descriptors: int | None = None
    ) -> "ConnectionLimits":
        """Build the limits that settings ask for, as far as the descriptors allow them.

        Half of the descriptors are left for connections that wait to be accepted, the database and
        files. The other half has room for the connections that are being closed as well.

        Args:
            descriptors: most open files of the process; by default its limit.
        """
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if descriptors is None else descriptors
        connections = min(settings.max_connections, max(most // 2 - _CLOSING, 1))
        return cls(
            connections=connections,
            per_address=min(settings.max_connections_per_address, connections),
            backlog=min(2048, max(most // 4, 1)),
            headers_seconds=settings.headers_timeout_seconds,
            body_seconds=settings.body_timeout_seconds,
            response_seconds=settings.response_timeout_seconds,
        )


@final
class ConnectionPool:
    """The open connections of a process, and those of them that wait for their client.

    While a limit is reached, a new connection takes the place of one that waits for its client:
    the one that has waited longest, of the address with the most of them. A connection whose
    request is being processed is never closed, so beyond that new ones are refused.
    """

    def __init__(self, limits: ConnectionLimits, metrics: Metrics) -> None:
        self.limits = limits
        self._metrics = metrics
        self._open: dict[str, set[BoundedProtocol]] = {}
        self._count = 0
        # Dictionaries keep the order of insertion: the first one has waited longest.
        self._waiting: dict[str, dict[BoundedProtocol, None]] = {}

    def admit(self, connection: "BoundedProtocol") -> TooManyConnectionsError | None:
        """Add a new connection, or return why it is refused."""
        limits, network = self.limits, connection.network
        if len(self._open.get(network, ())) >= limits.per_address and not self._evict(network):
            return TooManyConnectionsError("one address", limits.per_address)
        if self._count >= limits.connections and not self._evict(self._find_greediest()):
            return TooManyConnectionsError("a process", limits.connections)
        self._open.setdefault(network, set()).add(connection)
        self._count += 1
        return None

    def remove(self, connection: "BoundedProtocol") -> None:
        """Remove a connection that is closed or about to be; it may be removed already."""
        self.set_waiting(connection, waits=False)
        opened = self._open.get(connection.network)
        if opened is None or connection not in opened:
            return
        opened.remove(connection)
        self._count -= 1
        if not opened:
            del self._open[connection.network]

    def set_waiting(self, connection: "BoundedProtocol", *, waits: bool) -> None:
        """Note whether a connection waits for its client, or its client for the service."""
        network = connection.network
        if waits:
            if connection in self._open.get(network, ()):
                self._waiting.setdefault(network, {}).setdefault(connection)
        elif (waiting := self._waiting.get(network)) is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._waiting[network]

    def count(self, reason: Reason) -> None:
        """Count a connection that a limit closed."""
        self._metrics.connections_closed.labels(reason).inc()

    def _find_greediest(self) -> str:
        """Find the network with the most connections that wait; "" if none does."""
        return max(self._waiting, key=lambda network: len(self._waiting[network]), default="")

    def _evict(self, network: str) -> bool:
        """Close the connection of a network that has waited longest; False if none waits."""
        victim = next(iter(self._waiting.get(network, ())), None)
        if victim is None:
            return False
        victim.close("evicted")
        return True


@final
class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with the limits of a pool."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        pool: ConnectionPool,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.network = ""
        self._pool = pool
        self._spare = MAX_HEAD_BYTES
        self._is_reading_head = self._is_reading_body = False
        self._refusal: ServiceError | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the time limit of the first request, or refuse the connection."""
        joining = cast(asyncio.Transport, ResponseTransport(transport, self.loop))
        super().connection_made(joining)
        self.network = _get_network("" if self.client is None else self.client[0])
        refusal = self._pool.admit(self)
        if refusal is None:
            self._pool.set_waiting(self, waits=True)
            self._limit_reading()
        else:
            self.close("refused", refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the place of the connection."""
        self._release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what the client sent, and bound what is not part of a body."""
        if self.transport.is_closing():
            return
        self._spare -= len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._spare < 0 and self._is_reading:
            self.close("malformed", self._build_size_error())
            return
        if self._is_reading or not self._is_busy:
            self._limit_reading()
        self._pool.set_waiting(self, waits=self._waits_for_client)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._spare = MAX_HEAD_BYTES
        self._is_reading_head = True

    def on_headers_complete(self) -> None:
        """Check the size of the headers, and start to handle the request."""
        head = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if head > MAX_HEAD_BYTES and not self._is_reading_body:
            self._refusal = self._build_size_error()
            # The parser reports it to `send_400_response`.
            raise self._refusal
        if len(self.pipeline) >= _MOST_WAITING:
            self._refusal = MalformedRequestError(
                f"at most {_MOST_WAITING} requests may wait for their responses on one connection, "
                "and that many do; send the next one after a response"
            )
            raise self._refusal
        super().on_headers_complete()
        self._is_reading_head, self._is_reading_body = False, True
        # The body has a time limit of its own.
        self._cancel_reading()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self._spare = min(self._spare + (1 + _FRAMING_BYTES) * len(body), MAX_HEAD_BYTES)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the time limit of the request."""
        super().on_message_complete()
        self._is_reading_body = False
        self._spare = MAX_HEAD_BYTES
        self._cancel_reading()

    def on_response_complete(self) -> None:
        """Wait for the next request, or handle the next one of a pipeline."""
        super().on_response_complete()
        if self.pipeline:
            # uvicorn reads on after every response, however many requests wait.
            self.flow.pause_reading()
        if self.transport.get_write_buffer_size():
            self._limit_writing()
        self._pool.set_waiting(self, waits=self._waits_for_client)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own text
        """Refuse a request that is not HTTP, or too large, with a problem document."""
        self.close(
            "malformed",
            self._refusal
            or MalformedRequestError(
                "a request must be well-formed HTTP/1.1, but this one is not; check its request "
                "line and headers"
            ),
        )

    def pause_writing(self) -> None:
        """Begin the time limit for the client to read the response."""
        super().pause_writing()
        self._limit_writing()
        self._pool.set_waiting(self, waits=True)

    def resume_writing(self) -> None:
        """End the time limit for the client to read the response."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if self.transport.get_write_buffer_size():
            self._limit_writing()
        self._pool.set_waiting(self, waits=self._waits_for_client)

    def close(self, reason: Reason, error: ServiceError | None = None) -> None:
        """Close the connection, with a response to the request that `error` is about."""
        self._pool.count(reason)
        self._release()
        has_unread = self.transport.get_write_buffer_size() > 0
        cycle = self.cycle
        if error is not None and (
            cycle is None or cycle.response_complete or not cycle.response_started
        ):
            self.transport.write(_render(error))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        # A response that the client does not read would delay an orderly close for ever.
        if has_unread:
            self.transport.abort()
        else:
            self.transport.close()

    @property
    def _is_reading(self) -> bool:
        return self._is_reading_head or self._is_reading_body

    @property
    def _is_busy(self) -> bool:
        """Whether a complete request is being processed."""
        return (
            self.cycle is not None
            and not self.cycle.response_complete
            and not self._is_reading_body
        )

    @property
    def _waits_for_client(self) -> bool:
        return self.flow.write_paused or not self._is_busy

    def _limit_reading(self) -> None:
        """Begin the time limit of the headers or the body, unless it has begun."""
        if self._reading is None:
            limits = self._pool.limits
            seconds = limits.body_seconds if self._is_reading_body else limits.headers_seconds
            self._reading = self.loop.call_later(seconds, self._end_reading)

    def _end_reading(self) -> None:
        self._reading = None
        if self.flow.read_paused:
            # The service does not read; the client cannot help it.
            self._limit_reading()
        elif self._is_reading_body:
            error = RequestTimeoutError.build("body", self._pool.limits.body_seconds)
            self.close("body", error)
        elif self._is_reading_head:
            error = RequestTimeoutError.build("headers", self._pool.limits.headers_seconds)
            self.close("headers", error)
        else:
            self.close("headers")

    def _cancel_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _limit_writing(self) -> None:
        """Begin the time limit for the client to read more of the response, unless it has begun."""
        if self._writing is None:
            unread = self.transport.get_write_buffer_size()
            self._writing = self.loop.call_later(
                self._pool.limits.response_seconds, self._check_writing, unread
            )

    def _check_writing(self, unread: int) -> None:
        self._writing = None
        left = self.transport.get_write_buffer_size()
        if left > max(unread - _LEAST_BYTES, 0):
            self.close("response")
        elif left:
            self._limit_writing()

    def _release(self) -> None:
        self._pool.remove(self)
        self._cancel_reading()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _build_size_error(self) -> ServiceError:
        if len(self.url) > MAX_HEAD_BYTES // 2:
            return MalformedRequestError(
                f"a request line has at most {MAX_HEAD_BYTES // 2} bytes, but this one has more; "
                "send less in the query"
            )
        return HeadTooLargeError(
            f"the headers of a request have at most {MAX_HEAD_BYTES} bytes, but these have more; "
            "send fewer or shorter ones"
        )


def bind_protocol(pool: ConnectionPool) -> type[asyncio.Protocol]:
    """Build the protocol that uvicorn makes for each connection."""

    def build(**arguments: Any) -> BoundedProtocol:
        return BoundedProtocol(**arguments, pool=pool)

    # uvicorn only calls it.
    return cast(type[asyncio.Protocol], cast(Callable[..., Any], build))


def _get_network(host: str) -> str:
    """Return the network of a client: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address.packed, _IPV6_SITE), strict=False))


def _render(error: ServiceError) -> bytes:
    """Render a response below ASGI; it closes the connection."""
    request_id = uuid4().hex
    response = build_error_response({"state": {"request_id": request_id}}, error)
    response.headers["X-Request-ID"] = request_id
    response.headers["Connection"] = "close"
    response.headers["Cache-Control"] = "no-store"
    head = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
    return STATUS_LINE[error.status] + head + b"\r\n" + bytes(response.body)
