"""The softmax of a recommender with a wide part, against its definition."""

import numpy as np
import pytest
import torch
from torch import Tensor

from model.encoders import EncoderConfig
from model.encoders.transrec import TransRecConfig
from model.errors import TrainingError
from model.recommender import Recommender
from model.wide import WideConfig
from tests import tiny
from tests.training.fitting.stand_ins import everything, loss_of
from training.config import BCEConfig, FitConfig, LossConfig, SoftmaxConfig
from training.data.batches import TrainingBatch
from training.data.dataset import Dataset
from training.data.event_counts import count_pairs, count_training_events
from training.fitting.objective import Objective

SETTINGS = {"query_time_dropout": 0.0}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.of(tiny.gap_world(users=12, length=6))


@pytest.fixture(scope="module")
def supervised(data: Dataset) -> TrainingBatch:
    return everything(data)


@pytest.fixture(scope="module")
def recommender(data: Dataset) -> Recommender:
    config = tiny.recommender_config(tiny.ENCODER, items=len(data.catalog), wide=WideConfig())
    recommender = tiny.recommender(config)
    counted = np.ones(len(data), dtype=np.bool_)
    pairs = count_pairs(data, counted, "next_event")
    recommender.counts = count_training_events(data, counted, pairs)
    return recommender.eval()


@torch.no_grad()
def compute_surprise(recommender: Recommender, supervised: TrainingBatch) -> Tensor:
    """Compute -log p(target) of every target from the scores of all items."""
    at = recommender.encode_at(supervised.sequences, supervised.positions)
    scores = recommender.score_encoded(at, recommender.static_vectors())[:, 1:]
    chosen = torch.log_softmax(scores, -1)[supervised.position_of]
    return -chosen.gather(1, supervised.targets.unsqueeze(1) - 1).squeeze(1)


def find_counted(data: Dataset, recommender: Recommender, supervised: TrainingBatch) -> Tensor:
    """Find the targets of which any event is before the span of time of their query."""
    assert recommender.counts is not None
    popularity = recommender.counts.popularity.popularity
    batch = supervised.sequences
    index = supervised.positions[supervised.position_of]
    sample = torch.div(index, batch.rows.shape[1], rounding_mode="floor")
    days = batch.query_times.flatten()[index]
    instants = batch.origins[sample].numpy() + np.round(days.numpy() * tiny.DAY).astype(np.int64)
    spans = (instants - popularity.first_at) // popularity.width
    begins = popularity.first_at + spans * popularity.width
    return torch.tensor(
        [
            bool((data.times[data.rows == target] < begin).any())
            for target, begin in zip(supervised.targets.tolist(), begins.tolist(), strict=True)
        ]
    )


def test_the_loss_is_of_targets_that_were_counted_before(
    data: Dataset, recommender: Recommender, supervised: TrainingBatch
) -> None:
    surprise = compute_surprise(recommender, supervised)
    is_counted = find_counted(data, recommender, supervised)
    assert 5 <= (~is_counted).sum() < len(is_counted) / 2
    found = loss_of(recommender, supervised, SoftmaxConfig(), **SETTINGS)
    assert found.item() == pytest.approx(surprise[is_counted].mean().item(), abs=1e-4)


def test_many_negatives_approach_the_loss_of_all_items(
    recommender: Recommender, supervised: TrainingBatch
) -> None:
    full = loss_of(recommender, supervised, SoftmaxConfig(), **SETTINGS).item()
    sampled = SoftmaxConfig(sample_above=1, negatives=40_000)
    assert loss_of(recommender, supervised, sampled, **SETTINGS).item() == pytest.approx(
        full, abs=0.02
    )


def test_a_batch_of_new_items_only_has_no_gradient(
    data: Dataset, recommender: Recommender, supervised: TrainingBatch
) -> None:
    is_new = ~find_counted(data, recommender, supervised)
    assert torch.equal(supervised.position_of, torch.arange(len(supervised.positions)))
    new = supervised._replace(
        positions=supervised.positions[is_new],
        targets=supervised.targets[is_new],
        weights=supervised.weights[is_new],
        position_of=torch.arange(int(is_new.sum())),
    )
    loss = loss_of(recommender, new, SoftmaxConfig(), **SETTINGS)
    assert loss.item() == 0
    (gradient,) = torch.autograd.grad(loss, recommender.items.weight)
    assert not gradient.any()


@pytest.mark.parametrize(
    ("encoder", "loss", "named"),
    [(tiny.ENCODER, BCEConfig(), "bce"), (TransRecConfig(dim=8), SoftmaxConfig(), "TransRec")],
)
def test_a_loss_or_an_encoder_without_room_for_it_is_refused(
    encoder: EncoderConfig, loss: LossConfig, named: str
) -> None:
    recommender = tiny.recommender_config(encoder, wide=WideConfig()).build()
    with pytest.raises(TrainingError, match=f"a wide part is .*{named}"):
        Objective(recommender, FitConfig(loss=loss))
