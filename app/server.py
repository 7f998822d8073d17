"""Running the service as a process: `kairos serve`, or `python -m app.server`."""

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from types import FrameType

import uvicorn

from app.serving.shutdown import ShutdownState
from app.settings import Settings

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SWITCH_SECONDS = 0.0005
_GRACE_SECONDS = 4
_LAST_CALL_SECONDS = 0.2


def run(settings: Settings) -> None:
    """Serve until told to stop; answers what is in flight before it goes.

    SIGTERM: `/health/ready` says no for `drain_seconds`, and only then nobody new is let in.
    SIGINT: nobody new is let in. Either, a second time: the process ends as it stands.
    """
    # Read when the numeric libraries are first imported. One answer is cheapest on one thread, and
    # two OpenMP runtimes with a thread per core each would fight over every core.
    for variable in _THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")

    import torch  # noqa: PLC0415 - after the variables above

    from app.main import create_app  # noqa: PLC0415
    from app.observability.logs import configure_logs  # noqa: PLC0415

    torch.set_num_threads(1)
    # While a bundle is opened on one thread, an answer on another takes the interpreter's lock back
    # after each of its many tensor operations, and waits so long for it every time.
    sys.setswitchinterval(_SWITCH_SECONDS)
    configure_logs(settings.log_format, settings.log_level)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        # Nothing speaks it, and its handshakes would be logged with their paths.
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = DrainingServer(
        config, app.state.context.shutdown, drain_seconds=settings.drain_seconds
    )
    # What has been imported by now stays: a collection need not look through it every time.
    gc.collect()
    gc.freeze()
    # Uvicorn raises the signal that stopped it again once everything is answered; to have been
    # told to stop is no failure.
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, _leave)
    server.run()
    if not server.started:
        sys.exit(1)


class DrainingServer(uvicorn.Server):
    """A server that says it is going to stop before it does, so that nobody is cut off."""

    def __init__(
        self, config: uvicorn.Config, leaving: ShutdownState, *, drain_seconds: float
    ) -> None:
        super().__init__(config)
        self._leaving = leaving
        self._drain_seconds = drain_seconds
        self._stops_at = float("inf")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Called by a signal."""
        if self._leaving.has_begun:
            os._exit(128 + sig)
        self._leaving.begin()
        self._stops_at = time.monotonic()
        if sig == signal.SIGTERM:
            self._stops_at += self._drain_seconds
        self._captured_signals.append(sig)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; answers whether to stop now."""
        return await super().on_tick(counter) or time.monotonic() >= self._stops_at

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody in any more, and answer those who are."""
        for listener in self.servers:
            listener.close()
        # Uvicorn closes connections that have not asked anything yet; theirs may be on its way.
        await asyncio.sleep(_LAST_CALL_SECONDS)
        await super().shutdown(sockets)


def _leave(_: int, __: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    run(Settings())
