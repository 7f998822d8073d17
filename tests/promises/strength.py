"""The size of a run: seconds with every change, or full strength before a release."""

from dataclasses import dataclass
from typing import TypeVar

Setting = TypeVar("Setting")


@dataclass(frozen=True)
class Strength:
    """Short runs check that a promise holds; full ones also measure its figures.

    Timings are meaningful on an idle machine only: assert them where `is_full`.
    """

    is_full: bool

    def select(self, *, short: Setting, full: Setting) -> Setting:
        """Select the setting for this strength."""
        return full if self.is_full else short
