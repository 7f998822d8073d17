"""The service as a process: `kairos serve`, or `python -m app.server`."""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import structlog
import uvicorn
from pydantic import ValidationError

from app.auth.local_token import TokenFile, resolve_runtime_directory, write_token_file
from app.observability.logs import (
    configure_logs,
    log_loop_exception,
    log_uncaught_exceptions,
)
from app.serving.shutdown import ShutdownState
from app.settings import Settings, format_settings_error
from model.errors import KairosError, format_error

if TYPE_CHECKING:
    from app.context import AppContext

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SWITCH_SECONDS = 0.0005
_GARBAGE_THRESHOLDS = (2_000, 20, 500)
"""Of `gc.set_threshold`. A full collection beside the hundred thousand objects of a sweep stops all
threads for a tenth of a second; little of the service forms cycles, so it is rare."""
_GRACE_SECONDS = 4
_ACCEPTED_CONNECTIONS_SECONDS = 0.2
_SEND_BUFFER_BYTES = 128 * 1024
_LISTENERS = 16
"""Listeners on each address. Each accepts one connection per iteration of uvloop's event loop, and
under load an iteration takes a tenth of a second: one listener alone kept 500 clients waiting for
more than a minute."""

_log = structlog.get_logger()


class AddressError(KairosError):
    """The service cannot listen on its address."""

    code = "address"


