"""Timing the stages of an answer, without knowing what keeps the times."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

Stage = Literal["encode", "search", "filter", "explain"]
"""The parts of an answer that take time: running the model, searching the index, making sure of the
filters, working out occlusion."""

Stages = Callable[[Stage], AbstractContextManager[None]]
"""Enters a stage; leaving the context ends it."""


@contextmanager
def untimed(_: Stage) -> Iterator[None]:
    """For those who do not want to know."""
    yield
