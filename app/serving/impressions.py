"""Impressions, buffered in memory until they are written to the database in a batch."""

from collections import deque
from dataclasses import dataclass
from typing import final

from app.observability.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Impression:
    """A recommendation that was returned to be shown.

    Attributes:
        at: the instant of the request, epoch microseconds.
    """

    recommendation_id: str
    user_id: str | None
    model_version: str
    at: int
    fallback: str | None
    item_ids: tuple[str, ...]


@final
class ImpressionBuffer:
    """Impressions that wait to be written; the oldest are dropped when the buffer is full.

    A response neither waits for its record nor fails without it.
    """

    def __init__(self, metrics: Metrics, *, longest: int) -> None:
        """Start empty.

        Args:
            longest: most impressions that wait; 0 keeps none.
        """
        self._metrics = metrics
        self._waiting: deque[Impression] = deque()
        self._longest = longest

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, impression: Impression) -> None:
        """Append an impression; drop the oldest one if the buffer is full."""
        if self._longest == 0:
            return
        if len(self._waiting) >= self._longest:
            self._waiting.popleft()
            self.count_dropped(1)
        self._waiting.append(impression)

    def take(self, most: int) -> list[Impression]:
        """Remove and return the oldest impressions."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def put_back(self, impressions: list[Impression]) -> None:
        """Return impressions to the front, after a write that failed."""
        self._waiting.extendleft(reversed(impressions))
        while len(self._waiting) > self._longest:
            self._waiting.popleft()
            self.count_dropped(1)

    def drop_all(self) -> int:
        """Drop and count every impression, as nobody will write them; return their number."""
        dropped = len(self._waiting)
        self._waiting.clear()
        self.count_dropped(dropped)
        return dropped

    def count_dropped(self, number: int) -> None:
        """Count impressions that will never be recorded."""
        self._metrics.records_dropped.inc(number)

    def drop_user(self, user_id: str) -> int:
        """Drop the impressions of a user; return how many there were."""
        kept = [impression for impression in self._waiting if impression.user_id != user_id]
        dropped = len(self._waiting) - len(kept)
        self._waiting = deque(kept)
        return dropped
