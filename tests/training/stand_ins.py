"""Encoders that stand for the abilities that losses ask for, and batches to try losses on."""

import math
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from model.batch import SequenceBatch
from model.interfaces import Encoded, Judged, SequenceEncoder, States
from model.layers.item_groups import ItemGroups
from model.recommender import Recommender
from tests import tiny
from training.config import FitConfig, LossConfig
from training.data.batches import Supervised, TrainingWindows
from training.data.dataset import Dataset
from training.data.split import Predict
from training.fitting.objective import batch_loss

TOLD = FitConfig(query_time_dropout=0.0)


def dataset() -> Dataset:
    return Dataset.of(tiny.gap_world(users=30, length=8))


def windows(data: Dataset, predict: Predict = "next_event") -> TrainingWindows:
    return TrainingWindows(
        data, data.offsets[1:], predict=predict, max_history=tiny.ENCODER.max_history
    )


def everything(data: Dataset, predict: Predict = "next_event") -> Supervised:
    (chosen,) = windows(data, predict).plan(np.random.default_rng(0), tokens=10_000)
    return windows(data, predict).supervise(chosen)


def loss_of(
    recommender: Recommender, supervised: Supervised, loss: LossConfig, **changed: object
) -> Tensor:
    config = TOLD.model_copy(update={"loss": loss} | changed)
    return batch_loss(recommender, supervised, config, np.random.default_rng(1))


class Rates:
    """Intensities that grow with the interval, per head and group; remembers what it was asked."""

    def __init__(self, slopes: Tensor) -> None:
        self.slopes = slopes
        self.asked: list[Tensor] = []

    def at(
        self, intervals: Float64[Tensor, "batch len"]
    ) -> Float[Tensor, "batch heads len groups"]:
        """Slope x (1 + interval)."""
        self.asked.append(intervals)
        return ((1 + intervals)[:, None, :, None] * self.slopes[None, :, None, :]).float()


class Exponential:
    """The next event comes at a constant rate."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def log_density(self, intervals: Float64[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """That of an exponential distribution."""
        return (math.log(self.rate) - self.rate * intervals).float()

    def quantile(self, share: float) -> Float64[Tensor, "*shape"]:
        """Nobody asks."""
        raise NotImplementedError

    def quantile_after(
        self, share: float, waited: Float64[Tensor, "*shape"]
    ) -> Float64[Tensor, "*shape"]:
        return waited - math.log(1 - share) / self.rate

    def log_survival(self, intervals: Float64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
        return -self.rate * intervals


@final
class Lookup(SequenceEncoder):
    """The user is the item met last; says of time what it is told to."""

    dim = 4

    def __init__(self, items: int, said: States | None = None) -> None:
        super().__init__()
        self.said = said
        self.item_groups = ItemGroups(items=items, groups=2)
        self.item_groups.marks[1::2, 0] = self.item_groups.marks[2::3, 1] = 1.0

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        return States(items) if self.said is None else self.said._replace(users=items)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        return Encoded(items[torch.arange(len(items)), batch.lengths - 1])


@final
class Judge(SequenceEncoder):
    """Scores a candidate by the item met last, as `Lookup` does, but must see it."""

    dim = 4

    def judge(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "batch len dim"],
        positions: Int64[Tensor, " questions"],
        candidates: Float[Tensor, "questions candidates dim"],
    ) -> Judged:
        last = items.flatten(0, 1)[positions]
        return Judged(torch.einsum("qd,qcd->qc", last, candidates), attention=None)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        return Encoded(items[torch.arange(len(items)), batch.lengths - 1])


def recommender_of(encoder: SequenceEncoder, data: Dataset) -> Recommender:
    torch.manual_seed(3)
    recommender = Recommender(items=len(data.catalog), item_bias=True, encoder=encoder)
    assert recommender.item_bias is not None
    with torch.no_grad():
        recommender.item_bias.normal_()
    return recommender
