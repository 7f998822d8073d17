"""Conversions of instants."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.clock import MICROSECONDS_PER_DAY, days_between, from_datetime, now, to_datetime

CENTURY = 100 * 366 * MICROSECONDS_PER_DAY
instants = st.integers(-CENTURY, CENTURY)


@given(instant=instants)
def test_an_instant_survives_a_round_trip_through_a_datetime(instant: int) -> None:
    assert from_datetime(to_datetime(instant)) == instant


@given(origin=instants, apart=st.integers(0, CENTURY // 4))
def test_days_between_instants_are_exact_to_the_microsecond(origin: int, apart: int) -> None:
    days = days_between(origin, np.array([origin + apart], dtype=np.int64))[0]
    assert round(days * MICROSECONDS_PER_DAY) == apart


@given(origin=instants, apart=st.integers(0, CENTURY), shift=instants)
def test_days_depend_on_the_difference_only(origin: int, apart: int, shift: int) -> None:
    here = days_between(origin, np.array([origin + apart], dtype=np.int64))
    there = days_between(origin + shift, np.array([origin + shift + apart], dtype=np.int64))
    assert here.tolist() == there.tolist()


def test_a_utc_offset_is_subtracted() -> None:
    in_lisbon = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    assert from_datetime(in_lisbon) == from_datetime(datetime(2026, 7, 1, 11, tzinfo=UTC))


def test_a_datetime_without_an_offset_is_rejected() -> None:
    with pytest.raises(ValueError, match="needs a UTC offset, but 2026-07-01T12:00:00"):
        from_datetime(datetime(2026, 7, 1, 12))


def test_now_is_the_current_time() -> None:
    assert abs(to_datetime(now()) - datetime.now(UTC)) < timedelta(seconds=5)
