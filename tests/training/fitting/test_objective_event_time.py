import math

import numpy as np
import pytest
import torch
from torch import Tensor

from model.encoders import EncoderConfig
from model.encoders.din import DINConfig
from model.encoders.sasrec import SASRecConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.errors import TrainingError
from model.interfaces import PositionOutputs
from model.layers.self_modulation import ModulationConfig
from model.recommender import Recommender
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from tests.tiny import DAY, FIRST_AT, event_log
from tests.training.fitting.stand_ins import (
    CandidateEncoder,
    Exponential,
    Lookup,
    Rates,
    dataset,
    everything,
    loss_of,
    recommender_of,
)
from training.config import (
    BCEConfig,
    ContinuousTimeConfig,
    GBCEConfig,
    LossConfig,
    SoftmaxConfig,
)
from training.data.batches import TrainingBatch
from training.data.dataset import Dataset
from training.data.split import Predict
from training.fitting import objective
from training.fitting.losses.event_time import next_time_loss

MODULATION = ModulationConfig(groups=2)

# The likelihood of continuous time


def timed(data: Dataset, *rates: Rates) -> Recommender:
    outputs = PositionOutputs(torch.zeros(0, 0, 0), intensities=rates)
    return recommender_of(Lookup(len(data.catalog), outputs), data)


def regulariser(recommender: Recommender, supervised: TrainingBatch, **how: object) -> float:
    """The term of the likelihood in the loss, per unit of weight."""
    config = ContinuousTimeConfig.model_validate({"weight": 0.5} | how)
    both = loss_of(recommender, supervised, SoftmaxConfig(), continuous_time=config)
    return (both - loss_of(recommender, supervised, SoftmaxConfig())).item() / 0.5


SLOPES = torch.tensor([[0.3, 0.1], [0.2, 0.5], [0.1, 0.1]])


def days_waited(supervised: TrainingBatch) -> list[float]:
    """Days from the previous event to every target."""
    positions = supervised.positions[supervised.position_of]
    return (
        (supervised.sequences.query_times - supervised.sequences.times)
        .flatten()[positions]
        .tolist()
    )


def test_the_biased_likelihood_is_what_its_formula_says() -> None:
    data = dataset()
    supervised, recommender = everything(data), timed(data, Rates(SLOPES))
    terms = []
    assert recommender.encoder.item_groups is not None
    marks = recommender.encoder.item_groups(supervised.targets)
    for days, mark in zip(days_waited(supervised), marks, strict=True):
        if not mark.any():
            continue
        for slopes in SLOPES:
            now = slopes * (1 + days)
            terms.append(math.log(float((now * mark).sum())) - 0.5 * days * float(now.sum()))
    assert 0 < len(terms) < 3 * len(supervised.targets)
    found = regulariser(recommender, supervised, integral="right_end")
    assert found == pytest.approx(-float(np.mean(terms)), rel=1e-4)


@pytest.mark.slow
def test_one_draw_per_interval_is_unbiased_and_shared() -> None:
    data = dataset()
    layers = Rates(SLOPES), Rates(2 * SLOPES)
    supervised, recommender = everything(data), timed(data, *layers)
    estimates = [regulariser(recommender, supervised) for _ in range(300)]
    expected = 0.0
    assert recommender.encoder.item_groups is not None
    marks = recommender.encoder.item_groups(supervised.targets)
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
    intervals, drawn = layers[0].received[:2]
    assert ((drawn >= 0) & (drawn <= intervals)).all()
    assert torch.equal(layers[0].received[1], layers[1].received[1])


