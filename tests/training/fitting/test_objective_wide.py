"""The softmax of a recommender with a wide part, against its definition."""

import numpy as np
import pytest
import torch
from torch import Tensor

from model.encoders import EncoderConfig
from model.encoders.transrec import TransRecConfig
from model.errors import TrainingError
from model.popularity_table import PopularityFeatures
from model.recommender import Recommender
from model.wide import WideConfig
from tests import tiny
from tests.training.fitting.stand_ins import everything, loss_of
from training.config import BCEConfig, FitConfig, LossConfig, SoftmaxConfig
from training.data.batches import TrainingBatch
from training.data.dataset import Dataset
from training.data.event_counts import count_pairs, count_training_events
from training.fitting.losses.softmax import GatedPopularity
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


def find_weights(data: Dataset, recommender: Recommender, supervised: TrainingBatch) -> Tensor:
    """Weigh the targets: of the events in an item's first span, one is its first."""
    assert recommender.counts is not None
    popularity = recommender.counts.popularity.popularity
    weights = []
    is_counted = find_counted(data, recommender, supervised)
    for target, counted in zip(supervised.targets.tolist(), is_counted.tolist(), strict=True):
        spans = (data.times[data.rows == target] - popularity.first_at) // popularity.width
        in_first = int((spans == spans.min()).sum())
        weights.append(1.0 if counted else 1 - 1 / in_first)
    return torch.tensor(weights)


def test_the_loss_leaves_out_the_first_event_of_every_item(
    data: Dataset, recommender: Recommender, supervised: TrainingBatch
) -> None:
    surprise = compute_surprise(recommender, supervised)
    weights = find_weights(data, recommender, supervised)
    assert 5 <= (weights == 0).sum() < len(weights) / 2
    found = loss_of(recommender, supervised, SoftmaxConfig(), **SETTINGS)
    expected = (surprise * weights).sum() / weights.sum()
    assert found.item() == pytest.approx(expected.item(), abs=1e-4)


def test_the_events_of_a_burst_of_a_new_item_keep_their_weight() -> None:
    never, before = [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]
    popularity = GatedPopularity(
        torch.zeros(1, 3),
        PopularityFeatures(torch.zeros(1, 3, 2), torch.zeros(1, dtype=torch.int64)),
        torch.tensor([never, never, before]),
    )
    weights = popularity.weigh_targets(torch.tensor([1, 500, 1]))
    assert weights.tolist() == pytest.approx([0, 0.998, 1])


def test_popularity_of_some_items_is_that_of_each_users_snapshot() -> None:
    rng = torch.Generator().manual_seed(0)
    table = torch.randn(5, 3, 9, generator=rng)
    # Neither in order nor all of them.
    snapshot_of = torch.tensor([4, 0, 2, 4, 2, 0, 4])
    gates = torch.randn(len(snapshot_of), 3, generator=rng)
    rows = torch.tensor([8, 1, 1, 5])
    popularity = GatedPopularity(gates, PopularityFeatures(table, snapshot_of), torch.zeros(0, 3))
    expected = torch.stack(
        [own @ table[one][:, rows] for own, one in zip(gates, snapshot_of, strict=True)]
    )
    torch.testing.assert_close(popularity.score_rows(rows), expected)


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
    is_new = find_weights(data, recommender, supervised) == 0
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
