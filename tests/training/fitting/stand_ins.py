"""Stand-in encoders with the capabilities that losses need, and batches for them."""

import math
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from model.batch import SequenceBatch
from model.interfaces import CandidateScores, EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.interval_distribution import IntervalDistribution
from model.layers.item_groups import ItemGroups
from model.recommender import Recommender
from tests import tiny
from training.config import FitConfig, LossConfig
from training.data.batches import TrainingBatch, TrainingWindows
from training.data.dataset import Dataset
from training.data.split import Predict
from training.fitting.objective import Objective

ALWAYS_GIVEN = FitConfig(query_time_dropout=0.0)


def dataset() -> Dataset:
    return Dataset.of(tiny.gap_world(users=30, length=8))


def windows(data: Dataset, predict: Predict = "next_event") -> TrainingWindows:
    return TrainingWindows(
        data, data.offsets[1:], predict=predict, max_history=tiny.ENCODER.max_history
    )


def everything(data: Dataset, predict: Predict = "next_event") -> TrainingBatch:
    (chosen,) = windows(data, predict).plan(np.random.default_rng(0), tokens=10_000)
    return windows(data, predict).build_batch(chosen)


def loss_of(
    recommender: Recommender, supervised: TrainingBatch, loss: LossConfig, **changed: object
) -> Tensor:
    config = ALWAYS_GIVEN.model_copy(update={"loss": loss} | changed)
    return Objective(recommender, config).compute_loss(supervised, np.random.default_rng(1))


class Rates:
    """Intensities that grow with the interval, per head and group; records its intervals."""

    def __init__(self, slopes: Tensor) -> None:
        self.slopes = slopes
        self.received: list[Tensor] = []

    def evaluate(
        self, intervals: Float64[Tensor, "batch len"]
    ) -> Float[Tensor, "batch heads len groups"]:
        """Slope x (1 + interval)."""
        self.received.append(intervals)
        return ((1 + intervals)[:, None, :, None] * self.slopes[None, :, None, :]).float()


class Exponential(IntervalDistribution):
    """The next event comes at a constant rate."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def log_density(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """That of an exponential distribution."""
        return (math.log(self.rate) - self.rate * intervals).float()

    def quantile(self, probability: float) -> Float64[Tensor, "*shape"]:
        """Not used by a loss."""
        raise NotImplementedError

    def quantile_after(
        self, probability: float, elapsed: Float64[Tensor, "*shape"]
    ) -> Float64[Tensor, "*shape"]:
        return elapsed - math.log(1 - probability) / self.rate

    def log_survival(self, intervals: Float64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
        return -self.rate * intervals


@final
class Lookup(SequenceEncoder):
    """The user vector is the last item's vector; other outputs are given."""

    dim = 4

    def __init__(self, items: int, outputs: PositionOutputs | None = None) -> None:
        super().__init__()
        self.outputs = outputs
        self.item_groups = ItemGroups(items=items, groups=2)
        self.item_groups.membership[1::2, 0] = self.item_groups.membership[2::3, 1] = 1.0

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        return (
            PositionOutputs(items) if self.outputs is None else self.outputs._replace(users=items)
        )

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        return EncoderOutput(items[torch.arange(len(items)), batch.lengths - 1])


@final
class CandidateEncoder(SequenceEncoder):
    """Scores a candidate by the last item, as `Lookup` does, but reads the candidate."""

    dim = 4

    def score_candidates(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " queries"],
        candidates: Float[Tensor, "queries candidates dim"],
    ) -> CandidateScores:
        last = items.flatten(0, 1)[positions]
        return CandidateScores(torch.einsum("qd,qcd->qc", last, candidates), attention=None)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        return EncoderOutput(items[torch.arange(len(items)), batch.lengths - 1])


def recommender_of(encoder: SequenceEncoder, data: Dataset) -> Recommender:
    torch.manual_seed(3)
    recommender = Recommender(items=len(data.catalog), item_bias=True, encoder=encoder)
    assert recommender.item_bias is not None
    with torch.no_grad():
        recommender.item_bias.normal_()
    return recommender
