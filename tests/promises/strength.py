"""How hard a promise is tried: for seconds with every change, or in earnest before a release."""

from dataclasses import dataclass
from typing import TypeVar

Setting = TypeVar("Setting")


@dataclass(frozen=True)
class Strength:
    """Short runs show that a promise is kept at all; full ones measure the figure it is kept with.

    Timings mean something on an idle machine only: assert them where `is_full`.
    """

    is_full: bool

    def of(self, *, short: Setting, full: Setting) -> Setting:
        """The setting for this strength."""
        return full if self.is_full else short
