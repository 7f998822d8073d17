"""Encoding of ids, instants and bodies; validation of arguments before sending."""

import json
import math
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kairos_client import (
    Event,
    InvalidError,
    ItemDescription,
    KairosClient,
    NotFoundError,
    PastEvent,
    Retries,
)
from kairos_client.encoding import format_instant, format_path
from tests.app.client import Client
from tests.client.either_client import PortalTransport

NAIVE = datetime(2026, 2, 1, 12)
PRINTABLE = st.characters(exclude_categories=("Cc", "Cs"))
IDS = st.text(PRINTABLE, min_size=1, max_size=256)


@given(IDS)
def test_an_id_is_one_path_segment_and_decodes_to_itself(item_id: str) -> None:
    path = format_path("/v1/items/{}/similar", item_id)
    url = httpx.URL("http://localhost" + path)
    assert url.raw_path.decode("ascii") == path
    root, version, items, segment, end = path.split("/")
    assert (root, version, items, end) == ("", "v1", "items", "similar")
    assert unquote(segment) == item_id
    assert segment not in {".", ".."}


# Few examples, because each is a request to a real application.
@settings(max_examples=40)
@given(IDS)
def test_the_service_decodes_any_id(application: Client, user_id: str) -> None:
    with KairosClient("http://localhost", transport=PortalTransport(application)) as kairos:
        assert kairos.read_user(user_id).user_id == user_id


@pytest.mark.parametrize(
    "user_id",
    ["a/b", "..", ".", "a//b", "/a", "a/", "%2F", "?n=1#x", "+ &", "日本", "👩‍👩‍👧", "../models"],
)
def test_ids_with_special_characters_round_trip(application: Client, user_id: str) -> None:
    sent = Event(user_id=user_id, item_id=user_id, action="view", timestamp=NAIVE.astimezone(UTC))
    with KairosClient("http://localhost", transport=PortalTransport(application)) as kairos:
        kairos.ingest([sent])
        kairos.put_items([ItemDescription(item_id=user_id)])
        assert [event.item_id for event in kairos.read_user(user_id).events] == [user_id]
        assert kairos.read_item(user_id).item_id == user_id
        assert kairos.recommend_to_user(user_id).unknown_item_ids == (user_id,)


@pytest.mark.parametrize("malformed", ["", "a" * 257, "a\0b", "\n", "\ud800"])
def test_a_malformed_id_is_rejected_before_sending(malformed: str) -> None:
    with pytest.raises(InvalidError) as error:
        format_path("/v1/items/{}", malformed)
    assert (error.value.code, error.value.status) == ("id_format", None)


@pytest.mark.parametrize(
    "entity_id", ["mug/similar", "mug/popularity", "u1/recommendations", "u1/next-time"]
)
def test_an_id_may_end_like_the_path_of_an_operation(application: Client, entity_id: str) -> None:
    sent = Event(
        user_id=entity_id, item_id=entity_id, action="view", timestamp=NAIVE.astimezone(UTC)
    )
    with KairosClient("http://localhost", transport=PortalTransport(application)) as kairos:
        kairos.ingest([sent])
        kairos.put_items([ItemDescription(item_id=entity_id)])
        history = kairos.read_user(entity_id)
        assert history.user_id == entity_id
        assert [event.item_id for event in history.events] == [entity_id]
        assert kairos.read_item(entity_id).item_id == entity_id
        kairos.delete_item(entity_id)
        with pytest.raises(NotFoundError):
            kairos.read_item(entity_id)


@pytest.mark.parametrize(
    "build",
    [
        lambda: format_instant(NAIVE),
        lambda: PastEvent("i1", NAIVE),
        lambda: Event(user_id="u1", item_id="i1", action="view", timestamp=NAIVE),
        lambda: ItemDescription(item_id="i1", available_from=NAIVE),
        lambda: KairosClient("http://localhost").recommend("u1", query_time=NAIVE),
        lambda: KairosClient("http://localhost").sweep([NAIVE], "u1"),
        lambda: KairosClient("http://localhost").read_next_time("u1", at=NAIVE),
    ],
)
def test_a_naive_instant_is_rejected_with_rule_and_remedy(build: object) -> None:
    with pytest.raises(
        InvalidError, match=r"needs an offset.*2026-02-01T12:00:00.*tzinfo"
    ) as error:
        build()  # type: ignore[operator]
    assert error.value.code == "instant_naive"


@given(
    st.datetimes(
        min_value=datetime(1, 1, 3),
        max_value=datetime(9999, 12, 29),
        timezones=st.sampled_from(
            [
                UTC,
                ZoneInfo("Asia/Kolkata"),
                ZoneInfo("Africa/Monrovia"),
                timezone(timedelta(hours=-9)),
            ]
        ),
    )
)
def test_an_instant_is_formatted_in_utc_without_loss(at: datetime) -> None:
    formatted = format_instant(at)
    assert formatted.endswith("Z")
    assert datetime.fromisoformat(formatted) == at


def test_an_instant_after_the_year_9999_is_rejected() -> None:
    with pytest.raises(InvalidError) as error:
        format_instant(datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))
    assert error.value.code == "instant_range"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_must_be_finite(value: float) -> None:
    with pytest.raises(InvalidError):
        Event(
            user_id="u1",
            item_id="i1",
            action="view",
            timestamp=NAIVE.astimezone(UTC),
            value=value,
        )


def test_a_value_json_cannot_hold_is_rejected_before_sending() -> None:
    mug = ItemDescription(item_id="mug", properties={"since": date(2026, 1, 1)})
    with KairosClient("http://localhost") as kairos, pytest.raises(InvalidError) as error:
        kairos.put_items([mug])
    assert error.value.code == "not_json"


def test_only_given_parameters_are_sent() -> None:
    sent: list[bytes] = []

    def respond(request: httpx.Request) -> httpx.Response:
        sent.append(request.read())
        return httpx.Response(404)

    with KairosClient("http://localhost", transport=httpx.MockTransport(respond)) as kairos:
        for arguments in ({}, {"merge": False, "any_categories": []}):
            with pytest.raises(Exception, match="http_404"):
                kairos.recommend("u1", **arguments)  # type: ignore[arg-type]
    assert [json.loads(body) for body in sent] == [
        {"user_id": "u1"},
        {"user_id": "u1", "merge": False, "categories": {"any": []}},
    ]


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("127.0.0.1:8000", None),
        ("ftp://host", None),
        ("http://", None),
        ("http://host:port", None),
        ("http://host?x=1", None),
        ("http://host", "kairos_a\nb"),
        ("http://host", "kairos a"),
    ],
)
def test_an_invalid_base_url_or_key_is_rejected_at_once(url: str, key: str | None) -> None:
    with pytest.raises(InvalidError) as error:
        KairosClient(url, api_key=key)
    assert "kairos_a" not in str(error.value)


def test_retries_must_be_positive() -> None:
    for build in (lambda: Retries(attempts=0), lambda: Retries(deadline_seconds=0)):
        with pytest.raises(InvalidError):
            build()


def test_importing_the_client_imports_no_service_library() -> None:
    script = """
import sys
import kairos_client
heavy = {"app", "model", "training", "torch", "numpy", "faiss", "fastapi", "starlette",
         "sqlalchemy", "polars", "orjson"}
assert not heavy & {name.partition(".")[0] for name in sys.modules}, heavy & {*sys.modules}
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, env={**os.environ})
