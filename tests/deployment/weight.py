"""How much memory processes take at worst."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil

_LOOK_EVERY_SECONDS = 0.02


@dataclass
class Growth:
    """Bytes of resident memory that each process took beyond what it had, at worst."""

    of: dict[int, int] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """The growth of the process that grew most."""
        return max(self.of.values())


@contextmanager
def watched(pids: Sequence[int]) -> Iterator[Growth]:
    """Watch processes, and their children, for as long as the block."""
    growth, stopping = Growth(), threading.Event()
    watched = [psutil.Process(pid) for pid in pids]
    every = [each for one in watched for each in (one, *one.children(recursive=True))]
    before = {process: process.memory_info().rss for process in every}

    def look() -> None:
        for process, resident in before.items():
            # nginx's cache loader goes once it has loaded the cache.
            with suppress(psutil.NoSuchProcess):
                grown = process.memory_info().rss - resident
                growth.of[process.pid] = max(growth.of.get(process.pid, 0), grown)

    def keep_looking() -> None:
        while not stopping.wait(_LOOK_EVERY_SECONDS):
            look()

    looking = threading.Thread(target=keep_looking)
    looking.start()
    try:
        yield growth
    finally:
        stopping.set()
        looking.join()
        look()