def run(
    settings: Settings,
    *,
    is_demo: bool = False,
    announce_link: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal stops the process; requests in progress are completed first.

    SIGTERM: `/health/ready` fails for `drain_seconds`, then no new connection is accepted.
    SIGINT: no new connection is accepted. A second signal of either kind ends the process at once.

    Args:
        is_demo: whether programs of this user may make the demo's requests without a token.
        announce_link: called once connections are accepted, with the address of the dashboard. It
            holds the local token if that takes the place of a key, so it must not be logged.

    Raises:
        AddressError: if the address cannot be listened on.
    """
    _require_address(settings.host, settings.port)
    # Read when the numeric libraries are first imported. One thread per response is cheapest, and
    # two OpenMP runtimes with a thread per core each would compete for every core.
    for variable in _THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    # Imports create objects that stay; collections would visit them over and over. What was before
    # in this process is collected: the demo trains in it.
    gc.collect()
    gc.disable()

    import torch  # noqa: PLC0415 - after the variables above

    from app.connections import ConnectionLimits, ConnectionPool, bind_protocol  # noqa: PLC0415
    from app.main import create_app  # noqa: PLC0415

    torch.set_num_threads(1)
    # While one thread opens a bundle, a request on another reacquires the interpreter lock after
    # each of its many tensor operations, and waits up to this interval every time.
    sys.setswitchinterval(_SWITCH_SECONDS)
    configure_logs(settings.log_format, settings.log_level)
    if settings.log_level != "debug":
        log_uncaught_exceptions()
    app = create_app(settings, is_demo=is_demo)
    limits = ConnectionLimits.from_settings(settings)
    config = uvicorn.Config(
        app,
        http=bind_protocol(ConnectionPool(limits, app.state.context.metrics)),
        backlog=limits.backlog,
        timeout_keep_alive=settings.keep_alive_seconds,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        # No route uses WebSockets, and their handshakes would be logged with their paths.
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    context: AppContext = app.state.context
    token_file: TokenFile | None = None

    def handle_start(port: int) -> None:
        nonlocal token_file
        token_file = _publish_local_token(context, port)
        if announce_link is not None:
            announce_link(_build_dashboard_link(context, port, token_file))

    server = DrainingServer(
        config, context.shutdown, drain_seconds=settings.drain_seconds, on_start=handle_start
    )
    # Modules imported so far are permanent: exclude them from garbage collection. Their garbage, a
    # megabyte, is excluded as well: to collect it takes a third of a second.
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    gc.enable()
    # After a graceful stop uvicorn raises the signal again; that must not count as a failure.
    for graceful in (signal.SIGTERM, signal.SIGINT):
        signal.signal(graceful, _exit_successfully)
    try:
        server.run()
    finally:
        if token_file is not None:
            token_file.remove()
    if not server.started:
        sys.exit(1)


def _require_address(host: str, port: int) -> None:
    """Require an address that is free to listen on, before anything is opened.

    Raises:
        AddressError: if there is no such address on this machine, or another process listens on it.
    """
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = resolved[0]
        with socket.socket(family, kind, protocol) as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            attempt.bind(address)
    except OSError as error:
        raise AddressError(
            f"the service listens on an address of this machine that is free, but {host} port "
            f"{port} is not: {error.strerror}; stop the process that listens there, or set "
            "KAIROS_HOST and KAIROS_PORT"
        ) from error


def _publish_local_token(context: "AppContext", port: int) -> TokenFile | None:
    """Write the local token for programs of this user; return None if there is no place for it.

    That does not prevent the start: with API keys nobody needs the token.
    """
    try:
        directory = resolve_runtime_directory(context.settings.runtime_directory)
        return write_token_file(
            directory, context.local_token, host=context.settings.host, port=port
        )
    except (OSError, RuntimeError) as error:
        is_needed = context.access_control.accepts_local_token
        (_log.warning if is_needed else _log.info)(
            "local_token_not_written",
            error=str(error),
            consequence="requests need an API key",
            remedy="set KAIROS_RUNTIME_DIRECTORY to a directory that this user can write",
        )
        return None


def _build_dashboard_link(context: "AppContext", port: int, token_file: TokenFile | None) -> str:
    if token_file is None:
        return f"http://{context.settings.host}:{port}/dashboard/"
    service = token_file.service
    has_token = context.access_control.accepts_local_token
    return service.dashboard_link if has_token else f"{service.url}/dashboard/"


class DrainingServer(uvicorn.Server):
    """A uvicorn server that reports not ready for a while before it stops accepting connections.

    It accepts several connections at a time, so that new clients do not wait for those before them.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        shutdown: ShutdownState,
        *,
        drain_seconds: float,
        on_start: Callable[[int], None],
    ) -> None:
        """Create a server; `on_start` is called with the port once connections are accepted."""
        super().__init__(config)
        # `shutdown` is a method of uvicorn's server.
        self._shutdown_state = shutdown
        self._drain_seconds = drain_seconds
        self._on_start = on_start
        self._stops_at = float("inf")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and announce the port."""
        asyncio.get_running_loop().set_exception_handler(log_loop_exception)
        await super().startup(sockets)
        for listener in [each for server in self.servers for each in server.sockets]:
            # Connections inherit it. The kernel would buffer megabytes for a client that does not
            # read, and copy them while others wait.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            await self._duplicate(listener)
        self._on_start(self.servers[0].sockets[0].getsockname()[1])

    async def _duplicate(self, listener: socket.socket) -> None:
        """Add listeners that accept connections from the queue of a given one."""
        loop = asyncio.get_running_loop()
        for _ in range(_LISTENERS - 1):
            duplicate = socket.socket(fileno=os.dup(listener.fileno()))
            self.servers.append(
                await loop.create_server(
                    self._build_protocol, sock=duplicate, backlog=self.config.backlog
                )
            )

    def _build_protocol(self) -> asyncio.Protocol:
        build: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return build(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Handle a signal: begin the shutdown, or end the process on the second one."""
        if self._shutdown_state.has_begun:
            os._exit(128 + sig)
        self._shutdown_state.begin()
        self._stops_at = time.monotonic()
        if sig == signal.SIGTERM:
            self._stops_at += self._drain_seconds
        self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        """Run ten times a second; return whether to stop now."""
        return await super().on_tick(counter) or time.monotonic() >= self._stops_at

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and complete the requests of the accepted ones."""
        for listener in self.servers:
            listener.close()
        # Uvicorn closes connections without a request yet, though one may be on its way.
        await asyncio.sleep(_ACCEPTED_CONNECTIONS_SECONDS)
        await super().shutdown(sockets)


def _exit_successfully(_: int, __: FrameType | None) -> None:
    sys.exit(0)


def main() -> None:
    """Serve with the settings of the environment; an invalid one ends the process with one line."""
    try:
        run(Settings())
    except ValidationError as error:
        sys.exit(f"error {format_settings_error(error)}")
    except KairosError as error:
        sys.exit(f"error {format_error(error)}")


if __name__ == "__main__":
    main()
