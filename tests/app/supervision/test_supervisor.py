"""When the supervisor starts, replaces and stops workers, with workers that do nothing."""

import os
import signal
import socket
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path

import pytest

from app.observability.shared_metrics import MetricsShare
from app.settings import Settings
from app.supervision import supervisor as supervision
from app.supervision.messages import WorkerFailed, WorkerReport, WorkerStarted, WorkerTask
from app.supervision.supervisor import WorkerStartError, WorkerSupervisor

SERVES: list[WorkerReport] = [WorkerStarted(accepts_local_token=True)]
ERROR = "a key has 32 characters, but this one has 5; choose a longer one"


class Worker:
    """A worker that sends reports, and ends when it gets a signal, or by itself."""

    def __init__(self, reports: list[WorkerReport], *, status: int | None) -> None:
        self.pid = 1
        self.signals: list[int] = []
        self.connection, self._end = Pipe()
        self._status = status
        for report in reports:
            self._end.send(report)
        if status is not None:
            self._end.close()

    def receive(self) -> WorkerReport | None:
        try:
            report: WorkerReport = self.connection.recv()
        except EOFError:
            return None
        return report

    def send_signal(self, number: signal.Signals) -> None:
        self.signals.append(number)
        self._end.close()

    def end(self) -> None:
        self._end.close()

    def wait(self) -> int:
        return self._status or 0


class World:
    """The workers that a supervisor starts, and what it announces.

    Attributes:
        plan: of the next workers that are started, their reports, and the status with which they
            end by themselves; after the last one the service gets a signal.
        first_ends_at: the number of started workers at which the first of them ends.
        started: the workers, with their numbers.
        events: what was announced, in order.
    """

    def __init__(
        self, plan: list[tuple[list[WorkerReport], int | None]], first_ends_at: int | None
    ) -> None:
        self.plan = plan
        self.first_ends_at = first_ends_at
        self.started: list[tuple[int, Worker]] = []
        self.events: list[str] = []

    def start(self, task: WorkerTask, sockets: list[socket.socket]) -> Worker:
        assert not sockets
        reports, status = self.plan.pop(0)
        if not self.plan:
            os.kill(os.getpid(), signal.SIGTERM)
        worker = Worker(reports, status=status)
        number = task.metrics_share.worker
        self.started.append((number, worker))
        self.events.append(f"start {number}")
        if len(self.started) == self.first_ends_at:
            self.started[0][1].end()
        return worker


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Restores the handlers of the test run."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def supervise(
    monkeypatch: pytest.MonkeyPatch,
    directory: Path,
    *plan: tuple[list[WorkerReport], int | None],
    first_ends_at: int | None = None,
) -> tuple[World, int | str]:
    """Run a supervisor of two workers to its end; return its status, or its error."""
    world = World([*plan], first_ends_at)
    monkeypatch.setattr(supervision, "WorkerProcess", world.start)
    monkeypatch.setattr(supervision, "_FIRST_PAUSE_SECONDS", 0.01)
    supervisor = WorkerSupervisor(
        WorkerTask(
            Settings(workers=2),
            is_demo=False,
            local_token="secret",
            metrics_share=MetricsShare.of_first_worker(directory),
        ),
        on_first=lambda _: world.events.append("first"),
        on_all=lambda _: world.events.append("all"),
        bind=list,
    )
    try:
        return world, supervisor.run()
    except WorkerStartError as error:
        return world, str(error)


def test_the_others_start_once_the_first_serves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, status = supervise(monkeypatch, tmp_path, (SERVES, None), (SERVES, 7), (SERVES, None))
    assert status == 0
    assert world.events == ["start 1", "first", "start 2", "all", "start 2"]
    assert [worker.signals for _, worker in world.started if worker.signals] == [[15], [15]]


def test_a_first_worker_that_cannot_start_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = ([WorkerFailed(ERROR)], 1)
    world, error = supervise(monkeypatch, tmp_path, failing, (SERVES, None))
    assert (world.events, error) == (["start 1"], ERROR)


def test_a_second_that_cannot_start_ends_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, status = supervise(monkeypatch, tmp_path, (SERVES, None), ([], 3), (SERVES, None))
    assert status == 3
    assert world.events == ["start 1", "first", "start 2"]
    assert world.started[0][1].signals == [signal.SIGINT]


def test_a_replacement_that_cannot_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = ([WorkerFailed(ERROR)], 1)
    world, status = supervise(
        monkeypatch, tmp_path, (SERVES, None), (SERVES, -9), failing, failing, (SERVES, None)
    )
    assert status == 0
    assert world.events == ["start 1", "first", "start 2", "all", "start 2", "start 2", "start 2"]


def test_the_service_ends_if_no_worker_serves_or_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = ([WorkerFailed(ERROR)], 1)
    plan = [(SERVES, None), (SERVES, -9), *[failing] * 4, (SERVES, None)]
    world, error = supervise(monkeypatch, tmp_path, *plan, first_ends_at=3)
    assert world.events[:5] == ["start 1", "first", "start 2", "all", "start 2"]
    assert error == ERROR


def test_pauses_grow_with_failures_up_to_a_limit() -> None:
    pauses = [supervision._compute_pause(failures) for failures in (0, 1, 2, 3, 100)]
    assert pauses == [0.0, 1.0, 2.0, 4.0, 30.0]
