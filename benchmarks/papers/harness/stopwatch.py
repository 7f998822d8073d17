"""The time that a part of a run takes."""

import os
import time
from typing import final


@final
class Stopwatch:
    """Wall time and processor time since it was made, of this process and of ended children."""

    def __init__(self) -> None:
        self._began, self._busy = time.monotonic(), _read_cpu_seconds()

    def read(self) -> tuple[float, float]:
        """Read wall seconds and processor seconds."""
        return time.monotonic() - self._began, _read_cpu_seconds() - self._busy


def _read_cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
