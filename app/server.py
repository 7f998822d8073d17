"""The service as a process: `kairos serve`, or `python -m app.server`."""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from pydantic import ValidationError

from app.announcement import build_dashboard_link, publish_local_token
from app.auth.local_token import LocalToken, TokenFile
from app.listening import require_address
from app.observability.logs import configure_process_logs, log_loop_exception
from app.observability.shared_metrics import MetricsShare
from app.serving.shutdown import ShutdownState
from app.settings import Settings, format_settings_error
from app.supervision.supervisor import supervise
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


@dataclass(frozen=True, slots=True)
class WorkerRole:
    """What a process has of the workers that it is one of.

    Attributes:
        sockets: bound to the address of the service, which all workers share.
        local_token: that all workers accept.
        metrics_share: where all workers count.
    """

    sockets: list[socket.socket]
    local_token: LocalToken
    metrics_share: MetricsShare


def run(
    settings: Settings,
    *,
    is_demo: bool = False,
    announce_link: Callable[[str], None] | None = None,
) -> None:
    """Serve until a signal stops the process; requests in progress are completed first.

    SIGTERM: `/health/ready` fails for `drain_seconds`, then no new connection is accepted.
    SIGINT: no new connection is accepted. A second signal of either kind ends the process at once.
    With several workers, this process starts and replaces them, and serves no request itself.

    Args:
        is_demo: whether programs of this user may make the demo's requests without a token.
        announce_link: called once connections are accepted, with the address of the dashboard. It
            holds the local token if that takes the place of a key, so it must not be logged.

    Raises:
        AddressError: if the address cannot be listened on.
        WorkerStartError: if one of several workers cannot start.
    """
    if settings.workers > 1:
        supervise(settings, is_demo=is_demo, announce_link=announce_link)
        return
    require_address(settings.host, settings.port)
    token_file: TokenFile | None = None

    def handle_start(context: "AppContext", port: int) -> None:
        nonlocal token_file
        is_accepted = context.access_control.accepts_local_token
        token_file = publish_local_token(
            settings, context.local_token, port, is_accepted=is_accepted
        )
        if announce_link is not None:
            announce_link(build_dashboard_link(settings, port, token_file, is_accepted=is_accepted))

    try:
        serve(settings, is_demo=is_demo, on_start=handle_start)
    finally:
        if token_file is not None:
            token_file.remove()


def serve(
    settings: Settings,
    *,
    is_demo: bool,
    on_start: Callable[["AppContext", int], None],
    role: WorkerRole | None = None,
) -> None:
    """Serve in this process until a signal stops it.

    Args:
        on_start: called with the port once connections are accepted.
        role: what it has of the workers that it is one of; None if it is alone.
    """
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
    configure_process_logs(settings.log_format, settings.log_level)
    app = create_app(
        settings,
        is_demo=is_demo,
        local_token=None if role is None else role.local_token,
        metrics_share=None if role is None else role.metrics_share,
    )
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
    server = DrainingServer(
        config,
        context.shutdown,
        drain_seconds=settings.drain_seconds,
        on_start=lambda port: on_start(context, port),
        shared_sockets=None if role is None else role.sockets,
    )
    # Modules imported so far are permanent: exclude them from garbage collection. Their garbage, a
    # megabyte, is excluded as well: to collect it takes a third of a second.
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    gc.enable()
    # After a graceful stop uvicorn raises the signal again; that must not count as a failure.
    for graceful in (signal.SIGTERM, signal.SIGINT):
        signal.signal(graceful, _exit_successfully)
    server.run()
    if not server.started:
        sys.exit(1)


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
        shared_sockets: list[socket.socket] | None = None,
    ) -> None:
        """Create a server.

        Args:
            on_start: called with the port once connections are accepted.
            shared_sockets: bound to an address that other processes share. Their supervisor ends
                them at once if it must, so a second signal does not.
        """
        super().__init__(config)
        # `shutdown` is a method of uvicorn's server.
        self._shutdown_state = shutdown
        self._drain_seconds = drain_seconds
        self._on_start = on_start
        self._shared_sockets = shared_sockets
        self._stops_at = float("inf")

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, and announce the port."""
        asyncio.get_running_loop().set_exception_handler(log_loop_exception)
        await super().startup(sockets or self._shared_sockets)
        for listener in [each for server in self.servers for each in server.sockets]:
            # Connections inherit it. The kernel would buffer megabytes for a client that does not
            # read, and copy them while others wait.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            await self._duplicate(listener)
        self._on_start(self.servers[0].sockets[0].getsockname()[1])

    async def _duplicate(self, listener: socket.socket) -> None:
        """Add listeners that accept connections from the queue of a given one."""
        from app.connections import LISTENERS  # noqa: PLC0415 - after the variables of `serve`

        loop = asyncio.get_running_loop()
        for _ in range(LISTENERS - 1):
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
            if self._shared_sockets is None:
                os._exit(128 + sig)
            return
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
        await super().shutdown(sockets or self._shared_sockets)


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
