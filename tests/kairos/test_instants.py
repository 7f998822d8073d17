"""Query times as people write them."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kairos.instants import space_instants, to_instant
from model.clock import MICROSECONDS_PER_DAY, from_datetime
from model.errors import KairosError

NINE = from_datetime(datetime(2011, 12, 1, 9, tzinfo=UTC))


@pytest.mark.parametrize(
    "value",
    [
        "2011-12-01T09:00:00Z",
        "2011-12-01T10:00+01:00",
        datetime(2011, 12, 1, 9, tzinfo=UTC),
        pd.Timestamp("2011-12-01 09:00", tz="UTC"),
        1_322_730_000,
        np.int64(1_322_730_000),
    ],
)
def test_every_form_of_an_instant_is_the_same(value: object) -> None:
    assert to_instant(value) == NINE  # type: ignore[arg-type]


def test_a_date_is_its_beginning_in_utc() -> None:
    midnight = from_datetime(datetime(2011, 12, 1, tzinfo=UTC))
    assert to_instant("2011-12-01") == to_instant(date(2011, 12, 1)) == midnight


@pytest.mark.parametrize(
    "value",
    ["2011-12-01T09:00:00", datetime(2011, 12, 1, 9), "yesterday", float("nan"), None, 1e15],
)
def test_what_is_no_instant_is_refused_with_its_value(value: object) -> None:
    with pytest.raises(KairosError, match=r"but got .*; (write it like|check the unit)"):
        to_instant(value)  # type: ignore[arg-type]


@given(st.integers(0, 10**15), st.integers(0, 2 * 10**15))
def test_spaced_instants_end_with_the_last(first: int, span: int) -> None:
    instants = space_instants(first, first + span)
    assert instants[-1] == first + span
    assert 1 <= len(instants) <= 80
    assert first <= instants[0]
    assert len({*np.diff(instants).tolist()}) <= 1


def test_instants_of_months_keep_weekday_and_hour() -> None:
    steps = np.diff(space_instants(0, 400 * MICROSECONDS_PER_DAY))
    assert {*(steps % (7 * MICROSECONDS_PER_DAY)).tolist()} == {0}
    assert timedelta(microseconds=int(steps[0])) == timedelta(weeks=1)
