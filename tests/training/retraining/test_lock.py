import multiprocessing
import os
import signal
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from training.retraining.lock import AlreadyRunningError, lock_file


def test_a_second_process_is_refused_with_the_holders_name(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    message = rf"process {os.getpid()} on"
    with lock_file(file), pytest.raises(AlreadyRunningError, match=message), lock_file(file):
        raise AssertionError("two have it")


def test_a_released_lock_is_free(tmp_path: Path) -> None:
    for _ in range(2):
        with lock_file(tmp_path / "lock"):
            pass


def test_an_error_releases_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lock_file(tmp_path / "lock"):
        raise ZeroDivisionError
    with lock_file(tmp_path / "lock"):
        pass


def hold(file: Path, held: Event) -> None:
    with lock_file(file):
        held.set()
        signal.pause()


def test_a_killed_process_releases_the_lock(tmp_path: Path) -> None:
    file, spawn = tmp_path / "lock", multiprocessing.get_context("spawn")
    held = spawn.Event()
    process = spawn.Process(target=hold, args=(file, held))
    process.start()
    assert held.wait(60)
    message = rf"process {process.pid} on .*, since 2"
    with pytest.raises(AlreadyRunningError, match=message), lock_file(file):
        raise AssertionError("two have it")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(10)
    with lock_file(file):
        pass
