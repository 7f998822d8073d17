"""How much time a process may spend on opening versions that requests name."""

import math
import time
from collections.abc import Callable
from typing import final

_SHARE = 0.2
_BURST_SECONDS = 10.0


@final
class OpeningBudget:
    """A token bucket of seconds: openings may take a fifth of the time, and ten seconds in a burst.

    Clients that take turns with more versions than stay open would otherwise have them opened again
    and again, beside the requests that need the processor.

    Example:
        >>> budget = OpeningBudget(clock=lambda: 0.0)
        >>> budget.spend(11.0)
        >>> budget.compute_wait()
        5
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = _BURST_SECONDS
        self._at = clock()

    def spend(self, seconds: float) -> None:
        """Account for an opening that took so many seconds."""
        self._refill()
        self._seconds -= seconds

    def compute_wait(self) -> int:
        """Compute the whole seconds until another opening may begin; 0 for now."""
        self._refill()
        return 0 if self._seconds > 0 else max(math.ceil(-self._seconds / _SHARE), 1)

    def _refill(self) -> None:
        at = self._clock()
        self._seconds = min(_BURST_SECONDS, self._seconds + (at - self._at) * _SHARE)
        self._at = at
