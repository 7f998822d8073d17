"""POST /v1/attention: one history, many instants."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.attention.schemas import AttentionAnswer
from app.histories import service
from app.http.types import format_instant
from app.settings import Settings
from model.encoders import EncoderConfig
from model.encoders.gru4rec import GRU4RecConfig
from model.layers.self_modulation import ModulationConfig
from tests.app import tiny_bundle
from tests.app.client import Client, problem, running
from tests.app.recommendations.recommendation_requests import build_inline, build_stored, recommend
from tests.app.tiny_bundle import FIRST_AT, HOUR, LAST_AT, MAX_HISTORY

RESPONSE_CONFIG = TypeAdapter(AttentionAnswer)
HOURS = [-1, 0, 0.5, 1, 1.5, 4, 4, 2, 200]


def at(hours: float) -> str:
    return format_instant(FIRST_AT + int(hours * HOUR))


def sweep(client: Client, *hours: float, **body: Any) -> dict[str, Any]:
    """Request a sweep over instants in hours after the first event; check its schema."""
    response = client.post("/v1/attention", {"query_times": [at(hour) for hour in hours]} | body)
    assert response.status_code == 200, response.text
    RESPONSE_CONFIG.validate_json(response.content)
    answer: dict[str, Any] = response.json()
    return answer


def test_each_instant_equals_a_single_recommendation(shared_client: Client) -> None:
    history = build_inline("i1", "unknown", "i2", "i3", "i1")
    answer = sweep(shared_client, *HOURS, history=history, n=5)
    assert (answer["layer"], answer["aggregation"], answer["normalised"]) == (
        "last",
        "mean_heads",
        True,
    )
    assert [event["item_id"] for event in answer["events"]] == ["i1", "i2", "i3", "i1"]
    assert [event["title"] for event in answer["events"]] == [
        "Item 1",
        "Item 2",
        "Item 3",
        "Item 1",
    ]
    assert [event["categories"] for event in answer["events"]] == [
        ["odd"],
        ["even"],
        ["odd"],
        ["odd"],
    ]
    assert [instant["query_time"] for instant in answer["instants"]] == [at(h) for h in HOURS]
    for instant in answer["instants"]:
        alone = recommend(
            shared_client,
            history=history,
            query_time=instant["query_time"],
            n=5,
            explain="attention",
        )
        assert instant["history_used"] == alone["history_used"]
        assert instant["fallback"] == alone["fallback"]
        assert [item["item_id"] for item in instant["items"]] == [
            item["item_id"] for item in alone["items"]
        ]
        assert [item["score"] for item in instant["items"]] == pytest.approx(
            [item["score"] for item in alone["items"]], abs=1e-4
        )
        expected = [event["weight"] for event in (alone["attention"] or {"events": []})["events"]]
        missing = [None] * (len(answer["events"]) - len(expected))
        weights = instant["weights"]
        assert weights[len(expected) :] == missing
        assert weights[: len(expected)] == pytest.approx(expected, abs=1e-5)
    assert answer["unknown_item_ids"] == ["unknown"]


def test_weights_alone_are_the_default(shared_client: Client) -> None:
    answer = sweep(shared_client, 0, 9, history=build_inline("i1", "i2"))
    assert [instant["items"] for instant in answer["instants"]] == [[], []]
    assert answer["instants"][0]["weights"] == [1.0, None]
    assert sum(answer["instants"][1]["weights"]) == pytest.approx(1, abs=1e-5)


def test_the_stored_history_is_swept_like_the_inline_one(client_on_either: Client) -> None:
    client_on_either.post("/v1/events", build_stored("u", "i1", "i2", "i3"))
    history = [{**event, "action": "view"} for event in build_inline("i1", "i2", "i3")]
    assert sweep(client_on_either, *HOURS, user_id="u", n=3) == sweep(
        client_on_either, *HOURS, history=history, n=3
    )


def test_events_after_every_instant_are_left_out_with_a_warning(shared_client: Client) -> None:
    answer = sweep(shared_client, 0, 0.5, history=build_inline("i1", "i2", "i3"))
    assert [event["item_id"] for event in answer["events"]] == ["i1"]
    assert answer["warnings"] == ["events_after_query_time"]


def test_events_beyond_the_read_length_have_zero_weight(shared_client: Client) -> None:
    items = [f"i{number % 20}" for number in range(MAX_HISTORY + 10)]
    answer = sweep(shared_client, MAX_HISTORY - 1, MAX_HISTORY + 9, history=build_inline(*items))
    early, late = answer["instants"]
    assert len(answer["events"]) == MAX_HISTORY + 10
    assert early["weights"][MAX_HISTORY:] == [None] * 10
    assert all(weight > 0 for weight in early["weights"][:MAX_HISTORY])
    assert late["weights"][:10] == [0.0] * 10
    assert all(weight > 0 for weight in late["weights"][10:])
    assert (early["warnings"], late["warnings"]) == ([], ["history_truncated"])
    assert answer["warnings"] == ["history_truncated"]


def test_weights_may_be_limited_to_the_events_read(shared_client: Client) -> None:
    items = [f"i{number % 20}" for number in range(MAX_HISTORY + 10)]
    hours, history = (-1, 3, MAX_HISTORY - 1, MAX_HISTORY + 9), build_inline(*items)
    every = sweep(shared_client, *hours, history=history)
    read = sweep(shared_client, *hours, history=history, weights_of="read")
    assert [one["first_event"] for one in read["instants"]] == [0, 0, 0, 10]
    for instant, aligned in zip(read["instants"], every["instants"], strict=True):
        first, weights = instant["first_event"], aligned["weights"]
        of_read = weights[first : first + instant["history_used"]]
        assert (instant["weights"] or []) == of_read
    assert read["events"] == every["events"]


def test_query_times_may_be_withheld_from_a_sweep(shared_client: Client) -> None:
    request = {"history": build_inline("i1", "i2", "i3"), "n": 4, "query_time_withheld": True}
    answer = sweep(shared_client, *HOURS, **request)
    for instant in answer["instants"]:
        alone = recommend(shared_client, query_time=instant["query_time"], **request)
        assert [(item["item_id"], pytest.approx(item["score"])) for item in instant["items"]] == [
            (item["item_id"], item["score"]) for item in alone["items"]
        ]


def test_the_weights_of_one_head_may_be_swept(shared_client: Client) -> None:
    history, hours = build_inline("i1", "i2", "i3"), (0.5, 9)
    for head in (1, 2):
        answer = sweep(shared_client, *hours, history=history, head=head)
        assert answer["aggregation"] == "head"
        for instant in answer["instants"]:
            query_time = instant["query_time"]
            alone = recommend(
                shared_client, history=history, query_time=query_time, explain="heads"
            )
            of_head = alone["attention"]["heads"][head - 1]
            assert instant["weights"][: len(of_head)] == pytest.approx(of_head, abs=1e-5)


def test_a_head_that_the_model_lacks_is_refused(shared_client: Client) -> None:
    body = {"history": build_inline("i1"), "query_times": [at(1)], "head": 3}
    refused = problem(shared_client.post("/v1/attention", body), 422, "validation_failed")
    assert "#/head: a head must be one of the 2 of the model, but number 3" in refused["detail"]


def test_each_instant_reads_its_own_latest_events(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As single requests do, however many events lie between the query times."""
    monkeypatch.setattr(service, "MOST_SEEN_EVENTS", 9)
    hours = [-1, 0, 2.5, 7, 15, 16, 40, 41, 59, 80]
    with running(settings.model_copy(update={"max_history": 6})) as client:
        items = ["i1", "unknown", "i2", "i3", "i1", "i4", "i5", "i6", "i7", "i8", "i9"] * 5
        client.post("/v1/events", build_stored("u", *items))
        swept = sweep(client, *hours, user_id="u", n=4)
        for hour, instant in zip(hours, swept["instants"], strict=True):
            alone = sweep(client, hour, user_id="u", n=4)
            weights = dict(zip(map(str, swept["events"]), instant["weights"] or (), strict=False))
            for event, weight in zip(
                alone["events"], alone["instants"][0]["weights"] or (), strict=False
            ):
                assert weights[str(event)] == pytest.approx(weight, abs=1e-6)
            single = recommend(client, user_id="u", query_time=at(hour), n=4)
            for name in ("history_used", "fallback"):
                assert instant[name] == alone["instants"][0][name] == single[name], (hour, name)
            found, expected = (
                [(item["item_id"], pytest.approx(item["score"], abs=1e-4)) for item in one["items"]]
                for one in (instant, single)
            )
            assert found == expected


