import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from model.errors import TrainingError
from model.recommender import Recommender
from tests import tiny
from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.fitting.stand_ins import (
    CandidateEncoder,
    Lookup,
    dataset,
    everything,
    loss_of,
    recommender_of,
)
from training.config import (
    BCEConfig,
    BPRConfig,
    GBCEConfig,
    LossConfig,
    SoftmaxConfig,
)
from training.data.batches import TrainingBatch
from training.data.dataset import Dataset

SECOND = 1_000_000
PAIRS = [
    BCEConfig(),
    BCEConfig(negatives=3),
    GBCEConfig(negatives=5),
    BPRConfig(),
    BPRConfig(negatives=3),
]
of_losses = pytest.mark.parametrize(
    "loss", [SoftmaxConfig(), SoftmaxConfig(sample_above=0, negatives=8), BCEConfig(), BPRConfig()]
)
of_pairs = pytest.mark.parametrize("loss", PAIRS, ids=lambda loss: f"{loss.kind}-{loss.negatives}")


def small_shop() -> Dataset:
    """Four items; the second user has seen all of them, each more than once."""
    items = ["a", "b", "a", "b", "a"], ["a", "b", "c", "d", "c", "a", "d"]
    log = [
        (f"u{user}", item, FIRST_AT + index * DAY)
        for user, some in enumerate(items)
        for index, item in enumerate(some)
    ]
    return Dataset.of(event_log(log))


def fresh(data: Dataset, *, repeats: bool = False) -> Recommender:
    encoder = tiny.ENCODER.model_copy(update={"repeats": repeats})
    return tiny.recommender(tiny.recommender_config(encoder, items=len(data.catalog)))


def dense_scores(recommender: Recommender, supervised: TrainingBatch) -> Tensor:
    """The score of every item at every supervised position, repeats and all."""
    states = recommender.encode_positions(supervised.sequences)
    users = recommender.user_vectors(states.users).flatten(0, 1)[supervised.positions]
    scores = users @ recommender.item_vectors().T
    if states.repeat_scores is None:
        return scores
    length, lines = supervised.sequences.rows.shape[1], []
    for number, flat in enumerate(supervised.positions.tolist()):
        sample, position = divmod(flat, length)
        mass = scores[number].exp()
        for event in range(position + 1):
            added = torch.zeros_like(mass)
            added[supervised.sequences.rows[sample, event]] = 1.0
            mass = mass + added * states.repeat_scores[sample, position, event].exp()
        lines.append(mass.log())
    return torch.stack(lines)


# The softmax


def test_many_negatives_approach_the_full_loss() -> None:
    data = dataset()
    recommender, supervised = fresh(data), everything(data)
    full = loss_of(recommender, supervised, SoftmaxConfig()).item()
    near = loss_of(recommender, supervised, SoftmaxConfig(sample_above=1, negatives=40_000)).item()
    assert near == pytest.approx(full, abs=0.01)
    assert full == pytest.approx(math.log(len(data.catalog)), abs=1.5)


def test_withheld_query_times_do_not_change_the_loss() -> None:
    data = dataset()
    recommender, supervised = fresh(data), everything(data)
    later = supervised.sequences._replace(query_times=supervised.sequences.query_times + 3.5)
    losses = [
        loss_of(recommender, one, SoftmaxConfig(), query_time_dropout=0.999_999_999).item()
        for one in (supervised, supervised._replace(sequences=later))
    ]
    assert losses[0] == losses[1]


@of_losses
def test_steps_of_a_session_weigh_less(loss: LossConfig) -> None:
    """Targets an hour or more after the event before weigh in full, the others a quarter."""
    seconds = [0, 3_599, 3_600 + 3_599, 40 * 86_400, 40 * 86_400 + 10]
    seconds += [seconds[-1] + 3_600 * hour for hour in range(1, 9)]
    data = Dataset.of(
        event_log(
            [
                (user, item, FIRST_AT + at * SECOND)
                for user in ("u1", "u2")
                for item, at in zip("abcdabcdabcda", seconds, strict=True)
            ]
        )
    )
    supervised, recommender = everything(data), fresh(data)
    is_session = np.tile([True, False, False, True, *[False] * 8], 2)
    weights = torch.from_numpy(np.where(is_session, 0.25, 1.0)).float()
    weighted = loss_of(recommender, supervised._replace(weights=weights), loss)
    assert loss_of(recommender, supervised, loss, session_weight=0.25).item() == weighted.item()
    assert loss_of(recommender, supervised, loss).item() != weighted.item()


def test_baskets_of_a_session_weigh_less() -> None:
    log = [
        ("u1", item, FIRST_AT + at * SECOND)
        for item, at in zip("abcd", (0, 0, 60, 60), strict=True)
    ]
    log += [("u1", item, FIRST_AT + 9 * DAY) for item in "ac"]
    data = Dataset.of(event_log(log))
    supervised, recommender = everything(data, "next_basket"), fresh(data)
    assert supervised.targets.tolist() == [*data.rows[2:]]
    weights = torch.tensor([0.05, 0.05, 0.5, 0.5])
    weighted = loss_of(recommender, supervised._replace(weights=weights), SoftmaxConfig())
    found = loss_of(recommender, supervised, SoftmaxConfig(), session_weight=0.1)
    assert found.item() == weighted.item()


def test_repeats_ignore_events_later_than_the_position() -> None:
    data = dataset()
    recommender, supervised = fresh(data, repeats=True), everything(data)
    found = loss_of(recommender, supervised, SoftmaxConfig()).item()
    scores = dense_scores(recommender, supervised)[supervised.position_of, 1:]
    assert found == pytest.approx(F.cross_entropy(scores, supervised.targets - 1).item(), abs=1e-4)


# Pairs


def drawn_rows(supervised: TrainingBatch, loss: LossConfig) -> Tensor:
    """The negatives of every target, drawn as the same generator draws them."""
    rng = np.random.default_rng(1)
    positions = supervised.positions[supervised.position_of]
    window_of = (positions // supervised.sequences.rows.shape[1]).numpy()
    assert not isinstance(loss, SoftmaxConfig)
    if isinstance(loss, GBCEConfig):
        drawn = supervised.seen.draw_unseen(supervised.users, loss.negatives, rng)[window_of]
    else:
        drawn = supervised.seen.draw_unseen(supervised.users[window_of], loss.negatives, rng)
    return torch.from_numpy(drawn)


def by_definition(scores: Tensor, supervised: TrainingBatch, loss: LossConfig, items: int) -> float:
    """A loss of pairs, one target and one negative at a time."""
    rows, total, weight = drawn_rows(supervised, loss), 0.0, 0.0
    for number, target in enumerate(supervised.targets.tolist()):
        line = scores[supervised.position_of[number]]
        kept = [line[row] for row in rows[number].tolist() if row != target]
        if isinstance(loss, BPRConfig):
            one = -sum(F.logsigmoid(line[target] - other).item() for other in kept)
            one /= loss.negatives
        else:
            power, share = 1.0, 1.0
            if isinstance(loss, GBCEConfig):
                alpha = min(loss.negatives / (items - 1), 1)
                power = alpha * (loss.calibration * (1 - 1 / alpha) + 1 / alpha)
                share = 1 / (loss.negatives + 1)
            one = -power * F.logsigmoid(line[target]).item()
            one -= sum(F.logsigmoid(-other).item() for other in kept)
            one *= share
        total += one * float(supervised.weights[number])
        weight += float(supervised.weights[number])
    return total / weight


@of_pairs
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("world", [dataset, small_shop])
def test_pairs_are_scored_as_the_whole_catalog_would_be(
    loss: LossConfig, repeats: bool, world: Callable[[], Dataset]
) -> None:
    data = world()
    recommender, supervised = fresh(data, repeats=repeats), everything(data)
    found = loss_of(recommender, supervised, loss)
    scores = dense_scores(recommender, supervised)
    expected = by_definition(scores, supervised, loss, len(data.catalog))
    assert found.item() == pytest.approx(expected, abs=1e-4)
    found.backward()  # type: ignore[no-untyped-call]
    for parameter in recommender.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


@of_pairs
def test_targets_of_one_basket_share_its_weight(loss: LossConfig) -> None:
    log = [
        (f"u{user}", f"i{(user + 3 * day + index) % 12}", FIRST_AT + day * DAY)
        for user in range(4)
        for day in range(3)
        for index in range(1 + day)
    ]
    data = Dataset.of(event_log(log))
    recommender, supervised = fresh(data), everything(data, "next_basket")
    assert len(supervised.targets) > len(supervised.positions)
    expected = by_definition(
        dense_scores(recommender, supervised), supervised, loss, len(data.catalog)
    )
    assert loss_of(recommender, supervised, loss).item() == pytest.approx(expected, abs=1e-4)


# Encoders that score candidates


@of_pairs
@pytest.mark.parametrize("world", [dataset, small_shop])
def test_scoring_candidates_equals_inner_products(
    loss: LossConfig, world: Callable[[], Dataset]
) -> None:
    data = world()
    supervised = everything(data)
    losses = []
    for encoder in (CandidateEncoder(), Lookup(len(data.catalog))):
        recommender = recommender_of(encoder, data)
        found = loss_of(recommender, supervised, loss)
        found.backward()  # type: ignore[no-untyped-call]
        assert recommender.items.weight.grad is not None
        losses.append((found, recommender.items.weight.grad))
    torch.testing.assert_close(losses[0], losses[1])


def test_a_candidate_scorer_is_not_trained_by_softmax() -> None:
    data = dataset()
    with pytest.raises(
        TrainingError, match="gbce or bpr, but CandidateEncoder was to be trained by softmax"
    ):
        loss_of(recommender_of(CandidateEncoder(), data), everything(data), SoftmaxConfig())
