"""Features of the interval from an event to its position's query time, for recurrent encoders."""

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Float64
from pydantic import PositiveFloat
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config


class RawIntervalConfig(Config):
    """The interval itself as one feature."""

    kind: Literal["raw"] = "raw"
    time_scale: PositiveFloat = 30.0
    """Days per unit of the feature; best near the typical interval of the data. Much shorter
    intervals have little effect at first, much longer ones saturate the gates."""

    def build(self) -> "RawInterval":
        """Build the module."""
        return RawInterval(time_scale=self.time_scale)


class LogIntervalConfig(Config):
    """The logarithm of the interval as one feature, which resolves seconds, days and decades."""

    kind: Literal["log"] = "log"

    def build(self) -> "LogInterval":
        """Build the module."""
        return LogInterval()


@final
class RawInterval(nn.Module):
    """Days divided by a scale.

    Shape: intervals in days (*) -> features (*, 1)
    """

    dim = 1

    def __init__(self, *, time_scale: float) -> None:
        super().__init__()
        self.time_scale = time_scale

    def forward(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape 1"]:
        """Compute the feature of intervals in days."""
        return (intervals / self.time_scale).float().unsqueeze(-1)


@final
class LogInterval(nn.Module):
    """log(1 + days).

    Shape: intervals in days (*) -> features (*, 1)
    """

    dim = 1

    def forward(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape 1"]:
        """Compute the feature of intervals in days."""
        return intervals.log1p().float().unsqueeze(-1)


@final
class IntervalFeatures(nn.Module):
    """Features of intervals to a query time, replaced by a learned vector where it is withheld.

    Shape: intervals in days (*), given (*) -> features (*, time_dim)
    """

    def __init__(self, features: nn.Module, *, time_dim: int) -> None:
        super().__init__()
        self.features = features
        # Intervals are never negative, so -1 separates "withheld" from "zero" from the start.
        self.withheld = nn.Parameter(torch.full((time_dim,), -1.0))

    def forward(
        self, intervals: Float64[Tensor, "*shape"], given: Bool[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape time_dim"]:
        """Compute the features; `given` is false where the query time is withheld."""
        return torch.where(given.unsqueeze(-1), self.features(intervals), self.withheld)


def compute_interval_to_query(batch: SequenceBatch) -> Float64[Tensor, "batch len"]:
    """Return the days from every event to its position's own query time, 0 on padding."""
    return (batch.query_times - batch.times).masked_fill(batch.rows == PADDING_ROW, 0)
