"""Engines: the same results in this process and in others; errors arrive with their message."""

import sys

import pytest

from model.errors import EventSourceError, MissingPackageError
from training.engines import open_engine


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


def test_a_missing_ray_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingPackageError, match=r"pip install 'kairos\[scale\]'"),
        open_engine("ray"),
    ):
        pass
