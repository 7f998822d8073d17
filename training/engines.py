"""Runs the same function on many tasks: in this process, in processes beside it, or by Ray.

What a task does must not depend on which engine runs it, nor on how often: Ray runs the task of a
lost node again. So a task reads files, and writes files under names of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from typing import Any, Literal, Protocol, TypeVar, final

from model.errors import EventSourceError, KairosError, format_error
from training.ray_cluster import connect_to_ray

EngineName = Literal["local", "ray"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_WAITING_PER_WORKER = 2
"""Tasks given to an engine for each worker: enough that none waits, few enough to stop soon."""


_MOST_RETRIES = 10
"""Nodes that a task may lose. One that kills its process, for memory, ends the command then."""


class Engine(Protocol):
    """Maps a function over tasks."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in any order.

        Args:
            function: of a module, so that another process can import it.
            tasks: values that can be pickled.

        Raises:
            KairosError: if the function raises one, with its message.
        """
        ...


@contextmanager
def open_engine(name: EngineName, workers: int = 1) -> Iterator[Engine]:
    """Open an engine.

    Args:
        workers: processes of the local engine, where 1 is this process itself. Ray decides by the
            CPUs of its cluster.

    Raises:
        MissingPackageError: if Ray is not installed.
    """
    if name == "ray":
        with connect_to_ray() as ray:
            yield _Ray(ray)
    elif workers == 1:
        yield _ThisProcess()
    else:
        # Spawned: a fork of a process with threads, as those of Polars and PyTorch, may hang.
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield _Processes(pool, workers)


@final
class _ThisProcess:
    """Runs one task after another."""

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results in order."""
        for task in tasks:
            yield function(task)


@final
@dataclass(frozen=True)
class _Processes:
    """Runs tasks in a pool of processes."""

    pool: ProcessPoolExecutor
    workers: int

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results as they come."""
        remaining = iter(tasks)
        running: set[Future[Any]] = set()
        while True:
            most = self.workers * _WAITING_PER_WORKER
            for task in islice(remaining, most - len(running)):
                running.add(self.pool.submit(_run_guarded, function, task))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield _unwrap(future.result())


@final
@dataclass(frozen=True)
class _Ray:
    """Runs tasks on a Ray cluster, each on one CPU; those of a lost node run again elsewhere."""

    ray: Any

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results as they come."""
        remote = self.ray.remote(num_cpus=1, max_retries=_MOST_RETRIES)(_run_guarded)
        remaining = iter(tasks)
        running: list[Any] = []
        while True:
            cpus = int(self.ray.cluster_resources().get("CPU", 1))
            for task in islice(remaining, max(cpus, 1) * _WAITING_PER_WORKER - len(running)):
                running.append(remote.remote(function, task))
            if not running:
                return
            done, running = self.ray.wait(running)
            for reference in done:
                yield _unwrap(self.ray.get(reference))


@final
@dataclass(frozen=True)
class _Failure:
    """The message of an expected error: the error itself may not survive pickling."""

    message: str


def _run_guarded(function: Callable[[Any], Any], task: Any) -> Any:
    """Return an expected error of a function instead of raising it."""
    try:
        return function(task)
    except (KairosError, OSError) as error:
        return _Failure(format_error(error))


def _unwrap(result: Any) -> Any:
    if isinstance(result, _Failure):
        raise EventSourceError(result.message)
    return result
