"""How long until the next event: distributions of an interval, in days."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float64
from torch import Tensor
from torch.nn import functional

STEEPEST = 50.0
"""Exponents beyond this go on in a straight line; so large a hazard leaves nothing to wait for."""


class NextInterval(ABC):
    """The interval from an event to the next one, in days: one distribution per position.

    Intervals and positions broadcast against each other. All is in double precision: what is left
    of a distribution after a long wait is the difference of two large logarithms.
    """

    @abstractmethod
    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """The log-density, per day."""

    @abstractmethod
    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """The log-probability that the next event takes longer than this."""

    @abstractmethod
    def quantile_after(
        self, share: float, waited: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """The interval, counted from the event, by which the next one has come with probability
        `share` (below 1), given that it takes longer than `waited`; may be inf.
        """

    def quantile(self, share: float) -> Float64[Tensor, "..."]:
        """The interval by which the next event has come with probability `share`; may be inf."""
        return self.quantile_after(share, torch.zeros((), dtype=torch.float64))


@final
@dataclass(frozen=True, eq=False)
class Gompertz(NextInterval):
    """A hazard that grows or falls exponentially from the event on.

    The hazard after `d` days is `exp(log_rate + growth x)` per time scale, with `x = d/time_scale`.
    A growth of 0 is a memoryless wait. Under a negative one the hazard dies away: with probability
    `exp(exp(log_rate) / growth)` no event ever comes, the density integrates to the rest, and
    quantiles beyond the rest are inf.

    Paper: Du et al. 2016 (RMTPP), eq. 11-12.
    """

    log_rate: Float64[Tensor, "..."]
    growth: Float64[Tensor, ""]
    time_scale: float

    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """The log-density, per day: the log-hazard less all hazard so far."""
        waited = intervals / self.time_scale
        log_hazard = self.log_rate + self.growth * waited - math.log(self.time_scale)
        return log_hazard - self._hazard_within(waited)

    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """The log-probability that the next event takes longer than this."""
        return -self._hazard_within(intervals / self.time_scale)

    def quantile_after(
        self, share: float, waited: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Exact: whoever has waited faces the same kind of hazard, from a later start."""
        scaled = waited / self.time_scale
        log_rate = self.log_rate + self.growth * scaled
        memoryless = -math.log1p(-share) * (-log_rate).clamp(max=10 * STEEPEST).exp()
        bend = (self.growth * memoryless).clamp(min=-1.0)
        further = memoryless * torch.where(bend == 0, 1.0, bend.log1p() / bend)
        return (scaled + further) * self.time_scale

    def _hazard_within(self, waited: Tensor) -> Tensor:
        """The integral of the hazard, `exp(log_rate) (exp(growth x) - 1) / growth`."""
        exponent = self.log_rate + _log_mean_exp(self.growth * waited)
        steep = (exponent - STEEPEST).relu()
        return waited * (exponent - steep).exp() * (1 + steep)


@final
@dataclass(frozen=True, eq=False)
class LogNormal(NextInterval):
    """`log(1 + d/time_scale)` is normal, cut off at the event and scaled up to integrate to one.

    Finite at an interval of 0, where a log-normal of `d` itself would not be.
    """

    mean: Float64[Tensor, "..."]
    spread: Float64[Tensor, ""]
    time_scale: float

    def log_density(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """The log-density, per day."""
        deviation = (self._log(intervals) - self.mean) / self.spread
        normal = -0.5 * deviation.square() - self.spread.log() - 0.5 * math.log(2 * math.pi)
        return normal - self._log_kept() - (intervals + self.time_scale).log()

    def log_survival(self, intervals: Float64[Tensor, "..."]) -> Float64[Tensor, "..."]:
        """The log-probability that the next event takes longer than this."""
        return self._log_longer(intervals) - self._log_kept()

    def quantile_after(
        self, share: float, waited: Float64[Tensor, "..."]
    ) -> Float64[Tensor, "..."]:
        """Exact, far out in the tail as well."""
        log_longer = self._log_longer(waited) + math.log1p(-share)
        reached = self.mean - self.spread * _inverse_log_ndtr(log_longer)
        return self.time_scale * torch.maximum(reached, self._log(waited)).expm1()

    def _log_longer(self, intervals: Tensor) -> Tensor:
        """The log-survival before scaling up."""
        return _log_ndtr((self.mean - self._log(intervals)) / self.spread)

    def _log_kept(self) -> Tensor:
        """How much of the normal the cut leaves."""
        return _log_ndtr(self.mean / self.spread)

    def _log(self, intervals: Tensor) -> Tensor:
        return (intervals / self.time_scale).log1p()


def _log_mean_exp(z: Tensor) -> Tensor:
    """log((exp(z) - 1) / z): stable for either sign, and with a gradient at 0."""
    is_small = z.abs() < 0.01
    near = z / 2 + z**2 / 24 - z**4 / 2880
    far = torch.where(is_small, 1.0, z)
    return torch.where(is_small, near, far.relu() + (-(-far.abs()).expm1() / far.abs()).log())


def _log_ndtr(point: Tensor) -> Tensor:
    """The logarithm of the share of a standard normal that lies below a point."""
    log_share: Tensor = torch.special.log_ndtr(point)
    return log_share


def _inverse_log_ndtr(log_share: Tensor) -> Tensor:
    """The point of a standard normal below which lies a share, given by its logarithm."""
    in_tail = log_share < -300
    point = torch.special.ndtri(torch.where(in_tail, 0.5, log_share.exp()))
    wanted = torch.where(in_tail, log_share, -300.0)
    far = -(-2 * wanted).sqrt()
    for _ in range(4):
        reached = _log_ndtr(far)
        slope = (-0.5 * far.square() - 0.5 * math.log(2 * math.pi) - reached).exp()
        far = far - (reached - wanted) / slope  # Newton's method
    return torch.where(in_tail, far, point)


def at_most(values: Tensor, bound: float) -> Tensor:
    """`values` where well below `bound`, which they approach and never pass; gradients remain."""
    slack: Tensor = functional.softplus(bound - values)
    return bound - slack
