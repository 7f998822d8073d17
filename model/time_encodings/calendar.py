"""Exact periods of the calendar beside the learned ones of another time encoding."""

import math
from typing import ClassVar, final

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from model.interfaces import TimeEncoding
from model.layers.calendar_phase import DAY, HOUR, WEEK, YEAR
from model.layers.fourier_basis import BasisProjection

PERIODS = (
    HOUR,
    *(DAY / order for order in range(1, 9)),
    *(WEEK / order for order in (1, 2, 3)),
    *(YEAR / order for order in (1, 2, 3)),
)
"""Periods of intervals in days. Intervals carry them without any time zone."""


@final
class CalendarEncoding(TimeEncoding):
    """The features of another encoding, and cosines and sines at the periods of the calendar.

    The periods are fixed, their amplitudes are learned. Both parts start with the same power.

    Shape: intervals (*) -> features (*, dim of the other encoding + 2 * calendar periods)
    """

    domain: ClassVar = "time"
    fixed_frequencies: Tensor

    def __init__(self, learned: TimeEncoding) -> None:
        super().__init__()
        self.learned = learned
        self.dim = learned.dim + 2 * len(PERIODS)
        periods = torch.tensor(PERIODS, dtype=torch.float64)
        self.register_buffer("fixed_frequencies", 2 * math.pi / periods, persistent=False)
        self.scale = math.sqrt(learned.power() / len(PERIODS))
        self.amplitudes = nn.Parameter(torch.ones(len(PERIODS)))

    @property
    def is_stationary(self) -> bool:  # type: ignore[override]
        """Whether the kernel depends only on the difference of its arguments."""
        return self.learned.is_stationary

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, radians per day: the learned ones first."""
        return torch.cat((self.learned.frequencies(), self.fixed_frequencies))

    def rates(self) -> Float64[Tensor, " frequencies"] | None:
        """Compute the rates of decay, per day: the calendar has none."""
        rates = self.learned.rates()
        if rates is None:
            return None
        return torch.cat((rates, torch.zeros_like(self.fixed_frequencies)))

    def basis_projection(self) -> BasisProjection:
        """Put the amplitudes beside the projection of the other encoding."""
        weight, bias = self.learned.basis_projection()
        fixed = torch.diag(self.scale * self.amplitudes.repeat_interleave(2))
        rows = torch.cat(
            (
                torch.cat((weight, weight.new_zeros(len(weight), len(fixed))), dim=1),
                torch.cat((fixed.new_zeros(len(fixed), weight.shape[1]), fixed), dim=1),
            )
        )
        return BasisProjection(rows, torch.cat((bias, bias.new_zeros(len(fixed)))))
