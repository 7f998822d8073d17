"""How patiently to ask: how often, how soon, and until when."""

import random
from dataclasses import dataclass

from kairos_client.errors import InvalidError


@dataclass(frozen=True, slots=True)
class Retries:
    """When to ask again, and when to give up.

    The wait before the n-th retry is drawn evenly from 0 to `first_wait_seconds * 2 ** (n - 1)`
    ("full jitter": callers that failed together do not come back together), on top of what the
    service asked for by `Retry-After`; neither part exceeds `longest_wait_seconds`. Whoever would
    have to wait beyond the deadline gives up at once.

    Attributes:
        attempts: requests for one question, the first included; 1 never asks again.
        deadline_seconds: for one question as a whole, all attempts and waits together.

    Raises:
        InvalidError: if a number is out of range.
    """

    attempts: int = 5
    first_wait_seconds: float = 0.2
    longest_wait_seconds: float = 10.0
    deadline_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.deadline_seconds <= 0:
            raise InvalidError(
                "at least one attempt and a deadline above 0 seconds are needed, but got "
                f"{self.attempts} and {self.deadline_seconds}; use attempts=1 for no retries",
                code="retries_range",
            )

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds to wait after a failed attempt, the first being 1."""
        doubled = self.first_wait_seconds * 2.0 ** min(attempt - 1, 30)
        jitter = random.uniform(0, min(doubled, self.longest_wait_seconds))
        return min(retry_after or 0.0, self.longest_wait_seconds) + jitter
