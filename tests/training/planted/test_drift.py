"""A drift of popularity is found by the popularity features, and by no other part."""

from pathlib import Path

import pytest

from model.wide import WideConfig
from tests.training.planted.generators import plant_drift
from tests.training.planted.recovery import build_config, fit_planted, predict_test
from training.evaluation.report import LIVE, MODEL, build_report

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_popularity_features_find_a_drift(tmp_path: Path) -> None:
    planted, config = plant_drift(seed=0), build_config()
    fitted = fit_planted(config, planted, tmp_path)
    found = predict_test(fitted, planted, live=True)
    # Seeds 0 to 3: accuracy .86 to .91, information .81 to .84, NDCG .94 to .96 of the oracle's,
    # which knows a new season from its first moment.
    assert found.accuracy > 0.7
    assert found.information > 0.65
    assert found.ndcg > 0.85
    # The drift went on after the training. Seeds 0 to 3: live .57 to .58, frozen .03 to .09.
    max_history = config.encoder.max_history
    rows = build_report(
        fitted.model.recommender, fitted.split, config.data, max_history=max_history
    ).rows
    assert rows[LIVE]["ndcg@10"] > rows[MODEL]["ndcg@10"] + 0.3


def test_no_other_part_finds_a_drift(tmp_path: Path) -> None:
    planted = plant_drift(seed=0)
    config = build_config(wide=WideConfig(popularity=False))
    found = predict_test(fit_planted(config, planted, tmp_path), planted, live=True)
    # Seeds 0 to 3: accuracy and information below 0, NDCG .05 to .09 of the oracle's.
    assert found.accuracy < 0.2
    assert found.information < 0.2
    assert found.ndcg < 0.3
