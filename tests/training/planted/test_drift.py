"""A drift of popularity is found by the popularity features, and by no other part."""

from pathlib import Path

import pytest

from model.wide import WideConfig
from tests.training.planted.generators import plant_drift
from tests.training.planted.recovery import (
    begin_planted,
    build_config,
    fit_planted,
    predict_test,
)
from training.evaluation.report import LIVE, MODEL
from training.run import evaluate_on_test, fit_recommender

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_popularity_features_find_a_drift(tmp_path: Path) -> None:
    planted, run = plant_drift(seed=0), begin_planted(build_config(), tmp_path)
    fitted = fit_recommender(run, planted.to_frame(), None)
    found = predict_test(fitted, planted, live=True)
    # Seeds 0 to 8: accuracy .81 to .94, information .77 to .87, NDCG .91 to .97 of the oracle's,
    # which knows a new season from its first moment.
    assert found.accuracy > 0.6
    assert found.information > 0.6
    assert found.ndcg > 0.8
    # The drift went on after the training. Seeds 0 to 8: live .56 to .60, frozen .02 to .09.
    rows = evaluate_on_test(run, fitted).rows
    assert rows[LIVE]["ndcg@10"] > rows[MODEL]["ndcg@10"] + 0.3


def test_no_other_part_finds_a_drift(tmp_path: Path) -> None:
    planted = plant_drift(seed=0)
    config = build_config(wide=WideConfig(popularity=False))
    found = predict_test(fit_planted(config, planted, tmp_path), planted, live=True)
    # Seeds 0 to 7: accuracy and information below 0, NDCG .04 to .11 of the oracle's.
    assert found.accuracy < 0.2
    assert found.information < 0.2
    assert found.ndcg < 0.3
