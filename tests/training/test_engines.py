"""Engines: the same results in this process and in others; errors arrive with their message."""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from model.errors import BundleError, EventSourceError, KairosError, MissingPackageError
from training.engines import open_engine


def die(number: int) -> int:
    os._exit(number)


def refuse(error: Exception) -> None:
    raise error


def fail_or_wait(directory: Path | None) -> None:
    """Record that a task began, and wait until all may end."""
    if directory is None:
        raise EventSourceError("a task succeeds, but this one does not; leave it out")
    directory.mkdir()
    deadline = time.monotonic() + 30
    while not (directory.parent / "may-end").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def double(number: int) -> int:
    if number == 13:
        raise EventSourceError("a number is lucky, but 13 is not; leave it out")
    return 2 * number


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_has_one_result(workers: int) -> None:
    with open_engine("local", workers) as engine:
        results = sorted(engine.run(double, range(12)))
    assert results == list(range(0, 24, 2))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_expected_error_keeps_its_message(workers: int) -> None:
    with (
        open_engine("local", workers) as engine,
        pytest.raises(EventSourceError, match="13 is not; leave it out"),
    ):
        list(engine.run(double, [13]))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("error", [BundleError("a bundle"), FileNotFoundError(2, "gone")])
def test_an_expected_error_keeps_its_kind(workers: int, error: Exception) -> None:
    kind = OSError if isinstance(error, OSError) else type(error)
    with open_engine("local", workers) as engine, pytest.raises(kind, match=r"bundle|gone"):
        list(engine.run(refuse, [error]))


def test_a_process_killed_for_memory_is_explained() -> None:
    with (
        open_engine("local", workers=2) as engine,
        pytest.raises(KairosError, match="fewer --workers, or prepare the events into more"),
    ):
        list(engine.run(die, range(9, 13)))


def test_tasks_that_wait_are_left_out_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutdown = ProcessPoolExecutor.shutdown

    def end(pool: ProcessPoolExecutor, *, cancel_futures: bool = False) -> None:
        (tmp_path / "may-end").touch()
        shutdown(pool, cancel_futures=cancel_futures)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", end)
    tasks = [None, *(tmp_path / name for name in ("first", "second", "third"))]
    with pytest.raises(EventSourceError), open_engine("local", workers=2) as engine:
        list(engine.run(fail_or_wait, tasks))
    assert (tmp_path / "may-end").exists()
    assert not (tmp_path / "third").exists()


def test_a_missing_ray_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingPackageError, match=r"pip install 'kairos\[scale\]'"),
        open_engine("ray"),
    ):
        pass
