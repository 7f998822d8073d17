"""GET /v1/items/{item_id}/similar."""

from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from model.encoders.popularity import PopularityConfig
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client, problem, running


def similar(client: Client, item_id: str, **query: Any) -> dict[str, Any]:
    response = client.get(f"/v1/items/{item_id}/similar", params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_similarities_equal_those_of_the_bundle(client: Client, bundle_store: Path) -> None:
    answer = similar(client, "i3", n=4)
    predictor = BundleStore(bundle_store).open()
    expected = predictor.find_similar("i3", 4)
    assert (answer["item_id"], answer["model_version"]) == ("i3", predictor.version)
    assert [(item["item_id"], item["rank"]) for item in answer["items"]] == [
        (item.item_id, rank) for rank, item in enumerate(expected, start=1)
    ]
    assert [item["score"] for item in answer["items"]] == pytest.approx(
        [item.score for item in expected]
    )
    scores = [item["score"] for item in answer["items"]]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)


def test_an_item_is_not_similar_to_itself(shared_client: Client) -> None:
    found = [item["item_id"] for item in similar(shared_client, "i3", n=500)["items"]]
    assert len(found) == 19
    assert "i3" not in found


def test_stored_titles_apply_and_deleted_items_are_excluded(client: Client) -> None:
    first, second, third = (item["item_id"] for item in similar(client, "i3", n=3)["items"])
    client.put(
        "/v1/items",
        {
            "items": [
                {"item_id": first, "title": "Neu", "categories": ["x"]},
                {"item_id": second, "available_until": 0},
                {"item_id": third},
            ]
        },
    )
    client.request("DELETE", f"/v1/items/{third}")
    found = similar(client, "i3", n=500)["items"]
    assert (found[0]["title"], found[0]["categories"]) == ("Neu", ["x"])
    assert not {second, third} & {item["item_id"] for item in found}


def test_an_unknown_item_is_not_found(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "new/one"}]})
    detail = problem(client.get("/v1/items/new%2Fone/similar"), 404, "item_not_found")["detail"]
    assert "'new/one'" in detail


def test_a_model_without_item_vectors_is_409(settings: Settings, tmp_path: Path) -> None:
    tiny_bundle.publish(tmp_path / "popular", seed=1, encoder=PopularityConfig())
    with running(settings.model_copy(update={"bundle_store": tmp_path / "popular"})) as client:
        problem(client.get("/v1/items/i3/similar"), 409, "no_item_space")


def test_a_version_can_be_requested(settings: Settings, bundle_store: Path) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    with running(settings) as client:
        assert similar(client, "i3", model_version=other)["model_version"] == other
        missing = client.get("/v1/items/i3/similar?model_version=none")
        problem(missing, 404, "model_not_found")


@pytest.mark.parametrize("query", ["n=0", "n=501", "n=x", "model_version="])
def test_a_query_that_breaks_a_rule_is_refused(shared_client: Client, query: str) -> None:
    error = problem(shared_client.get(f"/v1/items/i3/similar?{query}"), 422, "validation_failed")
    assert error["errors"][0]["where"] == "query." + query.partition("=")[0]
