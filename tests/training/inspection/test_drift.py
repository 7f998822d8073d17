import numpy as np
import pytest

from tests.training.inspection.event_tables import DAY, HOUR, draw_events, make_events
from training.data.dataset import Dataset
from training.inspection.drift import compare_popularity, measure_drift
from training.inspection.overlap import compute_collisions, compute_overlap


def test_overlap_is_that_of_the_distributions_not_of_the_samples() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 500, 2_000)  # four events per item: samples differ greatly
    groups, users = rng.integers(0, 2, 2_000), np.arange(2_000)
    same_item, pairs = compute_collisions(groups, rows, users, 2)
    different = ~np.eye(2, dtype=np.bool_)
    assert compute_overlap(same_item, pairs, different) == pytest.approx(1, abs=0.1)
    same_item, pairs = compute_collisions(groups, rows + 500 * groups, users, 2)
    assert compute_overlap(same_item, pairs, different) == 0


def test_pairs_of_one_user_are_left_out() -> None:
    groups, rows, users = (np.array(it) for it in ([0, 0, 0, 1], [7, 7, 3, 7], [0, 0, 1, 0]))
    same_item, pairs = compute_collisions(groups, rows, users, 2)
    assert pairs.tolist() == [[4, 1], [1, 0]]
    assert same_item.tolist() == [[0, 0], [0, 0]]
    assert compute_overlap(same_item, pairs, np.ones((2, 2), dtype=np.bool_)) is None


def test_even_choices_do_not_drift() -> None:
    drift = measure_drift(Dataset.of(draw_events(days=365)))
    assert drift is not None
    assert drift.unit == "month"
    assert drift.change < 0.05


def test_choices_that_change_every_month_drift() -> None:
    rows = [
        (f"u{n % 20}", f"i{n // 240 if n % 2 else 'always'}", n * 3 * HOUR) for n in range(2_880)
    ]
    drift = measure_drift(Dataset.of(make_events(rows)))
    assert drift is not None
    # Half of the events are of one item, the others of an item of the 30 days.
    assert drift.change == pytest.approx(0.45, abs=0.1)
    assert drift.overlaps[3] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("days", "unit"), [(300, "month"), (60, "week"), (10, "day")])
def test_short_spans_are_compared_by_shorter_periods(days: int, unit: str) -> None:
    drift = measure_drift(Dataset.of(draw_events(days=days)))
    assert drift is not None
    assert drift.unit == unit


def test_events_of_one_day_have_no_drift() -> None:
    assert measure_drift(Dataset.of(draw_events(days=0.9))) is None


def test_recent_popularity_predicts_a_fashion_of_each_week() -> None:
    rng = np.random.default_rng(2)
    rows = [
        (f"u{n % 50}", f"i{n // 280 * 3 + rng.integers(0, 20)}", n * DAY // 40)
        for n in range(8_000)
    ]
    comparison = compare_popularity(Dataset.of(make_events(rows)))
    assert comparison is not None
    week, month = comparison.recent
    assert (week.days, month.days) == (7, 28)
    assert week.gain > month.gain > 1.5
    assert week.hit_rate > month.hit_rate > comparison.hit_rate


def test_recent_popularity_is_no_better_without_drift() -> None:
    comparison = compare_popularity(Dataset.of(draw_events()))
    assert comparison is not None
    assert all(one.gain < 1.02 for one in comparison.recent)


def test_few_events_are_not_predicted() -> None:
    assert compare_popularity(Dataset.of(draw_events(events=99))) is None
