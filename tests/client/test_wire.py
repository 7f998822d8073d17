"""How the client writes ids, instants and bodies, before the service sees them."""

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

from kairos_client import Event, InvalidError, ItemDescription, KairosClient, PastEvent, Retries
from kairos_client.wire import address, instant
from tests.app.client import Client
from tests.client.asking import IntoTheLoop

NAIVE = datetime(2026, 2, 1, 12)
PRINTABLE = st.characters(exclude_categories=("Cc", "Cs"))
IDS = st.text(PRINTABLE, min_size=1, max_size=256)


@given(IDS)
def test_an_id_is_one_segment_of_a_path_and_comes_out_as_it_went_in(given: str) -> None:
    path = address("/v1/items/{}/similar", given)
    url = httpx.URL("http://localhost" + path)
    assert url.raw_path.decode("ascii") == path
    root, version, items, segment, end = path.split("/")
    assert (root, version, items, end) == ("", "v1", "items", "similar")
    assert unquote(segment) == given
    assert segment not in {".", ".."}


# Few examples: each is a question to a real application.
@settings(max_examples=40)
@given(IDS)
def test_the_service_reads_the_id_that_was_meant(application: Client, user_id: str) -> None:
    with KairosClient("http://localhost", transport=IntoTheLoop(application)) as kairos:
        assert kairos.read_user(user_id).user_id == user_id


@pytest.mark.parametrize(
    "user_id",
    ["a/b", "..", ".", "a//b", "/a", "a/", "%2F", "?n=1#x", "+ &", "日本", "👩‍👩‍👧", "../models"],
)
def test_awkward_ids_are_read_as_meant(application: Client, user_id: str) -> None:
    sent = Event(user_id=user_id, item_id=user_id, action="view", timestamp=NAIVE.astimezone(UTC))
    with KairosClient("http://localhost", transport=IntoTheLoop(application)) as kairos:
        kairos.ingest([sent])
        kairos.put_items([ItemDescription(item_id=user_id)])
        assert [event.item_id for event in kairos.read_user(user_id).events] == [user_id]
        assert kairos.read_item(user_id).item_id == user_id
        assert kairos.recommend_to_user(user_id).unknown_item_ids == (user_id,)


@pytest.mark.parametrize("no_id", ["", "a" * 257, "a\0b", "\n", "\ud800"])
def test_what_is_no_id_is_refused_before_it_is_sent(no_id: str) -> None:
    with pytest.raises(InvalidError) as raised:
        address("/v1/items/{}", no_id)
    assert (raised.value.code, raised.value.status) == ("id_format", None)


def test_an_id_that_reads_as_another_operation_is_refused() -> None:
    with KairosClient("http://localhost") as kairos:
        for asked in (kairos.read_user, kairos.read_item):
            with pytest.raises(InvalidError) as raised:
                asked("u1/recommendations" if asked == kairos.read_user else "mug/similar")
            assert raised.value.code == "id_ambiguous"


@pytest.mark.parametrize(
    "build",
    [
        lambda: instant(NAIVE),
        lambda: PastEvent("i1", NAIVE),
        lambda: Event(user_id="u1", item_id="i1", action="view", timestamp=NAIVE),
        lambda: ItemDescription(item_id="i1", available_from=NAIVE),
        lambda: KairosClient("http://localhost").recommend("u1", query_time=NAIVE),
        lambda: KairosClient("http://localhost").sweep([NAIVE], "u1"),
        lambda: KairosClient("http://localhost").read_next_time("u1", at=NAIVE),
    ],
)
def test_a_naive_instant_is_refused_with_the_rule_and_the_remedy(build: object) -> None:
    with pytest.raises(
        InvalidError, match=r"needs an offset.*2026-02-01T12:00:00.*tzinfo"
    ) as raised:
        build()  # type: ignore[operator]
    assert raised.value.code == "instant_naive"


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
def test_an_instant_is_written_in_utc_and_is_the_same_instant(at: datetime) -> None:
    written = instant(at)
    assert written.endswith("Z")
    assert datetime.fromisoformat(written) == at


def test_an_instant_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidError) as raised:
        instant(datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))
    assert raised.value.code == "instant_range"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_is_a_number(value: float) -> None:
    with pytest.raises(InvalidError):
        Event(
            user_id="u1",
            item_id="i1",
            action="view",
            timestamp=NAIVE.astimezone(UTC),
            value=value,
        )


def test_what_is_no_json_is_refused_before_it_is_sent() -> None:
    mug = ItemDescription(item_id="mug", properties={"since": date(2026, 1, 1)})
    with KairosClient("http://localhost") as kairos, pytest.raises(InvalidError) as raised:
        kairos.put_items([mug])
    assert raised.value.code == "not_json"


def test_only_what_was_given_is_sent() -> None:
    sent: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.read())
        return httpx.Response(404)

    with KairosClient("http://localhost", transport=httpx.MockTransport(answer)) as kairos:
        for asked in ({}, {"merge": False, "any_categories": []}):
            with pytest.raises(Exception, match="http_404"):
                kairos.recommend("u1", **asked)  # type: ignore[arg-type]
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
def test_an_address_or_a_key_that_cannot_work_is_refused_at_once(url: str, key: str | None) -> None:
    with pytest.raises(InvalidError) as raised:
        KairosClient(url, api_key=key)
    assert "kairos_a" not in str(raised.value)


def test_patience_is_positive() -> None:
    for build in (lambda: Retries(attempts=0), lambda: Retries(deadline_seconds=0)):
        with pytest.raises(InvalidError):
            build()


def test_the_client_loads_without_the_service_and_its_libraries() -> None:
    script = """
import sys
import kairos_client
heavy = {"app", "model", "training", "torch", "numpy", "faiss", "fastapi", "starlette",
         "sqlalchemy", "polars", "orjson"}
assert not heavy & {name.partition(".")[0] for name in sys.modules}, heavy & {*sys.modules}
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, env={**os.environ})
