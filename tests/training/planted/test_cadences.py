"""A cadence per item is found by the features of repeats, and by no other part."""

from pathlib import Path

import pytest

from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.wide import WideConfig
from tests.training.planted.generators import plant_cadences
from tests.training.planted.recovery import build_config, fit_planted, predict_test

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EPOCHS = 6


def test_repeat_features_find_the_cadence_of_each_item(tmp_path: Path) -> None:
    planted = plant_cadences(seed=0)
    found = predict_test(fit_planted(build_config(epochs=EPOCHS), planted, tmp_path), planted)
    # Seeds 0 to 7: accuracy .86 to .94, information .76 to .90, NDCG .97 to .99 of the oracle's.
    assert found.accuracy > 0.7
    assert found.information > 0.55
    assert found.ndcg > 0.94


def test_no_other_part_finds_the_cadence_of_each_item(tmp_path: Path) -> None:
    planted = plant_cadences(seed=0)
    config = build_config(epochs=EPOCHS, wide=WideConfig(repeats=False))
    found = predict_test(fit_planted(config, planted, tmp_path), planted)
    # Seeds 0 to 7: accuracy -.09 to .23, information below -.4, NDCG .68 to .81 of the oracle's.
    assert found.accuracy < 0.5
    assert found.information < 0.2
    assert found.ndcg < 0.88


def test_personal_frequency_finds_no_cadence(tmp_path: Path) -> None:
    planted = plant_cadences(seed=0)
    config = build_config(encoder=PersonalFrequencyConfig(), wide=None)
    found = predict_test(fit_planted(config, planted, tmp_path), planted)
    # Seeds 0 to 7: accuracy below -.1, information below 0, NDCG .76 to .82 of the oracle's.
    assert found.accuracy < 0.2
    assert found.information < 0.2
    assert found.ndcg < 0.88