def test_a_warning_belongs_to_its_instant(shared_client: Client) -> None:
    hours = (LAST_AT - FIRST_AT) / HOUR
    answer = sweep(shared_client, 1, 2 * hours, history=build_inline("i1"))
    assert [instant["warnings"] for instant in answer["instants"]] == [
        [],
        ["beyond_training_window"],
    ]


def test_availability_is_that_of_the_instant(client: Client) -> None:
    described = {"item_id": "i7", "available_from": at(2), "available_until": at(4)}
    client.put("/v1/items", {"items": [described]})
    answer = sweep(client, 1, 2, 3, 4, history=build_inline("i1"), n=100)
    assert ["i7" in {i["item_id"] for i in one["items"]} for one in answer["instants"]] == [
        False,
        True,
        True,
        False,
    ]


def test_a_model_without_attention_returns_no_weights(settings: Settings, tmp_path: Path) -> None:
    encoder: EncoderConfig = GRU4RecConfig(dim=8, hidden=8)
    tiny_bundle.publish(tmp_path / "recurrent", seed=1, encoder=encoder)
    with running(settings.model_copy(update={"bundle_store": tmp_path / "recurrent"})) as client:
        answer = sweep(client, -1, 3, history=build_inline("i1"), n=2)
        assert [instant["weights"] for instant in answer["instants"]] == [None, None]
        assert answer["warnings"] == ["attention_unavailable"]
        assert [len(instant["items"]) for instant in answer["instants"]] == [2, 2]


