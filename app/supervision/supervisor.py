"""The supervisor: it binds the address, and keeps a number of workers running that serve on it.

uvicorn's own supervisor (`uvicorn.supervisors.Multiprocess`) starts every worker with a copy of one
configuration. Its workers cannot report an error, and go on after a supervisor that was killed.
"""

import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from types import FrameType
from typing import final

import structlog

from app.announcement import build_dashboard_link, publish_local_token
from app.auth.local_token import LocalToken, TokenFile
from app.listening import bind_reserved, reserve_address
from app.observability.logs import configure_process_logs
from app.observability.shared_metrics import MetricsShare, create_metrics_directory, remove_gauges
from app.settings import Settings
from app.supervision.messages import WorkerFailed, WorkerReport, WorkerStarted, WorkerTask
from app.supervision.process import WorkerProcess
from model.errors import KairosError

_TICK_SECONDS = 0.1
_STABLE_SECONDS = 60.0
"""The end of a worker that served for so long does not belong to a series of failures."""
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0

_log = structlog.get_logger()


class WorkerStartError(KairosError):
    """A worker cannot start; the message is that of its own error."""

    code = "worker_start"


def supervise(
    settings: Settings, *, is_demo: bool, announce_link: Callable[[str], None] | None
) -> None:
    """Serve with several workers until a signal stops them; see `app.server.run`.

    Raises:
        AddressError: if the address cannot be listened on.
        MetricsDirectoryError: if there is no place for what the workers count.
        WorkerStartError: if a worker cannot start while no other one serves.
    """
    reserved = reserve_address(settings.host, settings.port)
    port = reserved[0].getsockname()[1]
    configure_process_logs(settings.log_format, settings.log_level)
    token = LocalToken()
    with ExitStack() as stack:
        for each in reserved:
            stack.enter_context(each)
        directory = create_metrics_directory()
        stack.callback(shutil.rmtree, directory, ignore_errors=True)

        token_file: TokenFile | None = None

        def publish_token(is_accepted: bool) -> None:
            nonlocal token_file
            token_file = publish_local_token(settings, token, port, is_accepted=is_accepted)
            if token_file is not None:
                stack.callback(token_file.remove)

        def announce(is_accepted: bool) -> None:
            if announce_link is not None:
                announce_link(
                    build_dashboard_link(settings, port, token_file, is_accepted=is_accepted)
                )

        supervisor = WorkerSupervisor(
            WorkerTask(
                settings,
                is_demo=is_demo,
                local_token=token.secret,
                metrics_share=MetricsShare.of_first_worker(directory),
            ),
            on_first=publish_token,
            on_all=announce,
            bind=lambda: bind_reserved(reserved),
        )
        stack.callback(supervisor.kill)
        status = supervisor.run()
    if status:
        sys.exit(status)


@dataclass(slots=True)
class _Slot:
    """The place of one worker, and of those that replace it.

    Attributes:
        process: the worker that runs; None while there is none.
        serving_since: when it began to accept connections, in seconds; None if it does not yet.
        starts_at: when to start the next one, in seconds; None for never.
        failures: number of workers in a row that ended soon.
        error: why the worker cannot start, if it reported that.
    """

    task: WorkerTask
    process: WorkerProcess | None = None
    serving_since: float | None = None
    starts_at: float | None = None
    failures: int = 0
    error: str | None = None

    @property
    def number(self) -> int:
        return self.task.metrics_share.worker


