"""Every method trains in one loop, is saved in one bundle and answers one service."""

import math
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from app.settings import Settings
from model.clock import to_datetime
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from model.store.store import BundleStore
from tests import tiny, zoo
from tests.app.client import Client, running
from tests.processes import eventually
from tests.training.progress import SilentProgress
from training.run import Outcome, train

EVENTS = tiny.gap_world(users=24, length=8)
ITEMS = pl.DataFrame(
    {
        "item_id": tiny.ITEM_IDS,
        "title": [f"Item {item_id}" for item_id in tiny.ITEM_IDS],
        "categories": [["soon" if int(item_id[1:]) < 10 else "late"] for item_id in tiny.ITEM_IDS],
    }
)

YEAR = 365 * tiny.DAY
NOTHING_EXCLUDED = Constraints(n=5, exclude_seen=False)


def awkward_world() -> pl.DataFrame:
    """Histories of one event, of equal times only, and of decades between two events."""
    happened = [("single", "i1", tiny.FIRST_AT)]
    for user in range(6):
        at_once = [(f"at once {user}", f"i{(user + n) % 20}", tiny.FIRST_AT) for n in range(6)]
        decades = [
            (f"decades {user}", f"i{(user + n) % 20}", tiny.FIRST_AT - n * 20 * YEAR)
            for n in (2, 1, 0, 0)
        ]
        happened += at_once + decades
    return tiny.event_log(happened)


AWKWARD = awkward_world()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, BundleStore]]:
    """One service for all methods: each is published, activated and queried in turn."""
    root = tmp_path_factory.mktemp("zoo")
    store = BundleStore(root / "bundles")
    settings = Settings(
        database_url=f"sqlite:///{root / 'kairos.db'}",
        bundle_store=store.root,
        poll_interval_seconds=0.01,
    )
    with running(settings) as client:
        yield client, store


@pytest.mark.parametrize("method", zoo.METHODS)
def test_a_method_trains_is_bundled_and_answers(
    method: str, served: tuple[Client, BundleStore], tmp_path: Path
) -> None:
    client, store = served
    recipe = zoo.recipe(method).model_copy(update={"export_encoder": True})
    outcome = train(recipe, EVENTS, ITEMS, tmp_path, progress=SilentProgress())
    assert_finite(outcome)
    assert outcome.report.rows["model"]["questions"] == EVENTS["user_id"].n_unique()
    version = store.add_copy(outcome.bundle)
    eventually(lambda: client.get("/health/ready").status_code == 200)
    eventually(lambda: answer(client, [("i1", 0)])["model_version"] == version)

    body = answer(client, [("i1", 30), ("i12", 3), ("i4", 1)])
    assert body["fallback"] is None
    assert {item["reason"] for item in body["items"]} == {"model"}
    assert all(math.isfinite(item["score"]) for item in body["items"])
    ranked = [item["score"] for item in body["items"]]
    assert ranked == sorted(ranked, reverse=True)
    if zoo.ATTENDS[method]:
        assert [event["item_id"] for event in body["attention"]["events"]] == ["i1", "i12", "i4"]
        weights = [event["weight"] for event in body["attention"]["events"]]
        assert all(math.isfinite(weight) for weight in weights)
        if body["attention"]["normalised"]:
            assert sum(weights) == pytest.approx(1, abs=1e-5)
        if "modulat" in method:
            assert len(body["attention"]["intensities"]) == zoo.MODULATION["groups"]
    else:
        assert body["attention"] is None
        assert "attention_unavailable" in body["warnings"]
    assert answer(client, [("i1", 30), ("i12", 3), ("i4", 1)])["items"] == body["items"]
    assert_says_when(method, open_predictor(outcome.bundle))


@pytest.mark.parametrize("method", zoo.METHODS)
def test_extreme_times_give_finite_numbers(method: str, tmp_path: Path) -> None:
    outcome = train(zoo.recipe(method), AWKWARD, ITEMS, tmp_path, progress=SilentProgress())
    assert_finite(outcome)
    predictor = open_predictor(outcome.bundle)
    at = tiny.FIRST_AT
    single = (Event("i1", at),)
    at_once = tuple(Event(f"i{n}", at) for n in range(5))
    decades = (Event("i1", at - 40 * YEAR), Event("i2", at))
    for history in (single, at_once, decades):
        for wait in (0, 1, YEAR, 80 * YEAR):
            query = Query(history, at + wait)
            found = predictor.recommend(query, NOTHING_EXCLUDED, explain=True)
            assert all(math.isfinite(item.score) for item in found.items)
            if found.attention is not None:
                assert all(math.isfinite(weight) for weight in found.attention.weights)


def answer(client: Client, happened: list[tuple[str, float]]) -> dict:  # type: ignore[type-arg]
    """The service's answer to a history of items and how many days ago they were met."""
    history = [
        {
            "item_id": item_id,
            "timestamp": to_datetime(int(tiny.LAST_AT - days * tiny.DAY)).isoformat(),
        }
        for item_id, days in happened
    ]
    response = client.post(
        "/v1/recommendations",
        {
            "history": history,
            "query_time": to_datetime(tiny.LAST_AT).isoformat(),
            "explain": "attention",
            "n": 5,
        },
    )
    assert response.status_code == 200, response.text
    return response.json()  # type: ignore[no-any-return]


def assert_finite(outcome: Outcome) -> None:
    for row in outcome.report.rows.values():
        assert all(math.isfinite(value) for value in row.values())
    assert all(math.isfinite(epoch.loss) for epoch in outcome.epochs)


def assert_says_when(method: str, predictor: Predictor) -> None:
    query = Query((Event("i1", tiny.FIRST_AT),), tiny.FIRST_AT)
    next_time = predictor.encode(query, predictor.look_up_history(query)).next_time
    assert (next_time is not None) == (method in zoo.PREDICTS_NEXT_TIME)
    assert predictor.bundle.recommender.encoder.predicts_next_time == (
        method in zoo.PREDICTS_NEXT_TIME
    )
    if next_time is not None:
        assert float(next_time.quantile(0.5)) > 0
