"""Rate limiting by one budget for all processes, which settle what they admitted each second."""

import random
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

from app.auth.rate_limiter import BURST_SECONDS

SETTLED_SECONDS = 5.0
"""How long a settlement holds. Afterwards a process limits by itself, as without the others."""


class Usage(NamedTuple):
    """What one process did with one budget since its last settlement.

    Attributes:
        rate: tokens a second with which the budget is refilled.
        used: requests that it admitted.
        arrived: requests that came, admitted or not.
    """

    name: str
    rate: float
    used: int
    arrived: int


class Level(NamedTuple):
    """A budget after a settlement.

    Attributes:
        tokens: what is left of it; below 0 after processes together admitted too much.
        share: of this process, by what came to it and to the others lately; above 0, at most 1.
    """

    tokens: float
    share: float


@dataclass(slots=True)
class _Account:
    """The part of a budget that this process may spend until the next settlement.

    Attributes:
        at: when `tokens` was counted, on the monotonic clock; likewise `settled_at`.
    """

    rate: float
    tokens: float
    at: float
    share: float = 1.0
    settled_at: float | None = None
    used: int = 0
    arrived: int = 0


@final
class SharedLimiter:
    """A token bucket per name that all processes share, without a call for each request.

    A process spends its share of the bucket's content and refill, and settles about each second:
    what it admitted is taken from the bucket in the database, also if that leaves less than
    nothing, which everybody then waits out. So all processes together admit the rate over time.
    A name that came up nowhere lately has a full bucket in each process, until the first
    settlement. Without settlements each process limits by itself.

    Args:
        most: number of names that are kept.
        clock: a monotonic clock, in seconds.
        draw: draws a number from 0 up to 1, by which fractions of tokens are rounded.

    Attributes:
        process: a random name of this process.
    """

    def __init__(
        self,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.process = secrets.token_hex(8)
        self._most = most
        self._clock = clock
        self._draw = draw
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    def take(self, name: str, rate: float) -> float:
        """Take a token from the bucket of a name that refills at `rate` tokens a second.

        Returns 0, or the seconds until there is a token; a refusal takes none.
        """
        at = self._clock()
        account = self._accounts.pop(name, None)
        if account is None or account.rate != rate:
            account = _Account(rate, max(rate * BURST_SECONDS, 1.0), at)
        self._accounts[name] = account
        if len(self._accounts) > self._most:
            self._accounts.popitem(last=False)
        if account.settled_at is not None and at - account.settled_at > SETTLED_SECONDS:
            account.share, account.settled_at = 1.0, None
        refill = rate * account.share
        account.tokens = min(
            max(refill * BURST_SECONDS, 1.0), account.tokens + (at - account.at) * refill
        )
        account.at = at
        account.arrived += 1
        if account.tokens < 1:
            return (1 - account.tokens) / refill
        account.tokens -= 1
        account.used += 1
        return 0.0

    def collect(self) -> list[Usage]:
        """Return what was used since the last call, by name; it counts from zero again."""
        usages = [
            Usage(name, account.rate, account.used, account.arrived)
            for name, account in sorted(self._accounts.items())
            if account.arrived
        ]
        for account in self._accounts.values():
            account.used = account.arrived = 0
        return usages

    def restore(self, usages: Iterable[Usage]) -> None:
        """Take back a call of `collect` whose settlement failed."""
        for usage in usages:
            account = self._accounts.get(usage.name)
            if account is not None:
                account.used += usage.used
                account.arrived += usage.arrived

    def apply(self, levels: Mapping[str, Level]) -> None:
        """Go on with the budgets as they were settled."""
        at = self._clock()
        for name, level in levels.items():
            account = self._accounts.get(name)
            if account is None:
                continue
            account.share, account.settled_at, account.at = level.share, at, at
            tokens = level.tokens * level.share
            if level.share < 1 and tokens > 0:
                # At random: of a low limit each process has less than a token in every settlement,
                # and would never admit anything.
                whole, fraction = divmod(tokens, 1)
                tokens = whole + (self._draw() < fraction)
            # Less what was admitted since the usage was collected.
            account.tokens = tokens - account.used
