"""What was shown, on its way to the database: kept in memory until a batch is written."""

from collections import deque
from dataclasses import dataclass
from typing import final

from app.observability.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Impression:
    """One answer, as far as it is needed to tell what came of it.

    Attributes:
        at: when it was asked for, epoch microseconds.
    """

    recommendation_id: str
    user_id: str | None
    model_version: str
    at: int
    fallback: str | None
    item_ids: tuple[str, ...]


@final
class ImpressionBuffer:
    """Answers that wait to be written, the oldest dropped where there are too many.

    An answer must not wait for a record of it, nor fail for want of one.
    """

    def __init__(self, metrics: Metrics, *, longest: int) -> None:
        self._metrics = metrics
        self._waiting: deque[Impression] = deque()
        self._longest = longest

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, answer: Impression) -> None:
        """Have an answer written soon."""
        if self._longest == 0:
            return
        if len(self._waiting) >= self._longest:
            self._waiting.popleft()
            self._metrics.records_dropped.inc()
        self._waiting.append(answer)

    def take(self, most: int) -> list[Impression]:
        """The oldest that wait."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def put_back(self, answers: list[Impression]) -> None:
        """Have them wait on, in front."""
        self._waiting.extendleft(reversed(answers))
        while len(self._waiting) > self._longest:
            self._waiting.popleft()
            self._metrics.records_dropped.inc()

    def forget(self, user_id: str) -> None:
        """Drop what was shown to a user."""
        kept = [answer for answer in self._waiting if answer.user_id != user_id]
        self._waiting = deque(kept)
