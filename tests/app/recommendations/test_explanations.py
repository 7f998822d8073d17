"""POST /v1/recommendations: explanations, model versions and stored impressions."""

from pathlib import Path
from typing import Any

import pytest
import torch
from scipy.stats import spearmanr
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.engine import open_engine
from app.db.tables import StoredRecommendation
from app.settings import Settings
from model.encoders.up_cf import UPCFConfig
from model.interfaces import CountingEncoder
from model.store.store import BundleStore
from model.store.traffic import Traffic
from model.wide import WideConfig
from tests import tiny
from tests.app import tiny_bundle
from tests.app.client import Client, problem, running
from tests.app.recommendations.recommendation_requests import build_inline, list_ids, recommend
from tests.app.tiny_bundle import HEADS, ITEM_IDS
from tests.processes import eventually

HISTORY = build_inline("i1", "i2", "i3", "i4")
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/recommendations", {}),
    ("/v1/rankings", {"item_ids": ["i1"]}),
    ("/v1/attention", {"query_times": [0]}),
]


def score_of(client: Client, item_id: str, history: list[dict[str, Any]]) -> float:
    return score_in(recommend(client, history=history, n=500, exclude_seen=False), item_id)


def score_in(answer: dict[str, Any], item_id: str) -> float:
    return float({item["item_id"]: item["score"] for item in answer["items"]}[item_id])


def owed(answer: dict[str, Any]) -> list[float | None]:
    """How much lower the score is without each event; None where it was not left out."""
    attention = answer["attention"]
    return [
        None if event["occlusion"] is None else event["occlusion"] + attention["occlusion_mean"]
        for event in attention["events"]
    ]


def test_items_name_the_parts_of_their_scores(settings: Settings, tmp_path: Path) -> None:
    store = tmp_path / "wide"
    tiny_bundle.publish(store, seed=3, wide=WideConfig())
    with running(settings.model_copy(update={"bundle_store": store})) as client:
        answer = recommend(client, history=HISTORY, explain="attention", exclude_seen=False)
        plain = recommend(client, history=HISTORY)
        popular = recommend(client, history=[], explain="attention")
    for item in answer["items"]:
        shares = [part["share"] for part in item["parts"]]
        assert {part["name"] for part in item["parts"]} == {"base", "repeats", "followers"}
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
        (base,) = (part for part in item["parts"] if part["name"] == "base")
        assert {term["name"] for term in base["terms"]} == {"encoder", "popularity", "calendar"}
    assert {item["parts"] for item in plain["items"] + popular["items"]} == {None}


def test_a_model_without_a_wide_part_names_no_parts(shared_client: Client) -> None:
    answer = recommend(shared_client, history=HISTORY, explain="attention")
    assert {item["parts"] for item in answer["items"]} == {None}


def test_occlusion_is_the_loss_of_score_without_the_event(shared_client: Client) -> None:
    answer = recommend(shared_client, history=HISTORY, explain="occlusion")
    best = answer["items"][0]
    assert answer["attention"]["occlusion_of_item_id"] == best["item_id"]
    assert {tuple(event["categories"]) for event in answer["attention"]["events"]} <= {
        ("even",),
        ("odd",),
    }
    for left_out, change in enumerate(owed(answer)):
        without = [event for index, event in enumerate(HISTORY) if index != left_out]
        expected = best["score"] - score_of(shared_client, best["item_id"], without)
        assert change == pytest.approx(expected, abs=1e-4)


def test_occlusion_is_relative_to_its_mean(shared_client: Client) -> None:
    attention = recommend(shared_client, history=HISTORY, explain="occlusion")["attention"]
    changes = [one["occlusion"] for one in attention["left_out"]]
    assert sum(changes) == pytest.approx(0, abs=1e-5)
    assert [event["occlusion"] for event in attention["events"]] == changes
    assert attention["occlusion_unit"] == "event"
    assert [one["events"] for one in attention["left_out"]] == [[0], [1], [2], [3]]
    assert attention["occlusion_mean"] != 0


