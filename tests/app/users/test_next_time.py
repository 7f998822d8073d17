"""GET /v1/users/{user_id}/next-time, with bundles of models of event times."""

import itertools
import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch

from app.settings import Settings
from model.encoders import EncoderConfig
from model.encoders.rmtpp import RMTPPConfig
from model.encoders.time_joint import TimeJointConfig
from model.history import Event, Query
from model.layers.interval_distribution import IntervalDistribution
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client, problem, running
from tests.app.tiny_bundle import FIRST_AT, HOUR

LAST_EVENT_AT = "2026-01-03T00:00:00Z"
A_WEEK_LATER = "2026-01-10T00:00:00Z"
SAYING_WHEN: list[EncoderConfig] = [
    RMTPPConfig(dim=8, hidden=8, max_history=50, time_scale=1.0),
    TimeJointConfig(dim=8, hidden=8, max_history=50),
]


@pytest.fixture(scope="module", params=SAYING_WHEN, ids=lambda encoder: str(encoder.kind))
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """A service with a model of event times and stored events; no test adds events."""
    root = tmp_path_factory.mktemp("saying_when")
    tiny_bundle.publish(root / "bundles", seed=3, encoder=request.param)
    settings = Settings(
        database_url=f"sqlite:///{root / 'kairos.db'}", bundle_store=root / "bundles"
    )
    with running(settings) as client:
        store_events(client)
        yield client


def store_events(client: Client) -> None:
    stored = [
        ("a/b", "i1", "2026-01-01T00:00:00Z"),
        ("a/b", "i2", "2026-01-02T12:00:00Z"),
        ("a/b", "i1", LAST_EVENT_AT),
        ("lost", "not in the catalog", LAST_EVENT_AT),
    ]
    events = [
        {"user_id": user_id, "item_id": item_id, "action": "view", "timestamp": timestamp}
        for user_id, item_id, timestamp in stored
    ]
    assert client.post("/v1/events", {"events": events}).json()["accepted"] == len(events)


def estimate(client: Client, at: str | None = None, user_id: str = "a/b") -> dict[str, Any]:
    response = client.get(
        f"/v1/users/{quote(user_id, safe='')}/next-time", params={"at": at} if at else {}
    )
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def instants(answer: dict[str, Any]) -> list[datetime]:
    return [datetime.fromisoformat(quantile["instant"]) for quantile in answer["quantiles"]]


def interval_by_the_model(client: Client) -> IntervalDistribution:
    store: BundleStore = client.app.state.context.store
    predictor = store.open(str(store.read_current()))
    query = Query(
        (
            Event("i1", FIRST_AT),
            Event("i2", FIRST_AT + 36 * HOUR),
            Event("i1", FIRST_AT + 48 * HOUR),
        ),
        FIRST_AT + 48 * HOUR,
    )
    distribution = predictor.encode(query, predictor.look_up_history(query)).next_time
    assert isinstance(distribution, IntervalDistribution)
    return distribution


def test_an_answer_names_its_version_and_history(client: Client) -> None:
    answer = estimate(client, A_WEEK_LATER)
    assert answer["user_id"] == "a/b"
    assert answer["model_version"] == client.app.state.context.store.read_current()
    assert answer["at"] == A_WEEK_LATER
    assert answer["history_used"] == 3
    assert answer["last_event_at"] == LAST_EVENT_AT


def test_at_the_last_event_the_quantiles_are_those_of_the_model(client: Client) -> None:
    answer = estimate(client, LAST_EVENT_AT)
    distribution = interval_by_the_model(client)
    assert [quantile["share"] for quantile in answer["quantiles"]] == [0.1, 0.5, 0.9]
    for quantile, instant in zip(answer["quantiles"], instants(answer), strict=True):
        elapsed = instant - datetime.fromisoformat(LAST_EVENT_AT)
        expected = distribution.quantile(quantile["share"]).item()
        assert elapsed / timedelta(days=1) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert answer["median"] == answer["quantiles"][1]["instant"]


def test_quantiles_are_conditional_on_the_elapsed_time(client: Client) -> None:
    distribution = interval_by_the_model(client)
    for quantile in estimate(client, A_WEEK_LATER)["quantiles"]:
        instant = datetime.fromisoformat(quantile["instant"])
        assert instant > datetime.fromisoformat(A_WEEK_LATER)
        days = (instant - datetime.fromisoformat(LAST_EVENT_AT)) / timedelta(days=1)
        # P(later than the quantile | later than a week).
        longer, week = (distribution.log_survival(tensor(value)).item() for value in (days, 7.0))
        assert math.exp(longer - week) == pytest.approx(1 - quantile["share"], rel=1e-6)