@final
class WorkerSupervisor:
    """Keeps workers running: replaces those that end, and stops all of them at a signal.

    The first worker starts alone: what prevents every start is reported once, and the schema is
    migrated once. Until all have started, a worker that cannot start ends the others as well; later
    it is started again after growing pauses, as long as another one serves.
    """

    def __init__(
        self,
        task: WorkerTask,
        *,
        on_first: Callable[[bool], None],
        on_all: Callable[[bool], None],
        bind: Callable[[], list[socket.socket]],
    ) -> None:
        """Start nothing yet.

        Args:
            task: of the first worker; those of the others differ in their number only.
            on_first: called once, when the first worker accepts connections, with whether the local
                token takes the place of a key.
            on_all: the same, when all workers do.
            bind: binds the sockets of one worker to the address of the service.
        """
        self._on_first = on_first
        self._on_all = on_all
        self._bind = bind
        share = task.metrics_share
        self._slots = [
            _Slot(replace(task, metrics_share=replace(share, worker=number)))
            for number in range(1, task.settings.workers + 1)
        ]
        self._signals: list[signal.Signals] = []
        self._has_first = False
        self._has_started = False
        self._is_stopping = False
        self._status = 0
        self._error: str | None = None

    def run(self) -> int:
        """Run workers until a signal stops them; return the exit status of the service.

        Raises:
            WorkerStartError: if a worker cannot start while no other one serves, and reported why.
        """
        for graceful in (signal.SIGTERM, signal.SIGINT):
            signal.signal(graceful, self._note_signal)
        self._slots[0].starts_at = time.monotonic()
        while not self._is_stopping or self._list_running():
            self._handle_signals()
            self._start_due()
            slots = {process.connection: slot for slot, process in self._list_running()}
            # A signal is noticed within a tick, a report at once.
            for connection in wait([*slots], _TICK_SECONDS):
                self._handle_report(slots[connection])  # type: ignore[index]
        if self._error is not None:
            raise WorkerStartError(self._error)
        return self._status

    def kill(self) -> None:
        """End the workers that still run at once."""
        for slot, process in self._list_running():
            process.send_signal(signal.SIGKILL)
            process.wait()
            slot.process = None

    def _list_running(self) -> list[tuple[_Slot, WorkerProcess]]:
        return [(slot, slot.process) for slot in self._slots if slot.process is not None]

    def _note_signal(self, number: int, _: FrameType | None) -> None:
        self._signals.append(signal.Signals(number))

    def _handle_signals(self) -> None:
        """Stop at the first signal; end the workers at once at the second."""
        while self._signals:
            number = self._signals.pop(0)
            if self._is_stopping:
                self.kill()
                self._status = 128 + number
            else:
                _log.info("workers_stopping", signal=number.name)
                self._stop(number)

    def _stop(self, number: signal.Signals) -> None:
        """Let every worker complete its requests and end; start no more."""
        self._is_stopping = True
        for slot, process in self._list_running():
            # A new interpreter that gets SIGINT would print a traceback.
            process.send_signal(number if slot.serving_since is not None else signal.SIGTERM)

    def _start_due(self) -> None:
        if self._is_stopping:
            return
        for slot in self._slots:
            if slot.starts_at is not None and time.monotonic() >= slot.starts_at:
                slot.starts_at = slot.error = None
                slot.process = WorkerProcess(slot.task, self._bind())

    def _handle_report(self, slot: _Slot) -> None:
        process = slot.process
        if process is None:  # killed a moment ago
            return
        report: WorkerReport | None = process.receive()
        match report:
            case WorkerStarted():
                slot.serving_since = time.monotonic()
                _log.info("worker_started", worker=slot.number, pid=process.pid)
                self._continue_start(report.accepts_local_token)
            case WorkerFailed():
                slot.error = report.error
            case None:
                self._handle_end(slot, process)

    def _continue_start(self, is_accepted: bool) -> None:
        """Start the other workers once one serves; announce the service once all do."""
        if self._has_started or self._is_stopping:
            return
        if not self._has_first:
            self._has_first = True
            self._on_first(is_accepted)
            for slot in self._slots[1:]:
                slot.starts_at = time.monotonic()
        elif all(slot.serving_since is not None for slot in self._slots):
            self._has_started = True
            self._on_all(is_accepted)

    def _handle_end(self, slot: _Slot, process: WorkerProcess) -> None:
        """Replace a worker that has ended, or end the service if it cannot start."""
        pid, status = process.pid, process.wait()
        serving_since, slot.process, slot.serving_since = slot.serving_since, None, None
        remove_gauges(slot.task.metrics_share)
        if self._is_stopping:
            return
        others_serve = any(each.serving_since is not None for each in self._slots)
        if serving_since is None and not (self._has_started and others_serve):
            self._error, self._status = slot.error, max(status, 1)
            self._stop(signal.SIGINT)
            return
        now = time.monotonic()
        if serving_since is not None and now - serving_since >= _STABLE_SECONDS:
            slot.failures = 0
        pause = _compute_pause(slot.failures)
        slot.failures += 1
        slot.starts_at = now + pause
        # One that ended by a signal to itself alone has completed its requests.
        (_log.error if status else _log.warning)(
            "worker_ended",
            worker=slot.number,
            pid=pid,
            status=status,
            error=slot.error,
            replaced_in_seconds=pause,
        )


def _compute_pause(failures: int) -> float:
    """Compute the pause before a worker is replaced: none at first, then longer each time."""
    if not failures:
        return 0.0
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 30), _LONGEST_PAUSE_SECONDS)
