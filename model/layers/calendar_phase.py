"""The phase of an instant in the hour, the day, the week and the year."""

import math
from typing import final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from model.layers.fourier_basis import basis
from model.layers.local_clock import LocalClock

HOUR = 1 / 24
DAY = 1.0
WEEK = 7.0
YEAR = 365.2425
"""Mean length, in days."""

CALENDAR_PERIODS = (
    *(HOUR / order for order in range(1, 25)),
    *(DAY / order for order in range(1, 9)),
    *(WEEK / order for order in (1, 2, 3)),
    *(YEAR / order for order in (1, 2, 3)),
)
"""Periods in days: an hour, a day, a week and a year with their harmonics. They are exact: a period
that is 1 % off has lost its phase after fifty cycles, and no gradient finds it again."""


@final
class CalendarPhase(nn.Module):
    """A learned linear map of cosine and sine of an instant's phase at each calendar period.

    Phases are those of the local clock of a time zone, daylight saving included.

    Shape: instants (*) in epoch microseconds -> (*, dim)
    """

    frequencies: Tensor

    def __init__(self, *, dim: int, time_zone: str = "UTC") -> None:
        super().__init__()
        self.clock = LocalClock(time_zone)
        periods = torch.tensor(CALENDAR_PERIODS, dtype=torch.float64)
        self.register_buffer("frequencies", 2 * math.pi / periods, persistent=False)
        self.proj = nn.Linear(2 * len(periods), dim, bias=False)
        nn.init.normal_(self.proj.weight, std=0.1 * len(periods) ** -0.5)

    def forward(self, instants: Int64[Tensor, "*shape"]) -> Float[Tensor, "*shape dim"]:
        """Map instants to vectors."""
        mapped: Tensor = self.proj(basis(self.clock(instants), self.frequencies))
        return mapped
