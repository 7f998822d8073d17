"""What is known of items right now, and that recommendations follow it at once."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from app.http.types import format_instant
from app.serving.item_overlay import ItemOverlay, ItemOverlayView, Mask, OverlaidItem
from app.settings import Settings
from model.catalog import Catalog
from tests.app.client import Client, running
from tests.app.tiny_bundle import FIRST_AT, HOUR, ITEM_IDS
from tests.processes import eventually

AT = FIRST_AT + 100 * HOUR


@pytest.fixture
def two(settings: Settings, migrated_database_url: str) -> Iterator[tuple[Client, Client]]:
    """Two processes' worth of service on one database, either in turn."""
    settings = settings.model_copy(update={"database_url": migrated_database_url})
    with running(settings) as one, running(settings) as other:
        yield one, other


def recommended(client: Client, **changed: Any) -> dict[str, dict[str, Any]]:
    """Every item that is answered, by id."""
    request = {
        "history": [{"item_id": "i1", "timestamp": format_instant(FIRST_AT)}],
        "query_time": format_instant(AT),
        "n": len(ITEM_IDS),
        "exclude_seen": False,
        **changed,
    }
    response = client.post("/v1/recommendations", request)
    assert response.status_code == 200, response.text
    return {item["item_id"]: item for item in response.json()["items"]}


def put(client: Client, item_id: str, **described: Any) -> None:
    item = {"item_id": item_id, **described}
    assert client.put("/v1/items", {"items": [item]}).status_code == 200


def delete(client: Client, item_id: str) -> None:
    assert client.request("DELETE", f"/v1/items/{item_id}").status_code == 204


def test_every_process_returns_the_stored_title(
    two: tuple[Client, Client],
) -> None:
    one, other = two
    assert recommended(one)["i3"]["title"] == "Item 3"
    put(one, "i3", title="Renamed")
    assert recommended(one)["i3"]["title"] == "Renamed"
    eventually(lambda: recommended(other)["i3"]["title"] == "Renamed")


def test_stored_categories_replace_those_of_the_catalogue(two: tuple[Client, Client]) -> None:
    one, other = two
    sold = {"categories": {"any": ["sale"]}}
    assert recommended(one, **sold) == {}
    put(one, "i3", title="Item 3", categories=["sale"])
    assert recommended(one, **sold).keys() == {"i3"}
    assert "i3" not in recommended(one, categories={"any": ["odd"]})
    eventually(lambda: recommended(other, **sold).keys() == {"i3"})


@pytest.mark.parametrize(
    ("window", "is_answered"),
    [
        ({"available_from": AT}, True),
        ({"available_from": AT + 1}, False),
        ({"available_until": AT + 1}, True),
        ({"available_until": AT}, False),
        ({"available_from": AT - 1, "available_until": AT + 1}, True),
        ({"available_from": AT + 1, "available_until": AT + 2}, False),
        ({}, True),
    ],
)
def test_an_item_is_recommended_only_within_its_window(
    client: Client, window: Mapping[str, int], is_answered: bool
) -> None:
    put(client, "i3", title="3", **{bound: format_instant(at) for bound, at in window.items()})
    assert ("i3" in recommended(client)) == is_answered
    assert "i3" in recommended(client, available_only=False)
    assert len(recommended(client)) == len(ITEM_IDS) - (not is_answered)


def test_a_window_applies_to_the_query_time_not_the_clock(client: Client) -> None:
    put(
        client,
        "i3",
        title="3",
        available_from=format_instant(AT),
        available_until=format_instant(AT + HOUR),
    )
    assert [
        "i3" in recommended(client, query_time=format_instant(AT + hours * HOUR))
        for hours in (-1, 0, 1)
    ] == [False, True, False]


