"""Damped rotations at fixed geometric periods: the temporal channel of FuXi-Linear (2026)."""

from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import BasisProjection, scaled_basis
from model.layers.periods import DAYS_PER_SECOND, Periods, log_uniform


class DampedRotationConfig(Config):
    """Cosines and sines of fixed frequencies that decay with the interval, at learned rates."""

    kind: Literal["damped_rotation"] = "damped_rotation"
    frequencies: PositiveInt = 8
    """Frequencies, each with a cosine, a sine and a rate; memory grows with them."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest initial period, in days."""
    learn_frequencies: bool = False
    """Whether training changes the frequencies."""
    learn_rates: bool = True
    """Whether training changes how much a frequency decays per cycle."""

    @classmethod
    def from_paper_code(
        cls, data: Literal["movielens", "kuairec"] = "movielens"
    ) -> "DampedRotationConfig":
        """Use the authors' eight periods and rates, of one of their data sets.

        For MovieLens the periods are powers of 16 from a second, and the rates are fixed; for
        KuaiRec, of 8 from 1024 seconds, and the rates are learned.
        """
        seconds, base = (1, 16) if data == "movielens" else (1024, 8)
        shortest = seconds * DAYS_PER_SECOND
        return cls(
            frequencies=8,
            shortest_period=shortest,
            longest_period=shortest * base**7,
            learn_rates=data == "kuairec",
        )

    def build(self) -> "DampedRotation":
        """Build the module."""
        return DampedRotation(**self.model_dump(exclude={"kind"}))


@final
class DampedRotation(TimeEncoding):
    """Cosines and sines that decay: `exp(-l_k x) [cos(w_k x), sin(w_k x)]`, side by side.

    The rate `l_k = -log(g_k) w_k` is relative to the frequency: a feature falls to `g_k` while its
    angle grows by one radian. Periods are geometric and fixed; the `g_k` start at 1/2, and are
    learned by default.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = DampedRotationConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Ye et al. 2026, FuXi-Linear, the temporal retention channel, as coded by its authors.
    DIFFERS(paper): features beside the content in keys and values, under one softmax, as all time
        encodings here; the paper's are the weights of a linear attention of their own, whose
        heads have one frequency each and are scaled and added to the values.
    DIFFERS(paper): computed for every pair of an event and a query time, where the paper carries a
        state from event to event: a softmax has no such state, and a decay per event that is
        exact for every pair overflows (`damped_basis`).
    DIFFERS(code): days for seconds. Where the authors learn `g_k`, they do so in the first block
        only, starting near 1/2; here all blocks share them, and they start at 1/2.
    """

    is_stationary = False

    def __init__(
        self,
        *,
        frequencies: int,
        shortest_period: float,
        longest_period: float,
        learn_frequencies: bool,
        learn_rates: bool,
    ) -> None:
        super().__init__()
        self.dim = 2 * frequencies
        self.periods = Periods(
            log_uniform(count=frequencies, shortest=shortest_period, longest=longest_period),
            learned=learn_frequencies,
        )
        # sigmoid(0) = 1/2.
        self.raw_decay = nn.Parameter(torch.zeros(frequencies), requires_grad=learn_rates)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, in radians per day."""
        return self.periods.frequencies()

    def rates(self) -> Float64[Tensor, " frequencies"]:
        """Compute the rates of decay, per day: `-log(sigmoid(raw)) w`."""
        return F.softplus(-self.raw_decay).double() * self.frequencies()

    def basis_projection(self) -> BasisProjection:
        """Return the scaled basis."""
        return scaled_basis(self.periods.log_periods)
