"""Periodic tasks: each goes on after a failure, which is counted and seen by the probe."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.auth.key_cache import Key
from app.background import TaskSupervisor
from app.errors import DatabaseUnavailableError, OverloadedError
from app.keys.repository import KeyRepository
from app.observability.metrics import Metrics
from app.settings import Settings
from tests.app.client import Client, recommend, running
from tests.app.clock import Clock
from tests.processes import eventually

FAILURES = "kairos_background_task_failures_total"
INTERVAL_SECONDS = 0.001


def count_failures(metrics: Metrics, task: str = "task") -> float:
    return metrics.registry.get_sample_value(FAILURES, {"task": task}) or 0.0


class Task:
    """A task whose runs have the given outcomes, and succeed after them."""

    def __init__(self, *outcomes: BaseException) -> None:
        self._outcomes: Iterator[BaseException] = iter(outcomes)
        self._left = len(outcomes)
        self.runs = 0

    async def run(self) -> None:
        self.runs += 1
        for outcome in self._outcomes:
            raise outcome


async def supervise(task: Task, runs: int) -> tuple[Metrics, TaskSupervisor]:
    metrics = Metrics()
    supervisor = TaskSupervisor(metrics)
    async with supervisor.run_every(INTERVAL_SECONDS, "task", task.run), asyncio.timeout(30):
        while task.runs < runs:
            await asyncio.sleep(INTERVAL_SECONDS)
    return metrics, supervisor


def test_a_task_goes_on_after_a_failure() -> None:
    task = Task(RuntimeError("one"), RuntimeError("two"))
    with capture_logs() as logs:
        metrics, supervisor = asyncio.run(supervise(task, 4))
    assert count_failures(metrics) == 2
    assert supervisor.list_failing(essential=True) == []
    events = [line["event"] for line in logs]
    assert events == ["background_task_failed"] * 2 + ["background_task_recovered"]
    assert all(line["task"] == "task" for line in logs)


def test_a_task_that_something_else_cancels_goes_on() -> None:
    task = Task(asyncio.CancelledError())
    metrics, _ = asyncio.run(supervise(task, 3))
    assert count_failures(metrics) == 1


def test_an_outage_is_logged_once_and_is_no_failure() -> None:
    task = Task(*(DatabaseUnavailableError("down") for _ in range(5)))
    with capture_logs() as logs:
        metrics, supervisor = asyncio.run(supervise(task, 7))
    assert count_failures(metrics) == 0
    assert supervisor.list_failing(essential=True) == []
    assert [line["event"] for line in logs] == [
        "background_task_waiting",
        "background_task_recovered",
    ]


async def endure(error: Exception, *, seconds: float) -> tuple[Metrics, TaskSupervisor]:
    """Let a task meet one outage for some seconds."""
    metrics, clock, runs = Metrics(), Clock(), 0
    supervisor = TaskSupervisor(metrics, clock)

    async def meet() -> None:
        nonlocal runs
        runs += 1
        if runs == 2:
            clock.seconds = seconds
        raise error

    async with supervisor.run_every(INTERVAL_SECONDS, "task", meet), asyncio.timeout(30):
        while runs < 4:
            await asyncio.sleep(INTERVAL_SECONDS)
    return metrics, supervisor


def test_an_outage_that_does_not_end_is_a_failure() -> None:
    metrics, supervisor = asyncio.run(endure(DatabaseUnavailableError("down"), seconds=59.0))
    assert (count_failures(metrics), supervisor.list_failing(essential=True)) == (0, [])
    with capture_logs() as logs:
        metrics, supervisor = asyncio.run(endure(DatabaseUnavailableError("down"), seconds=60.0))
    assert count_failures(metrics) >= 2
    assert supervisor.list_failing(essential=True) == ["task"]
    assert [line["event"] for line in logs] == [
        "background_task_waiting",
        "background_task_keeps_waiting",
    ]


def test_an_overload_that_does_not_end_is_named_only() -> None:
    _, supervisor = asyncio.run(endure(OverloadedError("database_writes", 1), seconds=60.0))
    assert supervisor.list_failing(essential=True) == []
    assert supervisor.list_failing(essential=False) == ["task"]


@pytest.mark.parametrize("error", [DatabaseUnavailableError("down"), RuntimeError()])
def test_an_awaited_task_is_failing_until_its_first_success(error: Exception) -> None:
    async def scenario() -> None:
        task = Task(error)
        supervisor = TaskSupervisor(Metrics())
        async with supervisor.run_every(0.05, "task", task.run, is_awaited=True):
            assert supervisor.list_failing(essential=True) == ["task"]
            async with asyncio.timeout(30):
                while supervisor.list_failing(essential=True):
                    await asyncio.sleep(INTERVAL_SECONDS)
            assert task.runs == 2

    asyncio.run(scenario())


def test_pauses_grow_while_a_task_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def scenario() -> None:
        task = Task(*(RuntimeError() for _ in range(9)))
        supervisor = TaskSupervisor(Metrics())
        async with supervisor.run_every(0.5, "task", task.run):
            while task.runs < 11:
                await sleep(0)

    monkeypatch.setattr("app.background.asyncio.sleep", note)
    asyncio.run(scenario())
    assert pauses[:10] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 0.5]


def test_a_rare_task_is_tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def scenario() -> None:
        task = Task(DatabaseUnavailableError("down"), RuntimeError())
        async with TaskSupervisor(Metrics()).run_every(3600, "task", task.run):
            while task.runs < 4:
                await sleep(0)

    monkeypatch.setattr("app.background.asyncio.sleep", note)
    asyncio.run(scenario())
    assert pauses[:3] == [30, 30, 3600]


def test_a_task_may_run_until_it_succeeds() -> None:
    async def scenario() -> int:
        task = Task(DatabaseUnavailableError("down"), RuntimeError(), RuntimeError())
        supervisor = TaskSupervisor(Metrics())
        async with supervisor.run_until_done(INTERVAL_SECONDS, "task", task.run):
            assert task.runs == 1
            async with asyncio.timeout(30):
                while task.runs < 4:
                    await asyncio.sleep(INTERVAL_SECONDS)
            await asyncio.sleep(20 * INTERVAL_SECONDS)
        return task.runs

    assert asyncio.run(scenario()) == 4


@pytest.mark.parametrize("outcome", [DatabaseUnavailableError("down"), RuntimeError()])
def test_a_task_that_must_succeed_once_fails_at_once(outcome: Exception) -> None:
    async def scenario() -> list[list[str]]:
        task, supervisor = Task(outcome), TaskSupervisor(Metrics())
        found = []
        async with supervisor.run_until_done(INTERVAL_SECONDS, "task", task.run):
            found.append(supervisor.list_failing(essential=True))
            async with asyncio.timeout(30):
                while task.runs < 2:
                    await asyncio.sleep(INTERVAL_SECONDS)
            found.append(supervisor.list_failing(essential=True))
        return found

    assert asyncio.run(scenario()) == [["task"], []]


def test_an_unusable_log_of_erasures_makes_the_process_unready(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.main._MIGRATION_RETRY_SECONDS", 0.05)
    log = tmp_path / "erasures"
    log.mkdir()
    with running(settings) as client:
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert ready.json()["tasks"].startswith("erasures: failed")
        recommend(client)
        assert client.metric(FAILURES, task="erasures") >= 1
        log.rmdir()
        eventually(lambda: client.get("/health/ready").status_code == 200)


@contextmanager
def failing(client: Client, name: str, *, is_essential: bool) -> Iterator[None]:
    """Let a running service have a task that fails in every run."""
    supervisor = client.app.state.context.supervisor

    async def fail() -> None:
        raise RuntimeError("always")

    async def run() -> None:
        async with supervisor.run_every(INTERVAL_SECONDS, name, fail, is_essential=is_essential):
            await asyncio.Event().wait()

    running_task = client.portal.start_task_soon(run)
    eventually(lambda: supervisor.list_failing(essential=is_essential) == [name])
    yield
    running_task.cancel()


def test_a_failing_essential_task_makes_the_process_unready(client: Client) -> None:
    with failing(client, "recording", is_essential=True):
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert ready.json()["tasks"].startswith("recording: failed")
        assert client.metric(FAILURES, task="recording") >= 3


def test_a_failing_task_that_is_not_essential_is_named_only(client: Client) -> None:
    with failing(client, "trends", is_essential=False):
        ready = client.get("/health/ready")
        assert ready.status_code == 200
        assert ready.json()["tasks"].startswith("trends: failed")


def test_keys_that_were_never_read_make_the_process_unready(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: KeyRepository) -> list[Key]:
        raise DatabaseUnavailableError("takes too long")

    monkeypatch.setattr(KeyRepository, "list_all", refuse)
    with running(settings) as client:
        ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json()["tasks"].startswith("keys: failed")


def test_every_task_of_the_service_is_counted_from_zero(settings: Settings) -> None:
    with running(settings) as client:
        page = client.get("/metrics").text
    tasks = ("migration", "impressions", "expired_records", "keys", "items", "models")
    for task in (*tasks, "popularity", "training_runs"):
        assert f'{FAILURES}{{task="{task}"}} 0.0' in page