def test_a_deleted_item_disappears_in_every_process(
    two: tuple[Client, Client],
) -> None:
    one, other = two
    put(one, "i3", title="3")
    put(one, "i4", title="4")
    eventually(lambda: recommended(other)["i3"]["title"] == "3")
    delete(one, "i3")
    ways: tuple[dict[str, Any], ...] = (
        {},
        {"available_only": False},
        {"include_item_ids": ["i3", "i4"]},
        {"categories": {"none": ["even"]}},
        {"history": [], "strict": False},
    )
    for way in ways:
        assert "i3" not in recommended(one, **way), way
    assert "i4" in recommended(one, include_item_ids=["i3", "i4"])
    eventually(lambda: "i3" not in recommended(other))
    for way in ways:
        assert "i3" not in recommended(other, **way), way
    assert other.get("/v1/items/i3").status_code == 404


def test_an_item_stored_again_returns_in_every_process(two: tuple[Client, Client]) -> None:
    one, other = two
    put(one, "i3", title="3")
    delete(one, "i3")
    eventually(lambda: "i3" not in recommended(other))
    put(other, "i3", title="Back")
    assert recommended(other)["i3"]["title"] == "Back"
    eventually(lambda: "i3" in recommended(one))


def test_a_process_that_starts_later_reads_deletions(settings: Settings, database_url: str) -> None:
    settings = settings.model_copy(update={"database_url": database_url})
    with running(settings) as client:
        put(client, "i3", title="3")
        delete(client, "i3")
    with running(settings) as later:
        assert "i3" not in recommended(later)


def catalog() -> Catalog:
    ones = np.ones(3, dtype=np.int64)
    return Catalog(
        item_ids=("a", "b", "c"),
        titles=("A", None, "C"),
        categories=(("x",), ("x", "y"), ()),
        popularity=ones,
        recent_popularity=ones,
    )


def overlaid(item_id: str, **changed: Any) -> OverlaidItem:
    described: dict[str, Any] = {
        "title": None,
        "categories": (),
        "available_from": None,
        "available_until": None,
        "is_deleted": False,
        "updated_at": 1,
    }
    return OverlaidItem(item_id=item_id, **(described | changed))


def rows(mask: Mask | None) -> list[int]:
    assert mask is not None
    return np.flatnonzero(mask).tolist()


def test_without_a_filter_there_is_no_mask() -> None:
    view = ItemOverlayView(catalog(), {"b": overlaid("b", title="B")})
    assert view.allowed(0) is None
    assert [view.title(row) for row in (1, 2, 3)] == ["A", "B", "C"]


def test_categories_are_joined_by_any_and_cut_by_none() -> None:
    view = ItemOverlayView(catalog(), {})
    assert rows(view.allowed(0, any_categories=["x"])) == [1, 2]
    assert rows(view.allowed(0, any_categories=["y", "x"])) == [1, 2]
    assert rows(view.allowed(0, no_categories=["y"])) == [1, 3]
    assert rows(view.allowed(0, any_categories=["x"], no_categories=["y"])) == [1]
    assert rows(view.allowed(0, any_categories=["nowhere"])) == []


def test_the_padding_row_is_never_allowed() -> None:
    view = ItemOverlayView(catalog(), {"a": overlaid("a", is_deleted=True)})
    assert rows(view.allowed(0)) == [2, 3]


def test_items_that_are_read_again_are_not_new() -> None:
    overlay = ItemOverlay()
    assert overlay.put([overlaid("a", title="New", updated_at=7)])
    assert not overlay.put([overlaid("a", title="New", updated_at=7)])
    assert overlay.latest_update == 7
    assert overlay.view("v", catalog()).title(1) == "New"


def test_a_view_is_rebuilt_after_an_item_changes() -> None:
    overlay = ItemOverlay()
    overlay.add_catalog("v", catalog())
    before = overlay.view("v", catalog())
    overlay.put([overlaid("a", title="Renamed"), overlaid("elsewhere")])
    assert (before.title(1), overlay.view("v", catalog()).title(1)) == ("A", "Renamed")


def test_a_dropped_view_is_rebuilt_on_request() -> None:
    overlay = ItemOverlay()
    overlay.add_catalog("v", catalog())
    overlay.retain_versions([])
    overlay.put([overlaid("a", title="Renamed")])
    assert overlay.view("v", catalog()).title(1) == "Renamed"
