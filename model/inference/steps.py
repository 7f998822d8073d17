"""Long computations in steps, between which a scheduler can run others."""

from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""A computation that pauses between its steps, and returns its result after the last one.

Whether and for how long it pauses does not change the result. Closing it abandons the rest."""


def complete(steps: Steps[T]) -> T:
    """Run every step without a pause, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as last:
            result: T = last.value
            return result


def start(build: Callable[[], Steps[T]]) -> Steps[T]:
    """Build the steps as part of the first one."""
    return (yield from build())


def run_at_once(work: Callable[[], T]) -> Steps[T]:
    """Run a function as the only step."""
    return work()
    yield
