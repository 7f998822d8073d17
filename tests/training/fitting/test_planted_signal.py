"""A planted signal: if time alone decides the next item, an encoder of time must find it.

In `tiny.gap_world` the next item comes from one half of the items after a short gap and from the
other half after a long one, and nothing else predicts which. The ten items of the right half fill
the top ten, so the share of hits in the top ten is the share of questions whose half was found.
"""

import pytest
import torch

from model.encoders.self_attention import SelfAttentionConfig
from model.recommender import Recommender, RecommenderConfig
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.positional import PositionalConfig
from tests import tiny
from training.config import FitConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.data.split import ByUserConfig, Split
from training.evaluation.evaluate import evaluate
from training.fitting.fit import fit

pytestmark = pytest.mark.slow

MAX_HISTORY = 12
FIT = FitConfig(
    epochs=40, tokens=400, learning_rate=5e-3, warmup_steps=5, query_time_dropout=0.2, seed=1
)


@pytest.fixture(scope="module")
def split() -> Split:
    dataset = Dataset.of(tiny.gap_world())
    return ByUserConfig(test=0.2, validation=0.1).split(dataset, "next_event")


def trained(split: Split, time_encoding: TimeEncodingConfig) -> Recommender:
    encoder = SelfAttentionConfig(
        dim=16,
        heads=2,
        layers=1,
        feed_forward=16,
        dropout=0.0,
        max_history=MAX_HISTORY,
        time_encoding=time_encoding,
    )
    torch.manual_seed(1)
    recommender = RecommenderConfig(items=len(split.dataset.catalog), encoder=encoder).build()
    windows = TrainingWindows(
        split.dataset, split.train_ends, predict="next_event", max_history=MAX_HISTORY
    )
    fit(recommender, windows, FIT, evaluate=None)
    return recommender


def share_found(recommender: Recommender, split: Split, *, withheld: bool = False) -> float:
    ranks = evaluate(
        recommender,
        split.dataset,
        split.test,
        max_history=MAX_HISTORY,
        exclude_seen=False,
        withheld=withheld,
    )
    return ranks.summarise()["hit_rate@10"]


@pytest.mark.parametrize(
    "time_encoding",
    [
        MercerConfig(periods=8, degree=2),
        MercerConfig(form="sum", periods=16, degree=2),
        BochnerNonparametricConfig(frequencies=16),
    ],
    ids=["mercer_concat", "mercer_sum", "bochner_nonparametric"],
)
def test_an_encoder_that_reads_time_finds_the_signal(
    split: Split, time_encoding: TimeEncodingConfig
) -> None:
    recommender = trained(split, time_encoding)
    assert share_found(recommender, split) > 0.95
    assert share_found(recommender, split, withheld=True) < 0.6


def test_the_positional_control_stays_at_chance(split: Split) -> None:
    assert share_found(trained(split, PositionalConfig(frequencies=16)), split) < 0.6