@pytest.mark.parametrize(
    ("config", "loss"),
    [
        (SelfAttentionConfig(dim=8, layers=2, modulation=MODULATION), SoftmaxConfig()),
        (SelfAttentionConfig(dim=8, layers=2, modulation=MODULATION), GBCEConfig(negatives=3)),
        (
            SelfAttentionConfig(
                dim=8,
                time_encoding=NonstationaryConfig(),
                modulation=MODULATION,
                position_table=False,
            ),
            SoftmaxConfig(),
        ),
        (
            SASRecConfig(dim=8, time_encoding=MercerConfig(), modulation=MODULATION),
            SoftmaxConfig(),
        ),
        (DINConfig(dim=8, hidden=(8, 4), modulation=MODULATION), BCEConfig()),
    ],
)
def test_intensities_before_a_target_do_not_know_its_time(
    config: EncoderConfig, loss: LossConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two histories differ in the time of the last target only."""
    wait = 0.5
    rates: list[list[Tensor]] = []

    def record(at_event: Tensor, within: Tensor, *_: object) -> Tensor:
        rates[-1].append(within.detach())
        return at_event.sum() * 0

    monkeypatch.setattr(objective, "continuous_time_loss", record)
    for last in (9, 90):
        days = (0, 1, 5, last)
        log = [("u", f"i{n}", FIRST_AT + day * DAY) for n, day in enumerate(days)]
        data = Dataset.of(event_log([*log, ("v", "i4", FIRST_AT), ("v", "i5", FIRST_AT + DAY)]))
        torch.manual_seed(0)
        encoder = config.build(items=len(data.catalog))
        assert encoder.item_groups is not None
        encoder.item_groups.membership[1::2, 0] = encoder.item_groups.membership[2::2, 1] = 1.0
        rates.append([])
        with monkeypatch.context() as drawn:
            drawn.setattr(torch, "rand_like", lambda intervals: wait / intervals.clamp(min=wait))
            loss_of(
                recommender_of(encoder, data).eval(),
                everything(data),
                loss,
                continuous_time=ContinuousTimeConfig(weight=1.0),
            )
    assert rates[0]
    for soon, late in zip(*rates, strict=True):
        torch.testing.assert_close(soon, late)


def test_withheld_query_times_are_not_in_the_likelihood() -> None:
    data = dataset()
    rates = Rates(SLOPES)
    supervised, recommender = everything(data), timed(data, rates)
    config = ContinuousTimeConfig(weight=0.5, integral="right_end")
    withheld = {"continuous_time": config, "query_time_dropout": 0.999_999_999}
    found = loss_of(recommender, supervised, SoftmaxConfig(), **withheld)
    assert found.item() == loss_of(recommender, supervised, SoftmaxConfig()).item()
    assert torch.equal(
        rates.received[0], supervised.sequences.query_times - supervised.sequences.times
    )


def test_continuous_time_needs_an_encoder_with_intensities() -> None:
    data = dataset()
    for encoder, loss in (
        (Lookup(len(data.catalog)), SoftmaxConfig()),
        (CandidateEncoder(), BCEConfig()),
    ):
        with pytest.raises(TrainingError, match=r"fit\.continuous_time\.weight to 0"):
            loss_of(
                recommender_of(encoder, data),
                everything(data),
                loss,
                continuous_time=ContinuousTimeConfig(weight=0.1),
            )


def test_a_candidate_scorer_uses_its_targets_intensities() -> None:
    data = dataset()
    torch.manual_seed(0)
    encoder = DINConfig(dim=8, hidden=(8, 4), modulation=ModulationConfig(groups=2)).build(
        items=len(data.catalog)
    )
    assert encoder.item_groups is not None
    encoder.item_groups.membership[1::2, 0] = encoder.item_groups.membership[2::2, 1] = 1.0
    recommender, supervised = recommender_of(encoder, data).eval(), everything(data)
    positions = supervised.positions[supervised.position_of]
    scored = recommender.score_candidates(
        supervised.sequences, positions, supervised.targets.unsqueeze(1)
    )
    assert scored.intensities is not None
    days = torch.tensor(days_waited(supervised), dtype=torch.float64)
    rates = scored.intensities.evaluate(days.unsqueeze(1))[:, 0, 0]
    own = (rates * encoder.item_groups(supervised.targets)).sum(-1)
    expected = -(own.log() - 0.5 * days * rates.sum(-1)).mean()
    config = ContinuousTimeConfig(weight=1.0, integral="right_end")
    with_times = loss_of(recommender, supervised, BCEConfig(), continuous_time=config)
    without = loss_of(recommender, supervised, BCEConfig())
    assert (with_times - without).item() == pytest.approx(expected.item(), rel=1e-4)


# The next event's time


@pytest.mark.parametrize("predict", ["next_event", "next_basket"])
@pytest.mark.parametrize("withheld", [0.0, 0.999_999_999])
def test_the_next_time_counts_even_where_it_is_withheld(predict: Predict, withheld: float) -> None:
    log = [(f"u{user}", f"i{n}", FIRST_AT + n // 2 * DAY * 3) for user in (0, 1) for n in range(7)]
    data = Dataset.of(event_log(log))
    supervised = everything(data, predict)
    outputs = PositionOutputs(torch.zeros(0, 0, 0), next_time=Exponential(0.25))
    recommender = recommender_of(Lookup(len(data.catalog), outputs), data)
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
