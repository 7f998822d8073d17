"""The time from an event to its position's query time, as a recurrence reads it."""

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Float64
from pydantic import PositiveFloat
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config


class RawIntervalConfig(Config):
    """The interval itself, as one number."""

    kind: Literal["raw"] = "raw"
    time_scale: PositiveFloat = 30.0
    """Days that count as one; near the usual interval of the data is best. Far shorter ones hardly
    count at first, far longer ones saturate what reads them."""

    def build(self) -> "RawInterval":
        """The module this describes."""
        return RawInterval(time_scale=self.time_scale)


class LogIntervalConfig(Config):
    """The logarithm of the interval, as one number: it tells seconds from days from decades."""

    kind: Literal["log"] = "log"

    def build(self) -> "LogInterval":
        """The module this describes."""
        return LogInterval()


@final
class RawInterval(nn.Module):
    """Days over a scale. Shape: intervals (*) -> features (*, 1)."""

    dim = 1

    def __init__(self, *, time_scale: float) -> None:
        super().__init__()
        self.time_scale = time_scale

    def forward(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape 1"]:
        """The feature of intervals, in days."""
        return (intervals / self.time_scale).float().unsqueeze(-1)


@final
class LogInterval(nn.Module):
    """log(1 + days). Shape: intervals (*) -> features (*, 1)."""

    dim = 1

    def forward(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape 1"]:
        """The feature of intervals, in days."""
        return intervals.log1p().float().unsqueeze(-1)


@final
class IntervalFeatures(nn.Module):
    """Features of intervals to a query time, and learned ones of where that is withheld.

    Shape: intervals (*), given (*) -> features (*, time_dim)
    """

    def __init__(self, features: nn.Module, *, time_dim: int) -> None:
        super().__init__()
        self.features = features
        # No interval is negative: from the start, not told is apart from asked at once.
        self.withheld = nn.Parameter(torch.full((time_dim,), -1.0))

    def forward(
        self, intervals: Float64[Tensor, "*shape"], given: Bool[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape time_dim"]:
        """The features of intervals, in days, where they are given."""
        return torch.where(given.unsqueeze(-1), self.features(intervals), self.withheld)


def until_asked(batch: SequenceBatch) -> Float64[Tensor, "batch len"]:
    """Days from every event to its position's own query time: in training, to the next event."""
    return (batch.query_times - batch.times).masked_fill(batch.rows == PADDING_ROW, 0)
