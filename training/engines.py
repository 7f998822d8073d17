"""Runs the same function on many tasks: in this process, in processes beside it, or by Ray.

What a task does must not depend on which engine runs it, nor on how often: Ray runs the task of a
lost node again. So a task reads files, and writes files under names of its own.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import Any, Literal, Protocol, TypeVar, final

from model.errors import KairosError, format_error
from training.ray_cluster import connect_to_ray

EngineName = Literal["local", "ray"]

Task = TypeVar("Task")
Result = TypeVar("Result")

_WAITING_PER_WORKER = 2
"""Tasks given to an engine for each worker: enough that none waits, few enough to stop soon."""

_SECONDS_TO_STOP = 30.0
"""For which an error waits until tasks of Ray have stopped."""

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
            KairosError: if the function raises one, of its kind and with its message; or if the
                process of a task is killed.
            OSError: if the function raises one.
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
        context = get_context("spawn")
        is_over = context.Event()
        pool = ProcessPoolExecutor(workers, context, _begin_process, (is_over,))
        try:
            yield _Processes(pool, workers)
        finally:
            # The pool itself cannot call back what waits in the queue of its processes.
            is_over.set()
            pool.shutdown(cancel_futures=True)


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
        try:
            for result in self._run(function, tasks):
                yield _unwrap(result)
        except BrokenProcessPool as error:
            raise _explain_killed() from error

    def _run(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        remaining = iter(tasks)
        running: set[Future[Any]] = set()
        while True:
            most = self.workers * _WAITING_PER_WORKER
            for task in islice(remaining, most - len(running)):
                running.add(self.pool.submit(_run_unless_over, function, task))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


@final
@dataclass(frozen=True)
class _Ray:
    """Runs tasks on a Ray cluster, each on one CPU; those of a lost node run again elsewhere."""

    ray: Any

    def run(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the results as they come."""
        running: list[Any] = []
        killed = (self.ray.exceptions.WorkerCrashedError, self.ray.exceptions.OutOfMemoryError)
        try:
            for result in self._run(function, tasks, running):
                yield _unwrap(result)
        except killed as error:
            raise _explain_killed() from error
        finally:
            self._stop(running)

    def _stop(self, running: list[Any]) -> None:
        """Stop the tasks that still run after an error; the cluster may have other users."""
        deadline = time.monotonic() + _SECONDS_TO_STOP
        while running and time.monotonic() < deadline:
            for reference in running:
                self.ray.cancel(reference, force=True)
            # Ray loses the request to stop a task that is on its way to a worker.
            _, running = self.ray.wait(running, num_returns=len(running), timeout=1.0)

    def _run(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], running: list[Any]
    ) -> Iterator[Any]:
        remote = self.ray.remote(num_cpus=1, max_retries=_MOST_RETRIES)(_run_guarded)
        remaining = iter(tasks)
        while True:
            cpus = int(self.ray.cluster_resources().get("CPU", 1))
            for task in islice(remaining, max(cpus, 1) * _WAITING_PER_WORKER - len(running)):
                running.append(remote.remote(function, task))
            if not running:
                return
            done, running[:] = self.ray.wait(running)
            for reference in done:
                yield self.ray.get(reference)


@final
@dataclass(frozen=True)
class _Failure:
    """The kind and message of an expected error: the error itself may not survive pickling."""

    kind: type[Exception]
    message: str

    @classmethod
    def of(cls, error: KairosError | OSError) -> "_Failure":
        if isinstance(error, OSError):
            return cls(OSError, format_error(error))
        kind = type(error)
        while "__init__" in vars(kind):  # not made of a message alone
            kind = kind.__bases__[0]
        return cls(kind, format_error(error))


_over: list[Event] = []
"""In a process of a pool: set once no result is waited for."""


def _begin_process(is_over: Event) -> None:
    _over.append(is_over)


def _run_unless_over(function: Callable[[Any], Any], task: Any) -> Any:
    return None if _over[0].is_set() else _run_guarded(function, task)


def _run_guarded(function: Callable[[Any], Any], task: Any) -> Any:
    """Return an expected error of a function instead of raising it."""
    try:
        return function(task)
    except (KairosError, OSError) as error:
        return _Failure.of(error)


def _unwrap(result: Any) -> Any:
    if isinstance(result, _Failure):
        raise result.kind(result.message)
    return result


def _explain_killed() -> KairosError:
    return KairosError(
        "a process of --engine runs until its task is done, but one was killed, most likely "
        "because the machine has too little memory; take fewer --workers, or prepare the events "
        "into more --shards"
    )