def test_a_self_modulating_model_returns_its_intensities(
    settings: Settings, tmp_path: Path
) -> None:
    encoder = tiny_bundle.ENCODER.model_copy(update={"modulation": ModulationConfig(groups=2)})
    groups = ("tea", "coffee")
    tiny_bundle.publish(tmp_path / "modulated", seed=1, encoder=encoder, groups=groups)
    history = build_inline("i1", "i2", "i3")
    with running(settings.model_copy(update={"bundle_store": tmp_path / "modulated"})) as client:
        answer = sweep(client, *HOURS, history=history)
        assert answer["groups"] == ["tea", "coffee"]
        for instant in answer["instants"]:
            query_time = instant["query_time"]
            alone = recommend(client, history=history, query_time=query_time, explain="attention")
            if alone["attention"] is None:
                assert instant["intensities"] is None
                continue
            named = dict(zip(answer["groups"], instant["intensities"], strict=True))
            assert named == pytest.approx(
                {each["group"]: each["intensity"] for each in alone["attention"]["intensities"]},
                abs=1e-5,
            )
        assert sweep(client, -1, history=history)["groups"] is None


def test_a_model_without_intensities_returns_null(shared_client: Client) -> None:
    answer = sweep(shared_client, 0, 9, history=build_inline("i1", "i2"))
    assert answer["groups"] is None
    assert [instant["intensities"] for instant in answer["instants"]] == [None, None]


def test_without_a_history_there_are_no_weights(shared_client: Client) -> None:
    answer = sweep(shared_client, 1, user_id="nobody", n=2)
    assert (answer["events"], answer["warnings"]) == ([], [])
    (instant,) = answer["instants"]
    assert (instant["weights"], instant["fallback"]) == (None, "no_history")
    assert [item["item_id"] for item in instant["items"]] == ["i0", "i1"]


def test_a_version_can_be_requested(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    with running(settings) as client:
        assert (
            sweep(client, 1, history=build_inline("i1"), model_version=other)["model_version"]
            == other
        )


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"query_times": []}, "#/query_times", "too_short"),
        ({"query_times": [0] * 501}, "#/query_times", "too_long"),
        ({"query_times": ["2026-01-01T00:00:00"]}, "#/query_times/0", "instant_naive"),
        ({"query_times": [0], "n": 101}, "#/n", "less_than_equal"),
        ({"query_times": [0], "n": -1}, "#/n", "greater_than_equal"),
        ({"query_times": [0], "query_time": 0}, "#/query_time", "extra_forbidden"),
    ],
)
def test_a_broken_rule_is_named(
    shared_client: Client, body: dict[str, Any], where: str, code: str
) -> None:
    error = problem(shared_client.post("/v1/attention", body), 422, "validation_failed")["errors"][
        0
    ]
    assert (error["where"], error["code"]) == (where, code)


def test_a_sweep_has_up_to_200_instants_and_events(settings: Settings, tmp_path: Path) -> None:
    encoder = tiny_bundle.ENCODER.model_copy(update={"max_history": 200, "dim": 32})
    tiny_bundle.publish(tmp_path / "long", seed=1, encoder=encoder)
    history = build_inline(*(f"i{number % 20}" for number in range(200)))
    hours = [3 * number for number in range(200)]
    with running(settings.model_copy(update={"bundle_store": tmp_path / "long"})) as client:
        answer = sweep(client, *hours, history=history, n=10)
    assert len(answer["instants"]) == 200
    assert answer["instants"][-1]["history_used"] == 200
    used = [instant["history_used"] for instant in answer["instants"]]
    assert all(earlier <= later for earlier, later in itertools.pairwise(used))
