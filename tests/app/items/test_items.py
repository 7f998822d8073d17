"""GET and PUT /v1/items, on both databases."""

from typing import Any

import pytest

from tests.app.client import Client


def put(client: Client, *items: dict[str, Any]) -> None:
    response = client.put("/v1/items", {"items": list(items)})
    assert response.status_code == 200, response.text
    assert response.json() == {"stored": len({item["item_id"] for item in items})}


def titles(client: Client, **query: str) -> list[str]:
    return [item["title"] for item in client.get("/v1/items", params=query).json()["items"]]


def test_an_item_reads_back_as_it_was_stored(client_on_either: Client) -> None:
    item = {
        "item_id": "a/b?c#d",
        "title": "Ein <b>Titel</b>",
        "categories": ["x", "ü"],
        "available_from": "2026-01-01T00:00:00Z",
        "available_until": None,
        "properties": {"pages": 3},
    }
    put(client_on_either, item)
    answer = client_on_either.get("/v1/items/a%2Fb%3Fc%23d").json()
    assert answer.pop("updated_at").endswith("Z")
    assert answer == item


def test_storing_an_item_again_replaces_all_of_it(client_on_either: Client) -> None:
    put(client_on_either, {"item_id": "a", "title": "Old", "properties": {"x": 1}})
    put(client_on_either, {"item_id": "a", "categories": ["new"]})
    answer = client_on_either.get("/v1/items/a").json()
    assert (answer["title"], answer["properties"], answer["categories"]) == (None, None, ["new"])


def test_a_repeated_category_is_stored_once(client_on_either: Client) -> None:
    put(client_on_either, {"item_id": "a", "categories": ["x", "b", "x", "a", "b"]})
    assert client_on_either.get("/v1/items/a").json()["categories"] == ["x", "b", "a"]


def test_of_equal_items_in_one_request_the_last_wins(client_on_either: Client) -> None:
    put(client_on_either, {"item_id": "a", "title": "One"}, {"item_id": "a", "title": "Two"})
    assert titles(client_on_either) == ["Two"]


def test_pages_follow_each_other_in_code_point_order(client_on_either: Client) -> None:
    names = ["a", "B", "Ä", "z", "_", "10", "9", "🦊", "é"]
    put(client_on_either, *({"item_id": name} for name in names))
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = client_on_either.get("/v1/items", params=query).json()
        seen += [item["item_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == sorted(names)


@pytest.mark.parametrize("cursor", ["!", "AA", "_w", "é", "a" * 1401])
def test_a_foreign_cursor_is_refused(shared_client: Client, cursor: str) -> None:
    assert shared_client.get("/v1/items", params={"cursor": cursor}).status_code == 422


def test_titles_are_searched_in_any_case_and_any_script(client_on_either: Client) -> None:
    put(
        client_on_either,
        {"item_id": "1", "title": "Der STRAẞENFEGER"},
        {"item_id": "2", "title": "Война и мир"},
        {"item_id": "3", "title": "100% wolf_man \\o/"},
        {"item_id": "4"},
    )
    assert titles(client_on_either, q="straßenf") == ["Der STRAẞENFEGER"]
    assert titles(client_on_either, q="ВОЙНА") == ["Война и мир"]
    for literal in ("0%", "f_m", "\\O"):
        assert titles(client_on_either, q=literal) == ["100% wolf_man \\o/"]
    assert titles(client_on_either, q="n%t") == []
    assert len(titles(client_on_either, q="")) == 4


def test_an_unknown_item_is_not_found(client_on_either: Client) -> None:
    response = client_on_either.get("/v1/items/nowhere%2Fto%2Fbe%2Ffound")
    assert response.status_code == 404
    assert response.json()["code"] == "item_not_found"
    assert "'nowhere/to/be/found'" in response.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/items/%00", "/v1/items/" + "x" * 257, "/v1/items/"])
def test_a_path_with_an_invalid_id_is_refused(shared_client: Client, path: str) -> None:
    assert shared_client.get(path).status_code == 422


def test_a_bad_item_refuses_the_batch(client: Client) -> None:
    items = [{"item_id": "a"}, {"item_id": "b", "title": "x\0"}]
    response = client.put("/v1/items", {"items": items})
    assert response.status_code == 422
    assert response.json()["errors"][0]["where"] == "#/items/1/title"
    assert client.get("/v1/items/a").status_code == 404


def test_an_item_ceases_to_be_available_after_it_began(client: Client) -> None:
    reversed_item = {"item_id": "b", "available_from": 20, "available_until": 10}
    response = client.put("/v1/items", {"items": [{"item_id": "a"}, reversed_item]})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["where"] == "#/items/1"
    assert "available_until must not be before available_from" in error["message"]
    put(client, {"item_id": "b", "available_from": 20, "available_until": 20})


def test_a_request_stores_at_most_a_thousand_items(
    client_on_either: Client,
) -> None:
    items = [{"item_id": str(number)} for number in range(1001)]
    assert client_on_either.put("/v1/items", {"items": items}).status_code == 422
    put(client_on_either, *items[:1000])
