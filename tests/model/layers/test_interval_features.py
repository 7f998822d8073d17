"""Interval features: units, resolution from seconds to decades, and withheld intervals."""

import torch

from model.layers.interval_features import (
    IntervalFeatures,
    LogIntervalConfig,
    RawIntervalConfig,
    compute_interval_to_query,
)
from tests.contracts.histories import DAY, collate_queries, draw_queries

DAYS = torch.tensor([0.0, 1 / 86_400, 1.0, 30.0, 20_000.0], dtype=torch.float64)


def test_raw_intervals_are_in_units_of_the_configured_scale() -> None:
    features = RawIntervalConfig(time_scale=60.0).build()(DAYS)
    torch.testing.assert_close(features[:, 0], (DAYS / 60).float())


def test_the_logarithm_resolves_seconds_and_decades() -> None:
    features = LogIntervalConfig().build()(DAYS)
    torch.testing.assert_close(features[:, 0], (1 + DAYS).log().float())
    assert (features.diff(dim=0) > 1e-6).all()
    assert features.max() < 10


def test_a_withheld_interval_has_learned_features() -> None:
    features = IntervalFeatures(LogIntervalConfig().build(), time_dim=1)
    given = torch.tensor([True, False, True, False, True])
    output = features(DAYS, given)
    assert (output[~given] == features.withheld).all()
    assert (output[given] >= 0).all()
    assert (features.withheld < 0).all()


def test_intervals_end_at_the_positions_query_time() -> None:
    batch = collate_queries(*draw_queries(4, 2))
    long, short = compute_interval_to_query(batch)
    torch.testing.assert_close(long[:-1], batch.times[0].diff())
    query = draw_queries(4, 2)[0]
    interval = (query.query_time - query.history[-1].at) / DAY
    assert abs(long[-1].item() - interval) < 1e-9
    assert (short[2:] == 0).all()
