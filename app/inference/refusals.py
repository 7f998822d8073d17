"""Long requests that were refused a moment ago, so that repeating them at once costs nothing."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, final

from app.errors import ServiceError

_MOST_CALLERS = 1024


class _Refusal(NamedTuple):
    until: float
    size: int
    error: ServiceError


@final
class RecentRefusals:
    """The last refusal of a long request of each caller, until the seconds of `Retry-After` end.

    Reading the body of a long request takes the event loop milliseconds. One that is no smaller
    than a refused one would be refused again.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refusals: OrderedDict[str, _Refusal] = OrderedDict()

    def add(self, caller: str, size: int, error: ServiceError) -> None:
        """Remember that a request with a body of so many bytes was refused."""
        until = self._clock() + (error.retry_after or 0)
        self._refusals.pop(caller, None)
        self._refusals[caller] = _Refusal(until, size, error)
        while len(self._refusals) > _MOST_CALLERS:
            self._refusals.popitem(last=False)

    def require_none(self, caller: str, size: int) -> None:
        """Check that no request of a caller was refused that was as large or smaller.

        Raises:
            OverloadedError, OverShareError: the same again, if one was.
        """
        refusal = self._refusals.get(caller)
        if refusal is not None and size >= refusal.size and self._clock() < refusal.until:
            raise refusal.error.with_traceback(None)