def test_the_density_covers_the_remaining_probability(client: Client) -> None:
    for at, elapsed in ((LAST_EVENT_AT, 0.0), (A_WEEK_LATER, 7.0)):
        points = estimate(client, at)["density"]
        days = [point["interval_days"] for point in points]
        assert days == sorted(days)
        assert days[0] == pytest.approx(elapsed)
        assert len(points) == 50
        area = sum(
            (one["density"] + other["density"])
            / 2
            * (other["interval_days"] - one["interval_days"])
            for one, other in itertools.pairwise(points)
        )
        assert area == pytest.approx(0.98, abs=0.01)


def test_a_zero_interval_is_possible_at_the_last_event_only(client: Client) -> None:
    expected = interval_by_the_model(client).zero_probability.item()
    assert 0 < expected < 1
    found = estimate(client, LAST_EVENT_AT)["zero_interval_probability"]
    assert found == pytest.approx(expected)
    assert estimate(client, A_WEEK_LATER)["zero_interval_probability"] == 0


def test_later_events_are_not_used(client: Client) -> None:
    answer = estimate(client, "2026-01-02T18:00:00Z")
    assert answer["history_used"] == 2
    assert answer["last_event_at"] == "2026-01-02T12:00:00Z"


def test_the_instant_defaults_to_now(client: Client) -> None:
    answer = estimate(client)
    assert answer["history_used"] == 3
    assert datetime.fromisoformat(answer["at"]) > datetime.fromisoformat(LAST_EVENT_AT)


@pytest.mark.parametrize("at", ["1767398400", "1767398400.0", "2026-01-03T01:00:00+01:00"])
def test_an_instant_has_several_notations(client: Client, at: str) -> None:
    assert estimate(client, at)["at"] == LAST_EVENT_AT


@pytest.mark.parametrize(
    ("user_id", "at"), [("nobody", None), ("lost", None), ("a/b", "2025-01-01T00:00:00Z")]
)
def test_a_user_without_a_usable_event_is_a_cold_start(
    client: Client, user_id: str, at: str | None
) -> None:
    answer = estimate(client, at, user_id)
    assert answer["history_used"] == 0
    assert answer["last_event_at"] is None
    assert answer["median"] is None
    assert [quantile["instant"] for quantile in answer["quantiles"]] == [None, None, None]
    assert answer["density"] == []


def test_the_end_of_the_calendar_is_answered(client: Client) -> None:
    answer = estimate(client, "9999-12-31T23:59:59Z")
    assert answer["history_used"] == 3
    for quantile in answer["quantiles"]:
        assert quantile["instant"] is None or quantile["instant"].startswith("9999-12-31")
    assert all(math.isfinite(point["density"]) for point in answer["density"])


@pytest.mark.parametrize("at", ["", "soon", "2026-01-03T00:00:00", "1e5", "9" * 5000, "\0"])
def test_an_invalid_instant_is_refused(client: Client, at: str) -> None:
    response = client.get("/v1/users/a/next-time", params={"at": at})
    assert problem(response, 422, "validation_failed")["errors"][0]["where"] == "query.at"


def test_the_history_of_a_user_keeps_its_path(client: Client) -> None:
    assert len(client.get("/v1/users/a%2Fb").json()["events"]) == 3


class TestWithoutATimeModel:
    @pytest.fixture
    def client(self, settings: Settings) -> Iterator[Client]:
        with running(settings) as client:
            store_events(client)
            yield client

    @pytest.mark.parametrize("user_id", ["a/b", "nobody"])
    def test_a_conflict_names_the_kind_of_the_model(self, client: Client, user_id: str) -> None:
        response = client.get(f"/v1/users/{quote(user_id, safe='')}/next-time")
        detail = problem(response, 409, "model_says_no_time")["detail"]
        assert "'self_attention'" in detail
        assert "rmtpp" in detail

    def test_without_a_model_the_service_is_unavailable(
        self, settings: Settings, tmp_path: Path
    ) -> None:
        with running(settings.model_copy(update={"bundle_store": tmp_path / "none"})) as client:
            problem(client.get("/v1/users/u/next-time"), 503, "no_model")


def tensor(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)
