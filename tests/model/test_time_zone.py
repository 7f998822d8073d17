"""Time zones, compared with zoneinfo."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model import clock
from model.layers.calendar_phase import CalendarPhase
from model.time_zone import check_time_zone, find_offsets

ZONES = (
    "UTC",
    "Europe/London",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
)


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1901, 1, 1), datetime(2190, 1, 1), timezones=st.just(UTC)),
)
def test_local_time_is_that_of_zoneinfo(name: str, moment: datetime) -> None:
    instant = clock.from_datetime(moment)
    (local,) = find_offsets(name).to_local(np.array([instant]))
    shown = moment.astimezone(ZoneInfo(name)).replace(tzinfo=UTC)
    assert local == clock.from_datetime(shown)


@pytest.mark.parametrize("name", ZONES[1:3])
def test_an_offset_changes_at_its_second(name: str) -> None:
    zone, (changes, offsets) = ZoneInfo(name), find_offsets(name)
    assert len(changes) > 200
    for change, before, after in zip(changes, offsets[:-1], offsets[1:], strict=True):
        at = clock.to_datetime(int(change)).astimezone(zone)
        earlier = (clock.to_datetime(int(change)) - timedelta(microseconds=1)).astimezone(zone)
        assert earlier.utcoffset() == timedelta(microseconds=int(before))
        assert at.utcoffset() == timedelta(microseconds=int(after))


@pytest.mark.parametrize("name", ["Europe/Nowhere", "", "../etc/passwd", "/etc/passwd", "a\0b"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="IANA"):
        check_time_zone(name)


def test_the_calendar_phase_reads_the_local_clock() -> None:
    utc, london = CalendarPhase(dim=8), CalendarPhase(dim=8, time_zone="Europe/London")
    london.load_state_dict(utc.state_dict())
    winter, summer = (
        torch.tensor([clock.from_datetime(datetime(2011, month, 6, 12, tzinfo=UTC))])
        for month in (1, 7)
    )
    hour = 3_600 * clock.MICROSECONDS_PER_SECOND
    assert torch.equal(london(winter), utc(winter))
    assert torch.equal(london(summer), utc(summer + hour))
    assert not torch.allclose(london(summer), utc(summer))