def test_faithfulness_correlates_attention_and_occlusion(shared_client: Client) -> None:
    given = 0
    history = build_inline(*(f"i{event * 7 % 20}" for event in range(16)))
    for number in range(20):
        attention = recommend(
            shared_client, history=history, explain="occlusion", explain_item_id=f"i{number}"
        )["attention"]
        measured = [(one["weight"], one["occlusion"]) for one in attention["left_out"]]
        expected = spearmanr(*zip(*measured, strict=True)).statistic
        if attention["faithfulness"] is None:
            assert attention["faithfulness_note"] == "not_significant"
            assert abs(expected) * (len(measured) - 1) ** 0.5 < 1.96
            continue
        given += 1
        assert attention["faithfulness"] == pytest.approx(expected)
        assert attention["faithfulness_note"] in ("high", "medium", "reversed")
    assert given


def test_faithfulness_of_few_events_is_withheld(shared_client: Client) -> None:
    attention = recommend(shared_client, history=HISTORY, explain="occlusion")["attention"]
    assert attention["faithfulness"] is None
    assert attention["faithfulness_note"] == "too_few_left_out"


def test_baskets_are_left_out_as_a_whole(shared_client: Client) -> None:
    history = [
        {"item_id": f"i{number}", "timestamp": f"2026-01-0{1 + number // 2}T00:00:00Z"}
        for number in range(6)
    ]
    body = {"history": history, "query_time": "2026-01-05T00:00:00Z"}
    answer = recommend(shared_client, **body, explain="occlusion", occlusion_unit="basket")
    attention, best = answer["attention"], answer["items"][0]
    assert attention["occlusion_unit"] == "basket"
    assert [one["events"] for one in attention["left_out"]] == [[0, 1], [2, 3], [4, 5]]
    assert [one["timestamp"] for one in attention["left_out"]] == [
        history[number]["timestamp"] for number in (0, 2, 4)
    ]
    changes = owed(answer)
    for first in (0, 2, 4):
        left = {**body, "history": history[:first] + history[first + 2 :]}
        whole, without = (
            recommend(shared_client, **one, n=500, exclude_seen=False) for one in (body, left)
        )
        expected = score_in(whole, best["item_id"]) - score_in(without, best["item_id"])
        assert changes[first] == changes[first + 1]
        assert changes[first] == pytest.approx(expected, abs=1e-4)


def test_any_item_of_the_model_can_be_explained(shared_client: Client) -> None:
    answer = recommend(
        shared_client, history=HISTORY, explain="occlusion", explain_item_id="i9", n=1
    )
    assert answer["attention"]["occlusion_of_item_id"] == "i9"
    without_the_first = score_of(shared_client, "i9", HISTORY[1:])
    assert owed(answer)[0] == pytest.approx(
        score_of(shared_client, "i9", HISTORY) - without_the_first, abs=1e-4
    )


def test_only_the_most_attended_events_are_occluded(shared_client: Client) -> None:
    history = build_inline(*(f"i{number % 20}" for number in range(40)))
    body = {"history": history, "exclude_seen": False, "query_time": "2026-01-05T00:00:00Z"}
    answer = recommend(shared_client, **body, explain="occlusion")
    events = answer["attention"]["events"]
    measured = {event["weight"] for event in events if event["occlusion"] is not None}
    skipped = {event["weight"] for event in events if event["occlusion"] is None}
    assert len(measured) == 20
    assert min(measured) >= max(skipped)


def test_without_an_item_there_is_nothing_to_occlude(shared_client: Client) -> None:
    attention = recommend(
        shared_client, history=HISTORY, include_item_ids=["unknown"], explain="occlusion"
    )
    assert attention["attention"]["occlusion_of_item_id"] is None


def test_a_single_event_is_not_occluded(shared_client: Client) -> None:
    answer = recommend(shared_client, history=build_inline("i1"), explain="occlusion")
    assert owed(answer) == [None]
    assert answer["attention"]["faithfulness"] is None


@pytest.mark.parametrize("explain", ["attention", "heads"])
def test_occlusion_is_computed_only_on_request(shared_client: Client, explain: str) -> None:
    attention = recommend(shared_client, history=HISTORY, explain=explain)["attention"]
    assert attention["occlusion_of_item_id"] is None
    assert {event["occlusion"] for event in attention["events"]} == {None}
    assert attention["left_out"] is attention["faithfulness_note"] is None
    assert (attention["heads"] is None) == (explain == "attention")
    if explain == "heads":
        assert [len(head) for head in attention["heads"]] == [4] * HEADS


