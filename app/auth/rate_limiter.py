"""How often somebody may ask: token buckets, as many as there is room for."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import final

_BURST_SECONDS = 2.0


@final
class RateLimiter:
    """A token bucket per name: tokens come back at a steady rate, up to a burst.

    The burst is what the rate brings in two seconds, and at least one. Of the names that ask only
    the most recent few are remembered: whoever was forgotten begins with a full bucket, and memory
    does not grow with the number of those who ask.

    Args:
        most: how many names are remembered.
        clock: seconds that only ever grow.

    Example:
        >>> buckets = Buckets(most=10, clock=lambda: 0.0)
        >>> [buckets.take("key", rate=1.0) for _ in range(3)]
        [0.0, 0.0, 1.0]
    """

    def __init__(self, *, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        # Tokens, and the instant at which there were so many.
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: Hashable, rate: float) -> float:
        """Take a token of a name that gets `rate` a second; 0, or the seconds until there is one.

        Whoever asks too early loses nothing by it.
        """
        at = self._clock()
        most = max(rate * _BURST_SECONDS, 1.0)
        tokens, since = self._levels.pop(name, (most, at))
        tokens = min(most, tokens + (at - since) * rate)
        is_let_in = tokens >= 1
        self._levels[name] = (tokens - 1 if is_let_in else tokens, at)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return 0.0 if is_let_in else (1 - tokens) / rate
