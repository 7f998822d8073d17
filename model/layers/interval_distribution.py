"""Distributions of the interval to the next event, in days."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float64
from torch import Tensor, nn
from torch.nn import functional

_INITIAL_ZERO_LOGIT = -3.0
"""Log-odds at the start: most data have few intervals of 0, and where they are many it is learned
within some steps."""

MAX_EXPONENT = 50.0
"""Exponents above this are continued linearly; the hazard is then so large that nothing is left."""


def build_zero_logit(inputs: int) -> nn.Linear:
    """Build the map from a state to the log-odds of an interval of 0, of `ZeroInflated`."""
    linear = nn.Linear(inputs, 1)
    nn.init.constant_(linear.bias, _INITIAL_ZERO_LOGIT)
    return linear


class IntervalDistribution(ABC):
    """The interval from an event to the next one, in days: one distribution per position.

    Intervals and positions broadcast against each other. Everything is float64: after a long wait,
    the remaining distribution is the difference of two large logarithms.
    """

    @property
    def zero_probability(self) -> Float64[Tensor, "..."]:
        """The probability of an interval of exactly 0; 0 for a density alone."""
        return torch.zeros((), dtype=torch.float64)

    @property
    def later(self) -> "IntervalDistribution":
        """The distribution given that the interval is not 0, which has a density."""
        return self

    @abstractmethod
    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-density, per day; of an interval of 0, its log-probability if it has one.

        The likelihood of the intervals of a history is the product of these.
        """

    @abstractmethod
    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-probability that no event occurs within the interval."""

    @abstractmethod
    def quantile_after(
        self, probability: float, elapsed: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Compute a quantile, conditional on no event within the first `elapsed` days.

        After 0 days nothing is known: that is the unconditional quantile.

        Args:
            probability: below 1.
            elapsed: days since the event without a next one.

        Returns:
            Days, counted from the event, not from `elapsed`; may be inf.
        """

    def quantile(self, probability: float) -> Float64[Tensor, "..."]:
        """Compute the interval within which the next event occurs with `probability`.

        May be inf.
        """
        return self.quantile_after(probability, torch.zeros((), dtype=torch.float64))


