"""Bochner's theorem with normally distributed frequencies (Xu et al. 2019)."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import ReadOut, scaled_basis
from model.layers.periods import SECOND, Periods, log_uniform


class BochnerNormalConfig(Config):
    """How many frequencies, and the periods (days) around which they are drawn."""

    kind: Literal["bochner_normal"] = "bochner_normal"
    form: Literal["log", "linear"] = "log"
    """What is normally distributed: the logarithm of a frequency, or the frequency itself."""
    frequencies: PositiveInt = 64
    shortest_period: PositiveFloat = 1 / 24
    longest_period: PositiveFloat = 1460.0
    spread: PositiveFloat = 0.5
    """Standard deviation at the start, of the logarithm or in radians per day."""
    learn_frequencies: bool = True
    learn_spread: bool = True

    @classmethod
    def paper_code(cls, dim: int) -> "BochnerNormalConfig":
        """As the authors start it, with `dim` features: means of 1 to 0.05, by a spread of 1 that
        is not learned, in radians per second.
        """
        turn = 2 * math.pi * SECOND
        return cls(
            form="linear",
            frequencies=dim // 2,
            shortest_period=turn,
            longest_period=turn * 10 ** (8 / (2 * math.pi)),
            spread=1 / SECOND,
            learn_spread=False,
        )

    def build(self) -> "BochnerLogNormal | BochnerNormal":
        """The module this describes."""
        means = Periods(
            log_uniform(
                count=self.frequencies, shortest=self.shortest_period, longest=self.longest_period
            ),
            learned=self.learn_frequencies,
        )
        form = BochnerLogNormal if self.form == "log" else BochnerNormal
        return form(means, spread=self.spread, learn_spread=self.learn_spread)


@final
class BochnerLogNormal(TimeEncoding):
    """Cosines and sines of drawn frequencies, each log-normal around a learned one.

    `w_i = exp(mu_i + sigma_i eps_i)` with `eps` standard normal: drawn before every step of
    training, kept otherwise. The kernel is the mean of `cos(w x)` over the draws.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNormalConfig(frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, the reparametrisation trick.
    DIFFERS(paper): logarithms of frequencies are normal, not frequencies: one spread in radians per
        day cannot suit both minutes and years. Every frequency has a mean and a spread of its own.
    DIFFERS(code): drawn for training only, where the code draws anew for every evaluation too.
    """

    is_stationary = True

    def __init__(self, means: Periods, *, spread: float, learn_spread: bool) -> None:
        super().__init__()
        count = len(means.log_periods)
        self.dim = 2 * count
        self.periods = means
        # Either sign means the same, since eps is symmetric: there is nothing to constrain.
        self.spread_of_log_periods = nn.Parameter(
            torch.full((count,), spread, dtype=torch.float64), requires_grad=learn_spread
        )
        self.noise: Tensor
        self.register_buffer("noise", torch.randn(count, dtype=torch.float64))

    def draw(self) -> None:
        """Draw other frequencies."""
        self.noise.normal_()

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies as drawn, in radians per day."""
        return self.periods.frequencies() * (self.spread_of_log_periods * self.noise).exp()

    def read_out(self) -> ReadOut:
        """The basis itself, scaled."""
        return scaled_basis(self.noise)


@final
class BochnerNormal(TimeEncoding):
    """Cosines and sines of drawn frequencies, each normal around a learned one.

    `w_i = mu_i + sigma eps_i` with `eps` standard normal: drawn before every step of training, kept
    otherwise. The kernel is the mean of `cos(w x)` over the draws.

    Shape: intervals (*) -> features (*, 2 * frequencies)

    Example:
        >>> encoding = BochnerNormalConfig(form="linear", frequencies=8).build()
        >>> encoding(torch.zeros(3, dtype=torch.float64)).shape
        torch.Size([3, 16])

    Paper: Xu et al. 2019, section 4, the reparametrisation trick.
    DIFFERS(code): means are kept positive, as log-periods, which loses nothing: a cosine does not
        tell the sign of its frequency. Drawn for training only, not for every evaluation too.
    """

    is_stationary = True

    def __init__(self, means: Periods, *, spread: float, learn_spread: bool) -> None:
        super().__init__()
        count = len(means.log_periods)
        self.dim = 2 * count
        self.periods = means
        # The spread is a frequency like the means, so it is kept, and learned, as they are.
        log_period = torch.tensor([math.log(2 * math.pi / spread)], dtype=torch.float64)
        self.spread = Periods(log_period, learned=learn_spread)
        self.noise: Tensor
        self.register_buffer("noise", torch.randn(count, dtype=torch.float64))

    def draw(self) -> None:
        """Draw other frequencies."""
        self.noise.normal_()

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies as drawn, in radians per day; some may be negative."""
        return self.periods.frequencies() + self.spread.frequencies() * self.noise

    def read_out(self) -> ReadOut:
        """The basis itself, scaled."""
        return scaled_basis(self.noise)
