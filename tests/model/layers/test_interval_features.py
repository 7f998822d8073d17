"""Intervals as features: units, seconds beside decades, and what stands where none is given."""

import torch

from model.layers.interval_features import (
    IntervalFeatures,
    LogIntervalConfig,
    RawIntervalConfig,
    until_asked,
)
from tests.contracts.histories import DAY, draw_queries, laid_out

DAYS = torch.tensor([0.0, 1 / 86_400, 1.0, 30.0, 20_000.0], dtype=torch.float64)


def test_raw_intervals_are_counted_in_the_unit_that_the_config_names() -> None:
    features = RawIntervalConfig(time_scale=60.0).build()(DAYS)
    torch.testing.assert_close(features[:, 0], (DAYS / 60).float())


def test_the_logarithm_tells_a_second_from_none_and_decades_apart() -> None:
    features = LogIntervalConfig().build()(DAYS)
    torch.testing.assert_close(features[:, 0], (1 + DAYS).log().float())
    assert (features.diff(dim=0) > 1e-6).all()
    assert features.max() < 10


def test_a_withheld_interval_has_features_of_its_own() -> None:
    features = IntervalFeatures(LogIntervalConfig().build(), time_dim=1)
    given = torch.tensor([True, False, True, False, True])
    told = features(DAYS, given)
    assert (told[~given] == features.withheld).all()
    assert (told[given] >= 0).all()
    assert (features.withheld < 0).all()


def test_an_event_lasts_until_its_own_query_time_and_padding_does_not_last() -> None:
    batch = laid_out(*draw_queries(4, 2))
    longer, shorter = until_asked(batch)
    torch.testing.assert_close(longer[:-1], batch.times[0].diff())
    query = draw_queries(4, 2)[0]
    waited = (query.query_time - query.history[-1].at) / DAY
    assert abs(longer[-1].item() - waited) < 1e-9
    assert (shorter[2:] == 0).all()