@final
@dataclass(frozen=True, eq=False)
class Gompertz(IntervalDistribution):
    """A hazard that grows or decays exponentially from the event on.

    The hazard after `d` days is `exp(log_rate + growth x)` per time scale, with `x = d/time_scale`.
    A growth of 0 gives the exponential distribution. With a negative growth the hazard decays: no
    event ever occurs with probability `exp(exp(log_rate) / growth)`, the density integrates to the
    complement, and quantiles above it are inf.

    Paper: Du et al. 2016 (RMTPP), eq. 11-12.
    """

    log_rate: Float64[Tensor, "..."]
    growth: Float64[Tensor, ""]
    time_scale: float

    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-density, per day: the log-hazard minus the cumulative hazard."""
        elapsed = intervals / self.time_scale
        log_hazard = self.log_rate + self.growth * elapsed - math.log(self.time_scale)
        return log_hazard - self._cumulative_hazard(elapsed)

    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-probability that no event occurs within the interval."""
        return -self._cumulative_hazard(intervals / self.time_scale)

    def quantile_after(
        self, probability: float, elapsed: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Compute a conditional quantile in closed form."""
        return self.quantile_beyond(_log_of_rest(probability), elapsed)

    def quantile_beyond(
        self, log_left: Float64[Tensor, "..."], elapsed: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Compute the quantile that is exceeded with the probability `exp(log_left)`.

        After `elapsed` days the hazard is again a Gompertz hazard, with another starting rate.
        """
        scaled = elapsed / self.time_scale
        log_rate = self.log_rate + self.growth * scaled
        exponential = -log_left * (-log_rate).clamp(max=10 * MAX_EXPONENT).exp()
        bend = (self.growth * exponential).clamp(min=-1.0)
        further = exponential * torch.where(bend == 0, 1.0, bend.log1p() / bend)
        return (scaled + further) * self.time_scale

    def _cumulative_hazard(self, elapsed: Tensor) -> Tensor:
        """Integrate the hazard: `exp(log_rate) (exp(growth x) - 1) / growth`."""
        exponent = self.log_rate + _log_mean_exp(self.growth * elapsed)
        excess = (exponent - MAX_EXPONENT).relu()
        return elapsed * (exponent - excess).exp() * (1 + excess)


@final
@dataclass(frozen=True, eq=False)
class LogNormal(IntervalDistribution):
    """`log(1 + d/time_scale)` is normal, truncated below 0 and renormalised.

    Finite at an interval of 0, where a log-normal distribution of `d` itself would not be.
    """

    mean: Float64[Tensor, "..."]
    spread: Float64[Tensor, ""]
    time_scale: float

    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-density, per day."""
        deviation = (self._log(intervals) - self.mean) / self.spread
        normal = -0.5 * deviation.square() - self.spread.log() - 0.5 * math.log(2 * math.pi)
        return normal - self._log_normaliser() - (intervals + self.time_scale).log()

    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-probability that no event occurs within the interval."""
        return self._untruncated_log_survival(intervals) - self._log_normaliser()

    def quantile_after(
        self, probability: float, elapsed: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Compute a conditional quantile, accurate far into the tail."""
        return self.quantile_beyond(_log_of_rest(probability), elapsed)

    def quantile_beyond(
        self, log_left: Float64[Tensor, "..."], elapsed: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Compute the quantile that is exceeded with the probability `exp(log_left)`."""
        log_survival = self._untruncated_log_survival(elapsed) + log_left
        quantile = self.mean - self.spread * _inverse_log_ndtr(log_survival)
        return self.time_scale * torch.maximum(quantile, self._log(elapsed)).expm1()

    def _untruncated_log_survival(self, intervals: Tensor) -> Tensor:
        return _log_ndtr((self.mean - self._log(intervals)) / self.spread)

    def _log_normaliser(self) -> Tensor:
        """Compute the log-probability that the normal leaves above 0."""
        return _log_ndtr(self.mean / self.spread)

    def _log(self, intervals: Tensor) -> Tensor:
        return (intervals / self.time_scale).log1p()


@final
@dataclass(frozen=True, eq=False)
class ZeroInflated(IntervalDistribution):
    """A probability that the interval is exactly 0, beside a density of the intervals above.

    A density alone would grow beyond bounds where intervals are 0: in a log of ratings half are.

    Attributes:
        zero_logit: log-odds of an interval of 0.
        positive: the distribution of the other intervals.
    """

    zero_logit: Float64[Tensor, "..."]
    positive: Gompertz | LogNormal

    @property
    def zero_probability(self) -> Float64[Tensor, "..."]:
        """The probability of an interval of exactly 0."""
        return self.zero_logit.sigmoid()

    @property
    def later(self) -> IntervalDistribution:
        """The distribution of the intervals that are not 0."""
        return self.positive

    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-density, per day; of an interval of 0, its log-probability."""
        is_zero = intervals == 0
        # Replaced, not selected: where a result is not used, its gradient must be finite, too.
        above = self.positive.log_density(torch.where(is_zero, 1.0, intervals))
        return torch.where(
            is_zero,
            functional.logsigmoid(self.zero_logit),
            functional.logsigmoid(-self.zero_logit) + above,
        )

    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """Compute the log-probability that no event occurs within the interval, both ends in."""
        return functional.logsigmoid(-self.zero_logit) + self.positive.log_survival(intervals)

    def quantile_after(
        self, probability: float, elapsed: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Compute a conditional quantile, after 0 days the unconditional one, which may be 0."""
        # The shares of the positive intervals differ by position, and so do the quantiles.
        log_left = math.log1p(-probability) - functional.logsigmoid(-self.zero_logit)
        unconditional = self.positive.quantile_beyond(log_left.clamp(max=0), elapsed)
        return torch.where(
            elapsed > 0,
            self.positive.quantile_after(probability, elapsed),
            torch.where(log_left < 0, unconditional, 0.0),
        )


def _log_of_rest(probability: float) -> Tensor:
    return torch.tensor(math.log1p(-probability), dtype=torch.float64)


def _log_mean_exp(z: Tensor) -> Tensor:
    """Compute log((exp(z) - 1) / z), stable for either sign and differentiable at 0."""
    is_small = z.abs() < 0.01
    near = z / 2 + z**2 / 24 - z**4 / 2880
    far = torch.where(is_small, 1.0, z)
    return torch.where(is_small, near, far.relu() + (-(-far.abs()).expm1() / far.abs()).log())


def _log_ndtr(point: Tensor) -> Tensor:
    """Compute the log of the standard normal distribution function."""
    log_probability: Tensor = torch.special.log_ndtr(point)
    return log_probability


def _inverse_log_ndtr(log_probability: Tensor) -> Tensor:
    """Compute the standard normal quantile of a probability given by its logarithm."""
    in_tail = log_probability < -300
    point = torch.special.ndtri(torch.where(in_tail, 0.5, log_probability.exp()))
    target = torch.where(in_tail, log_probability, -300.0)
    far = -(-2 * target).sqrt()
    for _ in range(4):
        value = _log_ndtr(far)
        slope = (-0.5 * far.square() - 0.5 * math.log(2 * math.pi) - value).exp()
        far = far - (value - target) / slope  # Newton's method
    return torch.where(in_tail, far, point)


def soft_clamp_max(values: Tensor, bound: float) -> Tensor:
    """Clamp `values` smoothly below `bound`: unchanged well below it, gradients never vanish."""
    slack: Tensor = functional.softplus(bound - values)
    return bound - slack
