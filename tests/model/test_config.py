"""What every configuration refuses."""

import math

import pytest
from pydantic import ValidationError

from model.config import Measurements
from model.encoders.counting import CountingConfig
from model.encoders.taiw import TAIWConfig
from model.encoders.tifu_knn import TIFUKNNConfig
from model.encoders.up_cf import UPCFConfig


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_settings_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        UPCFConfig(locality=value)
    with pytest.raises(ValidationError, match="finite number"):
        TAIWConfig(window_days=value)


def test_measurements_may_be_of_nothing() -> None:
    class Mean(Measurements):
        value: float

    assert math.isnan(Mean(value=math.nan).value)


@pytest.mark.parametrize("days", [1e-12, 1e300])
@pytest.mark.parametrize("config", [CountingConfig, TAIWConfig])
def test_windows_are_of_seconds_to_centuries(
    config: type[CountingConfig | TAIWConfig], days: float
) -> None:
    with pytest.raises(ValidationError, match=r"to (0\.00001|100000) "):
        config(window_days=days)


def test_settings_of_counts_are_bounded() -> None:
    for refused in ({"shrinkage": 1e39}, {"own_weight": 30.0}):
        with pytest.raises(ValidationError, match="less than or equal"):
            TAIWConfig.model_validate(refused)
    with pytest.raises(ValidationError, match="less than or equal to 1000"):
        TIFUKNNConfig(groups=10**9)
