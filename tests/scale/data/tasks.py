"""Tasks that record which node began them."""

import time
from dataclasses import dataclass
from pathlib import Path

from model.errors import EventSourceError


@dataclass(frozen=True)
class RecordedTask:
    """A task whose beginnings are recorded in a directory; it never ends on the lost node."""

    number: int
    directory: Path
    lost_node: str


def run_recorded(task: RecordedTask) -> int:
    """Record the task and its node; wait until another has begun on the lost node."""
    import ray  # noqa: PLC0415 - slow to import

    node = ray.get_runtime_context().get_node_id()
    (task.directory / f"{task.number} {node}").touch()
    deadline = time.monotonic() + 60
    while node == task.lost_node or not has_begun_on(task.lost_node, task.directory):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no node was lost within a minute, of tasks in {task.directory}")
        time.sleep(0.01)
    return task.number


def has_begun_on(node: str, directory: Path) -> bool:
    """Return whether a task has begun on a node."""
    return any(file.name.endswith(node) for file in directory.iterdir())


def fail_or_wait(directory: Path | None) -> None:
    """Fail without a directory; else record in it that a minute has passed."""
    if directory is None:
        raise EventSourceError("a task succeeds, but this one does not; leave it out")
    directory.mkdir()
    for _ in range(6_000):  # Ray interrupts a task between two steps of Python
        time.sleep(0.01)
    (directory / "ended").touch()


def has_ended(directory: Path) -> bool:
    """Return whether a task recorded that it waited a minute."""
    return (directory / "ended").exists()
