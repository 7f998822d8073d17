"""The counted model that serves first."""

from pathlib import Path

import numpy as np
import pytest

from model.encoders.counting import CountingConfig
from model.recommender import RecommenderConfig
from model.store.opening import open_predictor
from tests.training.evaluation.logs import dataset_of
from tests.training.inspection.event_tables import DAY, draw_events, make_events
from training.config import DataConfig
from training.counting_model import write_counting_bundle
from training.data.split import LeaveOneOutConfig
from training.evaluation.counting import Counting, CountingSettings
from training.evaluation.scoring import score_questions
from training.fitting.building import count_events


def test_its_bundle_is_measured_and_has_counted_every_event(tmp_path: Path) -> None:
    events = draw_events()
    bundle = open_predictor(write_counting_bundle(DataConfig(), events, None, tmp_path)).bundle
    manifest = bundle.manifest
    assert isinstance(manifest.recommender.encoder, CountingConfig)
    assert manifest.counts.events == len(events)
    assert manifest.metrics["questions"] > 0
    assert 0 < manifest.metrics["ndcg@10"] < 1


def test_events_without_a_test_question_give_no_metrics(tmp_path: Path) -> None:
    events = make_events([(f"u{day}", "i1", day * DAY) for day in range(5)])
    predictor = open_predictor(write_counting_bundle(DataConfig(), events, None, tmp_path))
    assert predictor.bundle.manifest.metrics == {}
    assert predictor.bundle.manifest.counts.events == 5


@pytest.mark.parametrize("half_life", [None, 3.0])
@pytest.mark.parametrize("window", [None, 7.0])
def test_it_scores_as_the_reference_does(half_life: float | None, window: float | None) -> None:
    generator = np.random.default_rng(0)
    days = np.sort(generator.uniform(0, 40, 200))
    dataset = dataset_of(
        *((f"u{generator.integers(9)}", f"i{generator.integers(12)}", day) for day in days)
    )
    split = LeaveOneOutConfig().split(dataset, "next_event")
    config = CountingConfig(half_life_days=half_life, weight=2.0, window_days=window)
    recommender = RecommenderConfig(items=len(split.dataset.catalog), encoder=config).build()
    count_events(recommender, split.dataset, split.is_training)
    settings = CountingSettings(half_life_days=half_life, weight=2.0, window_days=window)
    reference = Counting.fit(split.dataset, split.is_training, settings)
    for block in score_questions(recommender, split.dataset, split.test, max_history=1000):
        expected = reference.score(split.test.select(block.questions))
        last = split.dataset.times[split.is_training].max()
        is_later = split.test.query_times[block.questions] > last
        found = block.scores.exp().numpy()[is_later, 1:]
        np.testing.assert_allclose(found, expected[is_later, 1:], atol=2e-6)
        assert is_later.any()
