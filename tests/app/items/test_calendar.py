"""Buckets of the UTC calendar."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.items.popularity import compute_bucket_number, compute_bucket_start
from app.items.schemas import Step
from model.clock import MICROSECONDS_PER_DAY, from_datetime, to_datetime

INSTANTS = st.datetimes(
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), timezones=st.just(UTC)
).map(from_datetime)
STEPS: tuple[Step, ...] = ("day", "week", "month")


def at(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text))


@pytest.mark.parametrize(
    ("step", "instant", "start"),
    [
        ("day", "2026-03-01T23:59:59.999999Z", "2026-03-01T00:00:00Z"),
        ("week", "2026-03-01T12:00:00Z", "2026-02-23T00:00:00Z"),
        ("week", "2026-03-02T00:00:00Z", "2026-03-02T00:00:00Z"),
        ("month", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z"),
        ("month", "1969-12-31T23:59:59Z", "1969-12-01T00:00:00Z"),
        ("week", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("month", "9999-12-31T23:59:59Z", "9999-12-01T00:00:00Z"),
    ],
)
def test_an_instant_is_in_the_bucket_of_its_step(step: Step, instant: str, start: str) -> None:
    assert compute_bucket_start(compute_bucket_number(at(instant), step), step) == at(start)


@given(INSTANTS, st.sampled_from(STEPS))
def test_buckets_begin_at_midnight_and_follow_each_other(instant: int, step: Step) -> None:
    number = compute_bucket_number(instant, step)
    start = compute_bucket_start(number, step)
    assert start <= instant
    assert start % MICROSECONDS_PER_DAY == 0
    assert compute_bucket_number(start, step) == number
    if to_datetime(instant).year < 9999:
        after = compute_bucket_start(number + 1, step)
        assert after > instant
        assert compute_bucket_number(after, step) == number + 1


@given(INSTANTS)
def test_weeks_begin_on_monday_and_months_on_their_first(instant: int) -> None:
    assert (
        to_datetime(compute_bucket_start(compute_bucket_number(instant, "week"), "week")).weekday()
        == 0
    )
    assert (
        to_datetime(compute_bucket_start(compute_bucket_number(instant, "month"), "month")).day == 1
    )