def test_reasons_add_up_to_the_score(settings: Settings, tmp_path: Path) -> None:
    store = tmp_path / "wide"
    tiny_bundle.publish(store, seed=3, wide=WideConfig())
    bought = [{**event, "action": "purchase"} for event in HISTORY]
    with running(settings.model_copy(update={"bundle_store": store})) as client:
        answer = recommend(client, history=bought, explain="reasons", exclude_seen=False, n=20)
        popular = recommend(client, history=[], explain="reasons", n=2)
    assert (answer["attention"], answer["warnings"]) == (None, [])
    for item in answer["items"]:
        assert item["parts"] is None
        contributions = item["reasons"]["contributions"]
        assert sum(one["value"] for one in contributions) == pytest.approx(item["score"], abs=1e-4)
        is_bought = any(event["item_id"] == item["item_id"] for event in bought)
        (repeats,) = (one for one in contributions if one["kind"] == "repeats")
        assert [event["item_id"] for event in repeats["events"]] == [item["item_id"]] * is_bought
        assert item["reasons"]["facts"]["times"] == is_bought
        assert item["reasons"]["sentence"].startswith("Bought once, ") == is_bought
        for event in repeats["events"]:
            assert event["action"] == "purchase"
            assert event["title"] == f"Item {item['item_id'][1:]}"
            assert event["timestamp"] in [one["timestamp"] for one in bought]
    for item in popular["items"]:
        (only,) = item["reasons"]["contributions"]
        assert (only["kind"], only["value"]) == ("popularity", item["score"])
        times = f"{item['score']:.0f} times"
        expected = f"Chosen {times} by all users in the last week of the data."
        assert item["reasons"]["sentence"] == expected


def test_reasons_are_given_for_models_of_every_kind(shared_client: Client) -> None:
    """Also by one without a wide part, and only on request."""
    answer = recommend(shared_client, history=HISTORY, explain="reasons")
    for item in answer["items"]:
        contributions = item["reasons"]["contributions"]
        assert {one["kind"] for one in contributions} == {"average", "state", "bias"}
        assert sum(one["value"] for one in contributions) == pytest.approx(item["score"], abs=1e-4)
    plain = recommend(shared_client, history=HISTORY, explain="attention")
    assert {item["reasons"] for item in plain["items"]} == {None}


def test_reasons_name_what_similar_users_chose(settings: Settings, tmp_path: Path) -> None:
    """Of two users one has the item of the history, and later another one."""
    config = tiny.recommender_config(UPCFConfig())
    recommender = config.build().eval()
    assert isinstance(recommender.encoder, CountingEncoder)
    assert recommender.item_bias is not None
    rows, users = torch.tensor([2, 6, 9]), torch.tensor([0, 0, 1])
    with torch.no_grad():
        counted = recommender.encoder.fit_counts(rows, tiny.FIRST_AT + torch.arange(3), users)
        recommender.item_bias.copy_(counted)
    BundleStore(tmp_path / "counted").publish(tiny.writer(config, recommender))
    with running(settings.model_copy(update={"bundle_store": tmp_path / "counted"})) as client:
        answer = recommend(client, history=build_inline("i1"), explain="reasons", n=1)
    (item,) = answer["items"]
    assert item["item_id"] == "i5"
    assert item["reasons"]["sentence"] == "Chosen by similar users."
    contributions = {one["kind"]: one for one in item["reasons"]["contributions"]}
    assert set(contributions) == {"average", "state", "bias", "repeats", "neighbours"}
    assert contributions["neighbours"]["value"] > 0
    assert contributions["neighbours"]["events"] == contributions["repeats"]["events"] == []
    assert item["reasons"]["facts"]["follows_item_id"] is None


def test_an_unknown_item_cannot_be_explained(shared_client: Client) -> None:
    body = {"history": HISTORY, "explain": "occlusion", "explain_item_id": "unknown"}
    detail = problem(shared_client.post("/v1/recommendations", body), 422, "validation_failed")[
        "detail"
    ]
    assert detail.startswith("#/explain_item_id: ")


