"""The generalised spectral mixture kernel, whose frequencies change over time (NTKA)."""

import math
from typing import Literal, NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeKernel
from model.layers.periods import Periods, log_uniform


class NonstationaryConfig(Config):
    """A kernel of two instants that is added to the attention logits."""

    kind: Literal["nonstationary"] = "nonstationary"
    components: PositiveInt = 4
    """Components that the kernel sums."""
    hidden: PositiveInt = 16
    """Width of the networks that vary a component's weight, frequency and length over time."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 1460.0
    """Longest initial period, in days; also the unit of time of those networks' input."""
    learn_periods: bool = True
    """Whether training changes the periods."""

    @classmethod
    def from_paper_code(cls) -> "NonstationaryConfig":
        """Use the authors' number of components and network width; they set no periods."""
        return cls(components=4, hidden=4)

    def build(self) -> "Nonstationary":
        """Build the module."""
        return Nonstationary(**self.model_dump(exclude={"kind"}))


class Components(NamedTuple):
    """The parameters of each component of the kernel at some instants.

    Attributes:
        weights: w; the kernel of an instant with itself is the sum of their squares.
        frequencies: mu, in turns per day.
        lengths: l, in days: the correlation length of the component.
    """

    weights: Float64[Tensor, "*shape components"]
    frequencies: Float64[Tensor, "*shape components"]
    lengths: Float64[Tensor, "*shape components"]


@final
class Nonstationary(TimeKernel):
    """A sum of damped cosines whose weights, frequencies and lengths depend on the instant.

        K(t, t') = sum_i w_i w_i' sqrt(2 l_i l_i' / (l_i^2 + l_i'^2))
                   exp(-(t - t')^2 / (l_i^2 + l_i'^2)) cos(2 pi (mu_i t - mu_i' t'))

    with w_i = w_i(t), w_i' = w_i(t') and likewise l and mu. Positive definite; with constant w, l
    and mu, the stationary spectral mixture kernel.

    Shape: times (*), other (*) -> kernel (*)

    Example:
        >>> kernel = NonstationaryConfig(components=3).build()
        >>> times = torch.rand(2, 5, dtype=torch.float64)
        >>> kernel(times.unsqueeze(2), times.unsqueeze(1)).shape
        torch.Size([2, 5, 5])

    Paper: Non-stationary Time-aware Kernelized Attention (KDD 2022), whose kernel is that of Remes
        et al. 2017, parametrised as in Remes et al. 2018.
    DIFFERS(code): networks end in softplus instead of ReLU, whose dead units would remove a
        component, and have one hidden layer of tanh, which is bounded beyond the training times.
    DIFFERS(code): instants count from the first event of the training data, where the code takes
        raw absolute times; they enter the networks in units of the longest period.
    DIFFERS(code): frequencies and lengths are multiples of periods that start log-uniform, and
        K(t, t) starts at about one.
    """

    def __init__(
        self,
        *,
        components: int,
        hidden: int,
        shortest_period: float,
        longest_period: float,
        learn_periods: bool,
    ) -> None:
        super().__init__()
        self.longest_period = longest_period
        self.base_periods = Periods(
            log_uniform(count=components, shortest=shortest_period, longest=longest_period),
            learned=learn_periods,
        )
        self.weight = _PositiveOverTime(components, hidden)
        self.frequency = _PositiveOverTime(components, hidden)
        self.length = _PositiveOverTime(components, hidden)

    def components(self, times: Float64[Tensor, "*shape"]) -> Components:
        """Compute the components at some instants (days)."""
        scaled = times.unsqueeze(-1) / self.longest_period
        periods: Tensor = self.base_periods()
        return Components(
            self.weight(scaled) / len(periods) ** 0.5,
            self.frequency(scaled) / periods,
            self.length(scaled) * periods + 1e-6,
        )

    def forward(
        self, times: Float64[Tensor, "*#shape"], other: Float64[Tensor, "*#shape"]
    ) -> Float[Tensor, "*shape"]:
        """Compute K(t, t'); the arguments broadcast against each other."""
        left = _compute_terms(times, self.components(times))
        right = _compute_terms(other, self.components(other))
        spread = left.squared_length + right.squared_length
        distance = (times - other).unsqueeze(-1).float().square()
        decay = torch.exp(-distance / spread) * spread.rsqrt()
        return (decay * (left.cosine * right.cosine + left.sine * right.sine)).sum(-1)


@final
class _PositiveOverTime(nn.Module):
    """Positive functions of time that start near one.

    float64: frequencies are multiplied by years, and float32 would lose the phase.
    """

    def __init__(self, count: int, hidden: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(1, hidden, dtype=torch.float64)
        self.linear2 = nn.Linear(hidden, count, dtype=torch.float64)
        nn.init.normal_(self.linear2.weight, std=0.01)
        nn.init.constant_(self.linear2.bias, math.log(math.expm1(1.0)))

    def forward(self, times: Float64[Tensor, "*shape 1"]) -> Float64[Tensor, "*shape count"]:
        values: Tensor = self.linear2(self.linear1(times).tanh())
        return F.softplus(values)


class _KernelTerms(NamedTuple):
    """The factors of the kernel that depend on one instant; `amplitude^2 = sqrt(2) w^2 l`."""

    cosine: Float[Tensor, "*shape components"]
    sine: Float[Tensor, "*shape components"]
    squared_length: Float[Tensor, "*shape components"]


def _compute_terms(times: Float64[Tensor, "*shape"], at: Components) -> _KernelTerms:
    """Compute the factors; turns are reduced in float64 before they are rounded to float32."""
    turns = times.unsqueeze(-1) * at.frequencies
    angle = (2 * math.pi * (turns - turns.detach().round())).float()
    amplitude = (at.weights * (2**0.5 * at.lengths).sqrt()).float()
    return _KernelTerms(
        amplitude * angle.cos(), amplitude * angle.sin(), at.lengths.float().square()
    )
