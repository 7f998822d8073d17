"""Rate limiting with token buckets."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import final

BURST_SECONDS = 2.0


@final
class RateLimiter:
    """A token bucket per name: tokens are refilled at a steady rate, up to a burst.

    The burst is two seconds' worth of tokens, and at least one. Only the most recent names are
    kept, which bounds the memory; an evicted name starts again with a full bucket.

    Args:
        most: number of names that are kept.
        clock: a monotonic clock, in seconds.

    Example:
        >>> limiter = RateLimiter(most=10, clock=lambda: 0.0)
        >>> [limiter.take("key", rate=1.0) for _ in range(3)]
        [0.0, 0.0, 1.0]
    """

    def __init__(self, *, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        # Tokens, and the instant of that count.
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: Hashable, rate: float) -> float:
        """Take a token from the bucket of a name that refills at `rate` tokens a second.

        Returns 0, or the seconds until there is a token; a refusal takes none.
        """
        at = self._clock()
        most = max(rate * BURST_SECONDS, 1.0)
        tokens, since = self._levels.pop(name, (most, at))
        tokens = min(most, tokens + (at - since) * rate)
        is_taken = tokens >= 1
        self._levels[name] = (tokens - 1 if is_taken else tokens, at)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return 0.0 if is_taken else (1 - tokens) / rate
