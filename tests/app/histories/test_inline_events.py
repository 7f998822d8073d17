"""Inline events of the usual form take a short way, with the results of the long one."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.histories import schemas
from app.histories.schemas import HistoryRequest, InlineEvent
from model.history import Event
from tests.app.client import REQUEST, Client

CHECKED = TypeAdapter(list[InlineEvent])
TIMES = st.one_of(
    st.integers(-(10**12), 10**12),
    st.floats(-1e12, 1e12),
    st.sampled_from(
        [
            "2024-02-29T23:59:60Z",
            "2024-02-29t12:00:00.123456789z",
            "2024-02-30T12:00:00Z",
            "2024-03-01T12:00:00",
            "2024-03-01 12:00:00+05:30",
            "0001-01-01T00:00:00+01:00",
            "20240301T120000Z",
        ]
    ),
    st.booleans(),
    st.none(),
)
TEXTS = st.one_of(
    st.text(max_size=5), st.sampled_from(["a" * 64, "a" * 65, "a" * 256, "a" * 257, "a\x7f"])
)
EVENTS = st.fixed_dictionaries(
    {"item_id": TEXTS, "timestamp": TIMES},
    optional={"action": st.one_of(TEXTS, st.none()), "more": st.integers()},
)


@given(st.lists(st.one_of(EVENTS, st.integers()), max_size=4))
def test_both_ways_read_the_same_events(history: list[object]) -> None:
    found = schemas._read_usual_events(history)
    try:
        checked = CHECKED.validate_python(history)
    except ValidationError:
        assert found is None
        return
    expected = [Event(one.item_id, one.timestamp, one.action) for one in checked]
    assert found is None or found == expected
    assert HistoryRequest.model_validate({"history": history}).history == expected


@pytest.mark.parametrize(
    "event",
    [
        {"item_id": "i1", "timestamp": "2024-03-01T12:00:00Z"},
        {"item_id": "é 🦊", "timestamp": 1_700_000_000, "action": "view"},
        {"item_id": "i1", "timestamp": 1_700_000_000.5, "action": None},
    ],
)
def test_the_usual_events_take_the_short_way(event: dict[str, object]) -> None:
    assert schemas._read_usual_events(orjson.loads(orjson.dumps([event]))) is not None


def test_the_schema_of_events_is_that_of_the_long_way() -> None:
    history = HistoryRequest.model_json_schema()["properties"]["history"]["anyOf"][0]
    assert history["items"] == {"$ref": "#/$defs/InlineEvent"}
    assert history["maxItems"] == schemas.HISTORY_CAP


def test_what_is_wrong_with_an_event_is_reported(shared_client: Client) -> None:
    wrong = {**REQUEST, "history": [{"item_id": "i1", "timestamp": "yesterday"}]}
    response = shared_client.post("/v1/recommendations", wrong)
    assert response.status_code == 422
    assert "#/history/0/timestamp" in response.text
