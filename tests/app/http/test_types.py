"""Parsing and formatting of ids and instants."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.http import types
from app.http.types import Id, Instant, format_instant, format_instants
from model.clock import from_datetime

INSTANT = TypeAdapter(Instant)
ID = TypeAdapter(Id)

offsets = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=offsets)


@given(moments)
def test_a_text_with_an_offset_keeps_its_microseconds(moment: datetime) -> None:
    assert INSTANT.validate_python(moment.isoformat()) == from_datetime(moment)


@given(moments)
def test_formatted_instants_parse_back(moment: datetime) -> None:
    instant = from_datetime(moment)
    written = format_instant(instant)
    assert written.endswith("Z")
    assert INSTANT.validate_python(written) == instant


@given(st.lists(moments), st.booleans())
def test_instants_are_formatted_together_as_alone(found: list[datetime], whole: bool) -> None:
    instants = [from_datetime(one.replace(microsecond=0) if whole else one) for one in found]
    assert format_instants(instants) == [format_instant(one) for one in instants]


def test_instants_in_whole_seconds_are_formatted_in_one_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    formatted: list[int] = []
    monkeypatch.setattr(types, "format_instant", formatted.append)
    assert len(format_instants([1_000_000, 2_000_000])) == 2
    assert not formatted


@pytest.mark.parametrize(
    ("sent", "instant"),
    [
        (0, 0),
        (-1, -1_000_000),
        (1769860800, 1769860800_000_000),
        (1769860800.25, 1769860800_250_000),
        (-0.5, -500_000),
        ("2026-01-31T12:00:00Z", 1769860800_000_000),
        ("2026-01-31t12:00:00z", 1769860800_000_000),
        ("2026-01-31 13:00:00+01:00", 1769860800_000_000),
        ("2026-01-31T12:00:00.123456789Z", 1769860800_123_456),
        ("0001-01-01T00:00:00Z", from_datetime(datetime(1, 1, 1, tzinfo=UTC))),
        ("9999-12-31T23:59:59Z", from_datetime(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))),
    ],
)
def test_rfc_3339_and_epoch_seconds_are_both_instants(sent: object, instant: int) -> None:
    assert INSTANT.validate_python(sent) == instant


@pytest.mark.parametrize(
    ("sent", "rule"),
    [
        ("2026-01-31T12:00:00", "instant_naive"),
        ("2026-01-31", "instant_format"),
        ("1769860800", "instant_format"),
        ("20260131T120000Z", "instant_format"),
        ("", "instant_format"),
        ("２０２６-01-31T12:00:00Z", "instant_format"),
        ("2026-02-30T12:00:00Z", "instant_calendar"),
        ("2026-01-31T12:00:60Z", "instant_calendar"),
        ("2026-01-31T12:00:00+24:00", "instant_calendar"),
        ("0000-01-01T00:00:00Z", "instant_calendar"),
        ("0001-01-01T00:00:00+05:00", "instant_range"),
        ("9999-12-31T23:59:59-05:00", "instant_range"),
        (2**63, "instant_range"),
        (-(2**63), "instant_range"),
        (1e300, "instant_range"),
        (-1.7e308, "instant_range"),
        (10**400, "instant_range"),
        (math.nan, "instant_type"),
        (math.inf, "instant_type"),
        (True, "instant_type"),
        (None, "instant_type"),
        ([], "instant_type"),
    ],
)
def test_any_other_instant_is_refused_by_rule(sent: object, rule: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        INSTANT.validate_python(sent)
    assert refusal.value.errors()[0]["type"] == rule


@pytest.mark.parametrize("name", ["a", "a/b", "ключ", "🦊", "x" * 256, " ", "'; DROP TABLE--"])
def test_an_id_is_almost_any_text(name: str) -> None:
    assert ID.validate_python(name) == name


@pytest.mark.parametrize("name", ["", "x" * 257, "a\0b", "a\nb", "\x7f", "\x85", "\ud800"])
def test_an_id_holds_no_control_characters_or_surrogates(name: str) -> None:
    with pytest.raises(ValidationError):
        ID.validate_python(name)
