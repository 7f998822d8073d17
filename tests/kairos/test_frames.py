"""Events from frames of several libraries, and the errors of bad ones."""

from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kairos.frames import to_events, to_history, to_items
from model.errors import EventSourceError
from training.data.columns import EVENT_SCHEMA

EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "user_id": st.text(min_size=1, max_size=4),
            "item_id": st.text(min_size=1, max_size=4),
            "timestamp": st.datetimes(
                datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)
            ),
            "action": st.none() | st.sampled_from(["buy", "view"]),
            "value": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        }
    ),
    min_size=1,
    max_size=8,
)
ONE = {"user_id": ["u"], "item_id": ["i"], "timestamp": [1_700_000_000]}


@given(EVENTS)
def test_pandas_and_arrow_give_the_events_of_polars(rows: list[dict[str, object]]) -> None:
    frame = pl.DataFrame(rows, schema=EVENT_SCHEMA)
    expected = to_events(frame)
    assert to_events(pd.DataFrame(rows)).equals(expected)
    assert to_events(frame.to_arrow()).equals(expected)
    assert to_events(frame.lazy()).equals(expected)


def test_another_time_zone_gives_the_same_instants() -> None:
    at = pd.to_datetime(["2011-12-01T10:00"]).tz_localize("Europe/Paris")
    frame = pd.DataFrame({**ONE, "timestamp": at})
    assert to_events(frame)["timestamp"].to_list() == [datetime(2011, 12, 1, 9, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timestamp": [datetime(2024, 1, 1)]}, r"no time zone; say .*tz_localize\('UTC'\)"),
        ({"timestamp": ["2024-01-01 10:00:00"]}, r"row 0, .*offset from UTC.*Z or \+02:00"),
        ({"timestamp": [1_700_000_000_000]}, r"row 0, column 'timestamp'.*in seconds"),
        ({"user_id": [None]}, "row 0, column 'user_id': an id must not be empty"),
        ({"item_id": [1.5]}, "column 'item_id': an id is text or a whole number"),
        ({"value": ["dear"]}, "column 'value': a value is a finite number"),
    ],
)
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
def test_a_bad_column_is_refused_with_a_remedy(
    make: type, change: dict[str, object], message: str
) -> None:
    with pytest.raises(EventSourceError, match=message):
        to_events(make({**ONE, **change}))


def test_a_missing_column_is_named_with_those_there_are() -> None:
    with pytest.raises(EventSourceError, match=r"events: a column 'item_id' is required.*customer"):
        to_events(pl.DataFrame({"user_id": ["u"], "customer": ["i"], "timestamp": [0]}))


def test_a_pandas_column_of_mixed_types_is_refused() -> None:
    frame = pd.DataFrame({"user_id": ["a", 3], "item_id": ["i", "j"], "timestamp": [0, 1]})
    with pytest.raises(EventSourceError, match="one type"):
        to_events(frame)


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(EventSourceError, match=r"a frame of Polars or pandas.* got dict"):
        to_events(ONE)  # type: ignore[arg-type]


def test_items_may_have_titles_and_lists_of_categories() -> None:
    frame = {"item_id": ["a", "b"], "title": ["A", None], "categories": [["x", "y"], []]}
    expected = [["x", "y"], []]
    for made in (pl.DataFrame(frame), pa.table(frame), pd.DataFrame(frame)):
        assert to_items(made)["categories"].to_list() == expected


def test_a_history_of_two_users_is_refused() -> None:
    frame = pl.DataFrame({"user_id": ["u", "v"], "item_id": ["i", "i"], "timestamp": [0, 1]})
    with pytest.raises(EventSourceError, match="of one user, but this one is of 2"):
        to_history(frame)
