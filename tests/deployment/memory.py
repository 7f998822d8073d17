"""Memory growth of running processes."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

_SAMPLING_SECONDS = 0.02


@dataclass
class MemoryGrowth:
    """Largest growth of each process's resident memory, in bytes, by process id."""

    by_pid: dict[int, int] = field(default_factory=dict)

    @property
    def largest(self) -> int:
        """The growth of the process that grew most, in bytes."""
        return max(self.by_pid.values())


@contextmanager
def measure_growth(pids: Sequence[int]) -> Iterator[MemoryGrowth]:
    """Samples the memory of processes and their children for the duration of the block."""
    growth, stopping = MemoryGrowth(), threading.Event()
    parents = [psutil.Process(pid) for pid in pids]
    processes = [each for one in parents for each in (one, *one.children(recursive=True))]
    before = {process: process.memory_info().rss for process in processes}

    def sample() -> None:
        for process, resident in before.items():
            # nginx's cache loader exits once it has loaded the cache.
            with suppress(psutil.NoSuchProcess):
                grown = process.memory_info().rss - resident
                growth.by_pid[process.pid] = max(growth.by_pid.get(process.pid, 0), grown)

    def sample_repeatedly() -> None:
        while not stopping.wait(_SAMPLING_SECONDS):
            sample()

    thread = threading.Thread(target=sample_repeatedly)
    thread.start()
    try:
        yield growth
    finally:
        stopping.set()
        thread.join()
        sample()
