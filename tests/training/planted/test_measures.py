"""The measures of planted patterns: recovery between blind and oracle, period of a response."""

from dataclasses import replace

import numpy as np
import pytest

from tests.training.planted.generators import plant_daily_rhythm
from tests.training.planted.recovery import Predictions
from tests.training.planted.response import estimate_period, measure_swing

DAYS = np.arange(0.0, 300.0, 1 / 24)


def test_recovery_is_one_for_the_oracle_and_zero_for_the_blind() -> None:
    planted = plant_daily_rhythm(seed=0, users=20)
    oracle = Predictions(planted.oracle, planted.oracle, planted.blind)
    blind = replace(oracle, model=planted.blind)
    assert (oracle.accuracy, oracle.information, oracle.ndcg) == pytest.approx((1, 1, 1))
    assert (blind.accuracy, blind.information) == pytest.approx((0, 0))
    assert blind.ndcg < 0.5


@pytest.mark.parametrize("period", [0.97, 1.0, 1.001])
def test_a_period_is_estimated_to_one_in_a_hundred_thousand(period: float) -> None:
    rng = np.random.default_rng(0)
    phases = rng.uniform(0, 2 * np.pi, (4, 1))
    responses = 0.3 * np.cos(2 * np.pi * DAYS / period + phases) + 0.4 * np.exp(-DAYS / 60)
    responses = responses + rng.normal(0, 0.02, responses.shape)
    assert estimate_period(DAYS, responses, near=1.0) == pytest.approx(period, rel=1e-5)
    assert measure_swing(DAYS, responses, period=period) == pytest.approx(0.3, abs=0.01)