def test_a_requested_version_answers(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    with running(settings) as client:
        by_default, pinned = (
            recommend(client, history=HISTORY, **body) for body in ({}, {"model_version": other})
        )
        assert by_default["model_version"] == BundleStore(bundle_store).read_current()
        assert pinned["model_version"] == other
        assert list_ids(pinned) != list_ids(by_default)
        body = {"history": HISTORY, "model_version": "no such version"}
        problem(client.post("/v1/recommendations", body), 404, "model_not_found")
        assert recommend(client, history=HISTORY)["model_version"] == by_default["model_version"]


def test_a_version_that_does_not_open_is_refused(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, other)
    with running(settings) as client:
        for path, more in QUESTIONS:
            response = client.post(path, {"model_version": other, **more})
            assert response.status_code == 409, response.text
        assert client.get(f"/v1/items/i1/similar?model_version={other}").status_code == 409


def test_one_user_gets_one_version_in_every_operation(
    settings: Settings, bundle_store: Path
) -> None:
    """Recommendations, rankings and sweeps of one user use the same version."""
    store = BundleStore(bundle_store)
    challenger = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    store.route(Traffic(challenger=challenger, share=0.5))
    with running(settings) as client:
        met = set()
        for number in range(20):
            user = {"user_id": f"u{number}"}
            versions = {
                client.post(path, {**user, **more}).json()["model_version"]
                for path, more in QUESTIONS
            }
            simple = client.get(f"/v1/users/u{number}/recommendations").json()
            assert versions == {simple["model_version"]}
            met |= versions
        assert met == {store.read_current(), challenger}


def test_impressions_are_stored(client_on_either: Client) -> None:
    shown = recommend(client_on_either, user_id="u", history=HISTORY, n=3)
    simple = client_on_either.get("/v1/users/u/recommendations?n=2").json()
    anonymous = recommend(client_on_either, history=HISTORY, n=1)
    kept = recorded(client_on_either, 3)
    for answer, user_id in [(shown, "u"), (simple, "u"), (anonymous, None)]:
        record = kept[answer["recommendation_id"]]
        assert (record.user_id, record.model_version) == (user_id, answer["model_version"])
        assert record.item_ids == list_ids(answer)
        assert record.fallback == answer["fallback"]
    click = {
        "user_id": "u",
        "item_id": list_ids(shown)[0],
        "action": "click",
        "timestamp": 1_700_000_000,
        "recommendation_id": shown["recommendation_id"],
    }
    client_on_either.post("/v1/events", {"events": [click]})
    assert (
        client_on_either.metric(
            "kairos_recommendation_clicks_total", model_version=shown["model_version"]
        )
        == 1
    )


def recorded(client: Client, expected: int) -> dict[str, StoredRecommendation]:
    """Wait for the stored impressions, and return them."""
    engine = open_engine(client.app.state.context.settings.database_url)
    found: dict[str, StoredRecommendation] = {}

    def is_recorded() -> bool:
        with Session(engine) as session:
            records = session.scalars(select(StoredRecommendation)).all()
        found.update({record.recommendation_id: record for record in records})
        return len(found) >= expected

    eventually(is_recorded)
    engine.dispose()
    return found


class TestTheSimpleCase:
    def test_is_the_recommendation_of_the_stored_history(self, client_on_either: Client) -> None:
        events = [{**event, "user_id": "a/b", "action": "view"} for event in HISTORY]
        client_on_either.post("/v1/events", {"events": events})
        at = "2026-01-01T02:00:00Z"
        simple = client_on_either.get(
            "/v1/users/a%2Fb/recommendations", params={"n": 3, "at": at}
        ).json()
        full = recommend(client_on_either, user_id="a/b", query_time=at, n=3)
        assert simple.pop("recommendation_id") != full.pop("recommendation_id")
        assert simple == full
        assert simple["history_used"] == 3

    def test_an_unknown_user_is_a_cold_start(self, shared_client: Client) -> None:
        answer = shared_client.get("/v1/users/nobody/recommendations").json()
        assert answer["fallback"] == "no_history"
        assert list_ids(answer) == list(ITEM_IDS[:10])

    @pytest.mark.parametrize("query", ["n=0", "n=501", "at=soon", "at="])
    def test_refuses_a_query_that_breaks_a_rule(self, shared_client: Client, query: str) -> None:
        response = shared_client.get(f"/v1/users/u/recommendations?{query}")
        error = problem(response, 422, "validation_failed")["errors"][0]
        assert error["where"] == "query." + query.partition("=")[0]
