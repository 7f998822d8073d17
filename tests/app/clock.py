"""A clock that only a test advances."""

from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds that a test sets."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds
