import math
from collections.abc import Callable
from typing import final

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from model.batch import SequenceBatch
from model.errors import TrainingError
from model.interfaces import Encoded, Judged, SequenceEncoder, States
from model.recommender import Recommender
from tests import tiny
from tests.tiny import DAY, FIRST_AT, event_log
from training.batches import Supervised, TrainingWindows
from training.config import (
    BCEConfig,
    BPRConfig,
    ContinuousTimeConfig,
    FitConfig,
    GBCEConfig,
    LossConfig,
    SoftmaxConfig,
)
from training.dataset import Dataset
from training.losses import next_time_loss
from training.objective import batch_loss
from training.split import Predict

TOLD = FitConfig(query_time_dropout=0.0)
PAIRS = [
    BCEConfig(),
    BCEConfig(negatives=3),
    GBCEConfig(negatives=5),
    BPRConfig(),
    BPRConfig(negatives=3),
]
of_pairs = pytest.mark.parametrize("loss", PAIRS, ids=lambda loss: f"{loss.kind}-{loss.negatives}")


def dataset() -> Dataset:
    return Dataset.of(tiny.gap_world(users=30, length=8))


def small_shop() -> Dataset:
    """Four items; the second user has met all of them, each more than once."""
    items = ["a", "b", "a", "b", "a"], ["a", "b", "c", "d", "c", "a", "d"]
    log = [
        (f"u{user}", item, FIRST_AT + place * DAY)
        for user, some in enumerate(items)
        for place, item in enumerate(some)
    ]
    return Dataset.of(event_log(log))


def windows(data: Dataset, predict: Predict = "next_event") -> TrainingWindows:
    return TrainingWindows(
        data, data.offsets[1:], predict=predict, max_history=tiny.ENCODER.max_history
    )


def everything(data: Dataset, predict: Predict = "next_event") -> Supervised:
    (chosen,) = windows(data, predict).plan(np.random.default_rng(0), tokens=10_000)
    return windows(data, predict).supervise(chosen)


def fresh(data: Dataset, *, repeats: bool = False) -> Recommender:
    encoder = tiny.ENCODER.model_copy(update={"repeats": repeats})
    return tiny.recommender(tiny.described(encoder, items=len(data.catalog)))


def loss_of(
    recommender: Recommender, supervised: Supervised, loss: LossConfig, **changed: object
) -> Tensor:
    config = TOLD.model_copy(update={"loss": loss} | changed)
    return batch_loss(recommender, supervised, config, np.random.default_rng(1))


def dense_scores(recommender: Recommender, supervised: Supervised) -> Tensor:
    """The score of every item at every supervised position, repeats and all."""
    states = recommender.states(supervised.batch)
    users = recommender.user_vectors(states.users).flatten(0, 1)[supervised.positions]
    scores = users @ recommender.item_vectors().T
    if states.repeats is None:
        return scores
    length, lines = supervised.batch.rows.shape[1], []
    for number, flat in enumerate(supervised.positions.tolist()):
        sample, place = divmod(flat, length)
        mass = scores[number].exp()
        for event in range(place + 1):
            added = torch.zeros_like(mass)
            added[supervised.batch.rows[sample, event]] = 1.0
            mass = mass + added * states.repeats[sample, place, event].exp()
        lines.append(mass.log())
    return torch.stack(lines)


# The softmax


def test_with_enough_negatives_the_sampled_loss_nears_the_full_one() -> None:
    data = dataset()
    recommender, supervised = fresh(data), everything(data)
    full = loss_of(recommender, supervised, SoftmaxConfig()).item()
    near = loss_of(recommender, supervised, SoftmaxConfig(sample_above=1, negatives=40_000)).item()
    assert near == pytest.approx(full, abs=0.01)
    assert full == pytest.approx(math.log(len(data.catalog)), abs=1.5)


def test_withholding_every_query_time_leaves_nothing_to_read_from_it() -> None:
    data = dataset()
    recommender, supervised = fresh(data), everything(data)
    later = supervised.batch._replace(query_times=supervised.batch.query_times + 3.5)
    losses = [
        loss_of(recommender, one, SoftmaxConfig(), query_time_dropout=0.999_999_999).item()
        for one in (supervised, supervised._replace(batch=later))
    ]
    assert losses[0] == losses[1]


def test_repeats_are_learned_from_no_event_later_than_the_position() -> None:
    data = dataset()
    recommender, supervised = fresh(data, repeats=True), everything(data)
    found = loss_of(recommender, supervised, SoftmaxConfig()).item()
    scores = dense_scores(recommender, supervised)[supervised.position_of, 1:]
    assert found == pytest.approx(F.cross_entropy(scores, supervised.targets - 1).item(), abs=1e-4)


# Pairs


def drawn_rows(supervised: Supervised, loss: LossConfig) -> Tensor:
    """The negatives of every target, drawn as the same generator draws them."""
    rng = np.random.default_rng(1)
    places = supervised.positions[supervised.position_of]
    window_of = (places // supervised.batch.rows.shape[1]).numpy()
    assert not isinstance(loss, SoftmaxConfig)
    if isinstance(loss, GBCEConfig):
        drawn = supervised.met.draw(supervised.users, loss.negatives, rng)[window_of]
    else:
        drawn = supervised.met.draw(supervised.users[window_of], loss.negatives, rng)
    return torch.from_numpy(drawn)


def by_definition(scores: Tensor, supervised: Supervised, loss: LossConfig, items: int) -> float:
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
def test_pairs_are_scored_as_the_whole_catalogue_would_be(
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
        (f"u{user}", f"i{(user + 3 * day + place) % 12}", FIRST_AT + day * DAY)
        for user in range(4)
        for day in range(3)
        for place in range(1 + day)
    ]
    data = Dataset.of(event_log(log))
    recommender, supervised = fresh(data), everything(data, "next_basket")
    assert len(supervised.targets) > len(supervised.positions)
    expected = by_definition(
        dense_scores(recommender, supervised), supervised, loss, len(data.catalog)
    )
    assert loss_of(recommender, supervised, loss).item() == pytest.approx(expected, abs=1e-4)


# Encoders that stand for the abilities


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


@final
class Lookup(SequenceEncoder):
    """The user is the item met last; says of time what it is told to."""

    dim = 4

    def __init__(self, items: int, said: States | None = None) -> None:
        super().__init__()
        self.said = said
        self.groups = 2
        self.marks: Tensor
        marks = torch.zeros(items + 1, 2)
        marks[1::2, 0] = marks[2::3, 1] = 1.0
        self.register_buffer("marks", marks)

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


# Encoders that judge candidates


@of_pairs
@pytest.mark.parametrize("world", [dataset, small_shop])
def test_judging_the_candidates_is_scoring_them(
    loss: LossConfig, world: Callable[[], Dataset]
) -> None:
    data = world()
    supervised = everything(data)
    losses = []
    for encoder in (Judge(), Lookup(len(data.catalog))):
        recommender = recommender_of(encoder, data)
        found = loss_of(recommender, supervised, loss)
        found.backward()  # type: ignore[no-untyped-call]
        assert recommender.items.weight.grad is not None
        losses.append((found, recommender.items.weight.grad))
    torch.testing.assert_close(losses[0], losses[1])


def test_an_encoder_that_judges_candidates_is_trained_by_no_softmax() -> None:
    data = dataset()
    with pytest.raises(TrainingError, match="gbce or bpr, but Judge was to be trained by softmax"):
        loss_of(recommender_of(Judge(), data), everything(data), SoftmaxConfig())


# The likelihood of continuous time


def timed(data: Dataset, *rates: Rates) -> Recommender:
    said = States(torch.zeros(0, 0, 0), intensities=rates)
    return recommender_of(Lookup(len(data.catalog), said), data)


def regulariser(recommender: Recommender, supervised: Supervised, **how: object) -> float:
    """What the likelihood adds to the loss of the items, per unit of weight."""
    config = ContinuousTimeConfig.model_validate({"weight": 0.5} | how)
    both = loss_of(recommender, supervised, SoftmaxConfig(), continuous_time=config)
    return (both - loss_of(recommender, supervised, SoftmaxConfig())).item() / 0.5


SLOPES = torch.tensor([[0.3, 0.1], [0.2, 0.5], [0.1, 0.1]])


def days_waited(supervised: Supervised) -> list[float]:
    """From the event before to every target."""
    places = supervised.positions[supervised.position_of]
    return (supervised.batch.query_times - supervised.batch.times).flatten()[places].tolist()


def test_the_biased_likelihood_is_what_its_formula_says() -> None:
    data = dataset()
    supervised, recommender = everything(data), timed(data, Rates(SLOPES))
    terms = []
    marks = recommender.encoder.marks[supervised.targets]
    for days, mark in zip(days_waited(supervised), marks, strict=True):
        if not mark.any():
            continue
        for slopes in SLOPES:
            now = slopes * (1 + days)
            terms.append(math.log(float((now * mark).sum())) - 0.5 * days * float(now.sum()))
    assert 0 < len(terms) < 3 * len(supervised.targets)
    found = regulariser(recommender, supervised, integral="right_end")
    assert found == pytest.approx(-float(np.mean(terms)), rel=1e-4)


def test_one_draw_per_interval_is_unbiased_and_shared_by_all_layers() -> None:
    data = dataset()
    layers = Rates(SLOPES), Rates(2 * SLOPES)
    supervised, recommender = everything(data), timed(data, *layers)
    estimates = [regulariser(recommender, supervised) for _ in range(300)]
    expected = 0.0
    marks = recommender.encoder.marks[supervised.targets]
    for factor in (1, 2):
        terms = []
        for days, mark in zip(days_waited(supervised), marks, strict=True):
            if not mark.any():
                continue
            for slopes in factor * SLOPES:
                at_event = math.log(float((slopes * mark).sum()) * (1 + days))
                terms.append(at_event - float(slopes.sum()) * (days + days**2 / 2))
        expected -= float(np.mean(terms))
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - expected) < 4 * error
    intervals, drawn = layers[0].asked[:2]
    assert ((drawn >= 0) & (drawn <= intervals)).all()
    assert torch.equal(layers[0].asked[1], layers[1].asked[1])


def test_a_withheld_query_time_takes_its_position_out_of_the_likelihood() -> None:
    data = dataset()
    rates = Rates(SLOPES)
    supervised, recommender = everything(data), timed(data, rates)
    config = ContinuousTimeConfig(weight=0.5, integral="right_end")
    withheld = {"continuous_time": config, "query_time_dropout": 0.999_999_999}
    found = loss_of(recommender, supervised, SoftmaxConfig(), **withheld)
    assert found.item() == loss_of(recommender, supervised, SoftmaxConfig()).item()
    assert torch.equal(rates.asked[0], supervised.batch.query_times - supervised.batch.times)


def test_an_encoder_without_intensities_cannot_be_weighed_by_them() -> None:
    data = dataset()
    for encoder, loss in ((Lookup(len(data.catalog)), SoftmaxConfig()), (Judge(), BCEConfig())):
        with pytest.raises(TrainingError, match=r"fit\.continuous_time\.weight to 0"):
            loss_of(
                recommender_of(encoder, data),
                everything(data),
                loss,
                continuous_time=ContinuousTimeConfig(weight=0.1),
            )


# The next event's time


@pytest.mark.parametrize("predict", ["next_event", "next_basket"])
@pytest.mark.parametrize("withheld", [0.0, 0.999_999_999])
def test_the_next_time_is_that_of_the_next_event_or_basket_even_where_it_is_withheld(
    predict: Predict, withheld: float
) -> None:
    log = [(f"u{user}", f"i{n}", FIRST_AT + n // 2 * DAY * 3) for user in (0, 1) for n in range(7)]
    data = Dataset.of(event_log(log))
    supervised = everything(data, predict)
    said = States(torch.zeros(0, 0, 0), next_time=Exponential(0.25))
    recommender = recommender_of(Lookup(len(data.catalog), said), data)
    with_time, without = (
        loss_of(
            recommender,
            supervised,
            SoftmaxConfig(),
            next_time_weight=weight,
            query_time_dropout=withheld,
        ).item()
        for weight in (2.0, 0.0)
    )
    days = torch.tensor([3.0]) if predict == "next_basket" else torch.tensor([0.0, 3.0])
    expected = next_time_loss(math.log(0.25) - 0.25 * days, torch.ones_like(days)).item()
    assert (with_time - without) / 2 == pytest.approx(expected, abs=1e-5)
