"""GET /v1/models/{version}/map."""

from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model.encoders.popularity import PopularityConfig
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client, problem, running


@pytest.fixture
def version(bundle_store: Path) -> str:
    current = BundleStore(bundle_store).read_current()
    assert current is not None
    return current


def read_map(client: Client, version: str, **query: Any) -> dict[str, Any]:
    response = client.get(f"/v1/models/{version}/map", params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_items_have_the_coordinates_of_the_item_map(
    client: Client, version: str, bundle_store: Path
) -> None:
    answer = read_map(client, version)
    item_map = BundleStore(bundle_store).open(version).item_map
    assert (answer["model_version"], answer["method"]) == (version, "pca")
    assert [item["item_id"] for item in answer["items"]] == [*tiny_bundle.ITEM_IDS]
    assert [item["events"] for item in answer["items"]] == [*range(20, 0, -1)]
    points = [[item["x"], item["y"]] for item in answer["items"]]
    assert points == [pytest.approx(point, abs=1e-6) for point in item_map.points.tolist()]
    assert answer["explained"] == pytest.approx(item_map.explained)


def test_fewer_items_keep_their_positions(client: Client, version: str) -> None:
    assert read_map(client, version, items=3)["items"] == read_map(client, version)["items"][:3]


def test_the_map_follows_stored_titles_and_deletions(client: Client, version: str) -> None:
    before = {item["item_id"]: item for item in read_map(client, version)["items"]}
    client.put(
        "/v1/items",
        {
            "items": [
                {"item_id": "i0", "title": "Neu", "categories": ["x"]},
                {"item_id": "i1", "available_until": 0},
                {"item_id": "i2"},
            ]
        },
    )
    client.request("DELETE", "/v1/items/i2")
    after = {item["item_id"]: item for item in read_map(client, version)["items"]}
    assert before.keys() - after.keys() == {"i2"}
    assert after["i0"] == {**before["i0"], "title": "Neu", "categories": ["x"]}
    assert (after["i1"]["x"], after["i1"]["y"]) == (before["i1"]["x"], before["i1"]["y"])


def test_the_map_of_any_version_is_returned(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    with running(settings) as client:
        assert read_map(client, other)["model_version"] == other


def test_a_version_that_is_not_published_is_not_found(shared_client: Client) -> None:
    problem(shared_client.get("/v1/models/none/map"), 404, "model_not_found")


def test_a_damaged_version_is_refused(settings: Settings, bundle_store: Path) -> None:
    damaged = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    tiny_bundle.damage(bundle_store, damaged)
    with running(settings) as client:
        problem(client.get(f"/v1/models/{damaged}/map"), 409, "model_refused")


def test_a_model_without_item_vectors_is_a_conflict(settings: Settings, tmp_path: Path) -> None:
    store = tmp_path / "popular"
    version = tiny_bundle.publish(store, seed=1, encoder=PopularityConfig())
    with running(settings.model_copy(update={"bundle_store": store})) as client:
        problem(client.get(f"/v1/models/{version}/map"), 409, "no_item_space")


@pytest.mark.parametrize("items", ["0", "10001", "x", ""])
def test_a_query_that_breaks_a_rule_is_refused(client: Client, version: str, items: str) -> None:
    response = client.get(f"/v1/models/{version}/map?items={items}")
    error = problem(response, 422, "validation_failed")
    assert error["errors"][0]["where"] == "query.items"
