"""Ids with slashes in paths."""

import pytest

from tests.app.client import Client, problem

EVENT = {"timestamp": "2026-01-31T12:00:00Z", "action": "view"}


@pytest.mark.parametrize("item_id", ["a/similar", "a/popularity", "b/c/similar", "/similar"])
@pytest.mark.parametrize("slash", ["%2F", "%2f"])
def test_an_encoded_slash_belongs_to_an_item_id(
    shared_client: Client, item_id: str, slash: str
) -> None:
    path = f"/v1/items/{item_id.replace('/', slash)}"
    assert shared_client.get(path).json()["code"] == "item_not_found"
    stored = shared_client.put("/v1/items", {"items": [{"item_id": item_id, "title": "Stored"}]})
    assert stored.status_code == 200
    assert shared_client.get(path).json()["item_id"] == item_id
    assert shared_client.get(f"{path}/popularity").json()["item_id"] == item_id
    assert shared_client.request("DELETE", path).status_code == 204
    assert shared_client.get(path).status_code == 404


@pytest.mark.parametrize("user_id", ["a/recommendations", "a/next-time", "b/c/next-time"])
def test_an_encoded_slash_belongs_to_a_user_id(shared_client: Client, user_id: str) -> None:
    events = [{"user_id": user_id, "item_id": "i1", **EVENT}]
    assert shared_client.post("/v1/events", {"events": events}).status_code == 200
    path = f"/v1/users/{user_id.replace('/', '%2F')}"
    history = shared_client.get(path).json()
    assert [event["item_id"] for event in history["events"]] == ["i1"]
    answer = shared_client.get(f"{path}/recommendations?n=1").json()
    assert answer["history_used"] == 1
    assert shared_client.request("DELETE", path).json()["deleted_events"] == 1


def test_a_plain_slash_always_separates_resources(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "a/similar"}, {"item_id": "a/b"}]})
    assert "items" in client.get("/v1/items/i1/similar").json()
    assert client.get("/v1/items/a/similar").json()["code"] == "item_not_found"
    detail = problem(client.get("/v1/items/a/b"), 404, "not_found")["detail"]
    assert "'/v1/items/a/b'" in detail
    assert "%2F" in detail
    assert client.get("/v1/items/a%2Fb").json()["item_id"] == "a/b"


@pytest.mark.parametrize("path", ["u/recommendations", "u/next-time", "u/events", "u/", "/u"])
@pytest.mark.parametrize(("start", "user"), [("/v1/users/", "u1"), ("/v1/%75sers/", "u2")])
def test_a_path_below_a_user_erases_nobody(
    shared_client: Client, start: str, user: str, path: str
) -> None:
    path = path.replace("u", user, 1)
    events = [{"user_id": path, "item_id": "i1", **EVENT}]
    assert shared_client.post("/v1/events", {"events": events}).json()["accepted"] == 1
    assert shared_client.request("DELETE", start + path).status_code in {404, 405}
    encoded = start + path.replace("/", "%2F")
    assert len(shared_client.get(encoded).json()["events"]) == 1
    assert shared_client.request("DELETE", encoded).json()["deleted_events"] == 1


def test_only_slashes_of_the_id_are_kept_apart(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "a"}]})
    assert client.get("/v1/items%2Fa").json()["item_id"] == "a"


def test_an_id_with_percent_signs_and_slashes_is_decoded_once(client: Client) -> None:
    client.put("/v1/items", {"items": [{"item_id": "ü%2F/é"}]})
    assert client.get("/v1/items/%C3%BC%252F%2F%C3%A9").json()["item_id"] == "ü%2F/é"
    problem(client.get("/v1/items/%C3%BC%252F/%C3%A9"), 404, "not_found")


def test_a_version_contains_no_encoded_slash(shared_client: Client) -> None:
    problem(shared_client.get("/v1/models/a%2Fb"), 404, "not_found")
    problem(shared_client.put("/v1/models/a%2Fb"), 404, "not_found")
    response = shared_client.get("/v1/models/a%252Fb")
    assert "a%2Fb" in problem(response, 404, "model_not_found")["detail"]
