"""A rhythm of the hours of the day is found by the calendar phase, and by no other part.

Without repeats, which find a part of it: an item comes again at the hour of its last event.
"""

from pathlib import Path

import pytest

from model.wide import WideConfig
from tests.training.planted.generators import plant_daily_rhythm
from tests.training.planted.recovery import build_config, fit_planted, predict_test

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EPOCHS = 20
WIDE = WideConfig(repeats=False)


def test_the_calendar_phase_finds_the_hour_of_each_item(tmp_path: Path) -> None:
    planted = plant_daily_rhythm(seed=0)
    config = build_config(epochs=EPOCHS, wide=WIDE)
    found = predict_test(fit_planted(config, planted, tmp_path), planted)
    # Seeds 0 to 7: accuracy .82 to .87, information .64 to .72, NDCG .90 to .93 of the oracle's.
    assert found.accuracy > 0.65
    assert found.information > 0.5
    assert found.ndcg > 0.8


def test_no_other_part_finds_the_hour_of_each_item(tmp_path: Path) -> None:
    planted = plant_daily_rhythm(seed=0)
    config = build_config(epochs=EPOCHS, wide=WIDE.model_copy(update={"calendar": False}))
    found = predict_test(fit_planted(config, planted, tmp_path), planted)
    # Seeds 0 to 7: accuracy within .03 of the blind one's, NDCG .30 to .32 of the oracle's.
    assert found.accuracy < 0.2
    assert found.information < 0.2
    assert found.ndcg < 0.5
