"""Inline events of the usual form take a short way, with the results of the long one."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from app.histories import schemas
from app.histories.schemas import HistoryRequest, InlineEvent
from app.http.types import parse_instant, parse_instants
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


@given(
    st.lists(
        st.one_of(
            st.builds(
                "{:04d}-{:02d}-{:02d}T{:02d}:{:02d}:{:02d}Z".format,
                st.sampled_from([0, 1, 1900, 2024, 9999]),
                st.integers(0, 13),
                st.integers(0, 32),
                st.integers(0, 25),
                st.integers(0, 61),
                st.integers(0, 61),
            ),
            st.sampled_from(["", "Z", ",", "2024-03-01T12:00:00Z,2024-03-01T12:00:00Z"]),
            TIMES,
        ),
        max_size=3,
    )
)
def test_instants_parse_together_as_alone(values: list[object]) -> None:
    def parse(parse_all: Callable[[list[Any]], list[int]]) -> object:
        try:
            return parse_all(values)
        except PydanticCustomError as error:
            return error.type

    assert parse(parse_instants) == parse(lambda all_: [parse_instant(one) for one in all_])


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
