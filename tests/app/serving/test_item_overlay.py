"""Live item data over the model's catalog, and its effect on recommendations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DatabaseUnavailableError
from app.http.types import format_instant
from app.serving.item_overlay import (
    ItemChanges,
    ItemOverlay,
    ItemOverlayView,
    LastChange,
    Mask,
    OverlaidItem,
)
from app.settings import Settings
from model.catalog import Catalog
from tests.app.client import Client, running
from tests.app.tiny_bundle import FIRST_AT, HOUR, ITEM_IDS
from tests.processes import eventually

AT = FIRST_AT + 100 * HOUR


@pytest.fixture
def two(settings: Settings, migrated_database_url: str) -> Iterator[tuple[Client, Client]]:
    """Two services on one database, of each kind."""
    settings = settings.model_copy(update={"database_url": migrated_database_url})
    with running(settings) as one, running(settings) as other:
        yield one, other


def recommend_items(client: Client, **changed: Any) -> dict[str, dict[str, Any]]:
    """Recommends every item; returns them by id."""
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


def put_item(client: Client, item_id: str, **fields: Any) -> None:
    item = {"item_id": item_id, **fields}
    assert client.put("/v1/items", {"items": [item]}).status_code == 200


def delete_item(client: Client, item_id: str) -> None:
    assert client.request("DELETE", f"/v1/items/{item_id}").status_code == 204


def test_every_process_returns_the_stored_title(
    two: tuple[Client, Client],
) -> None:
    one, other = two
    assert recommend_items(one)["i3"]["title"] == "Item 3"
    put_item(one, "i3", title="Renamed")
    assert recommend_items(one)["i3"]["title"] == "Renamed"
    eventually(lambda: recommend_items(other)["i3"]["title"] == "Renamed")


def test_stored_categories_replace_those_of_the_catalog(two: tuple[Client, Client]) -> None:
    one, other = two
    on_sale = {"categories": {"any": ["sale"]}}
    assert recommend_items(one, **on_sale) == {}
    put_item(one, "i3", title="Item 3", categories=["sale"])
    assert recommend_items(one, **on_sale).keys() == {"i3"}
    assert "i3" not in recommend_items(one, categories={"any": ["odd"]})
    eventually(lambda: recommend_items(other, **on_sale).keys() == {"i3"})


@pytest.mark.parametrize(
    ("window", "is_recommended"),
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
    client: Client, window: Mapping[str, int], is_recommended: bool
) -> None:
    put_item(client, "i3", title="3", **{bound: format_instant(at) for bound, at in window.items()})
    assert ("i3" in recommend_items(client)) == is_recommended
    assert "i3" in recommend_items(client, available_only=False)
    assert len(recommend_items(client)) == len(ITEM_IDS) - (not is_recommended)


def test_a_window_applies_to_the_query_time_not_the_clock(client: Client) -> None:
    put_item(
        client,
        "i3",
        title="3",
        available_from=format_instant(AT),
        available_until=format_instant(AT + HOUR),
    )
    assert [
        "i3" in recommend_items(client, query_time=format_instant(AT + hours * HOUR))
        for hours in (-1, 0, 1)
    ] == [False, True, False]


def test_a_deleted_item_disappears_in_every_process(
    two: tuple[Client, Client],
) -> None:
    one, other = two
    put_item(one, "i3", title="3")
    put_item(one, "i4", title="4")
    eventually(lambda: recommend_items(other)["i3"]["title"] == "3")
    delete_item(one, "i3")
    selections: tuple[dict[str, Any], ...] = (
        {},
        {"available_only": False},
        {"include_item_ids": ["i3", "i4"]},
        {"categories": {"none": ["even"]}},
        {"history": [], "strict": False},
    )
    for selection in selections:
        assert "i3" not in recommend_items(one, **selection), selection
    assert "i4" in recommend_items(one, include_item_ids=["i3", "i4"])
    eventually(lambda: "i3" not in recommend_items(other))
    for selection in selections:
        assert "i3" not in recommend_items(other, **selection), selection
    assert other.get("/v1/items/i3").status_code == 404


def test_an_item_stored_again_returns_in_every_process(two: tuple[Client, Client]) -> None:
    one, other = two
    put_item(one, "i3", title="3")
    delete_item(one, "i3")
    eventually(lambda: "i3" not in recommend_items(other))
    put_item(other, "i3", title="Back")
    assert recommend_items(other)["i3"]["title"] == "Back"
    eventually(lambda: "i3" in recommend_items(one))


def test_a_process_that_starts_later_reads_deletions(settings: Settings, database_url: str) -> None:
    settings = settings.model_copy(update={"database_url": database_url})
    with running(settings) as client:
        put_item(client, "i3", title="3")
        delete_item(client, "i3")
    with running(settings) as later:
        assert "i3" not in recommend_items(later)


def build_catalog() -> Catalog:
    ones = np.ones(3, dtype=np.int64)
    return Catalog(
        item_ids=("a", "b", "c"),
        titles=("A", None, "C"),
        categories=(("x",), ("x", "y"), ()),
        popularity=ones,
        recent_popularity=ones,
    )


def build_item(item_id: str, **changed: Any) -> OverlaidItem:
    fields: dict[str, Any] = {
        "title": None,
        "categories": (),
        "available_from": None,
        "available_until": None,
        "is_deleted": False,
    }
    return OverlaidItem(item_id=item_id, **(fields | changed))


def rows(mask: Mask | None) -> list[int]:
    assert mask is not None
    return np.flatnonzero(mask).tolist()


def test_without_a_filter_there_is_no_mask() -> None:
    view = ItemOverlayView(build_catalog(), {"b": build_item("b", title="B")})
    assert view.select_allowed(0) is None
    assert [view.title(row) for row in (1, 2, 3)] == ["A", "B", "C"]


def test_any_selects_categories_and_none_excludes_them() -> None:
    view = ItemOverlayView(build_catalog(), {})
    assert rows(view.select_allowed(0, any_categories=["x"])) == [1, 2]
    assert rows(view.select_allowed(0, any_categories=["y", "x"])) == [1, 2]
    assert rows(view.select_allowed(0, no_categories=["y"])) == [1, 3]
    assert rows(view.select_allowed(0, any_categories=["x"], no_categories=["y"])) == [1]
    assert rows(view.select_allowed(0, any_categories=["nowhere"])) == []


def test_an_item_leaves_a_category_that_was_listed_twice() -> None:
    repeated = build_item("c", categories=("z", "z"))
    catalog = replace(build_catalog(), categories=(("x", "y", "x"), ("x",), ()))
    view = ItemOverlayView(catalog, {"c": repeated})
    stored = {"a": build_item("a", categories=("y",)), "c": build_item("c", categories=("x",))}
    moved = view.replace(stored, stored)
    assert rows(moved.select_allowed(0, any_categories=["x"])) == [2, 3]
    assert rows(moved.select_allowed(0, no_categories=["x"])) == [1]
    assert rows(moved.select_allowed(0, any_categories=["z"])) == []


def test_changes_of_titles_alone_copy_no_categories() -> None:
    view = ItemOverlayView(build_catalog(), {})
    renamed = view.replace({"a": build_item("a", title="New", categories=("x",))}, ["a"])
    assert renamed.title(1) == "New"
    assert renamed._by_category is view._by_category


def test_the_padding_row_is_never_allowed() -> None:
    view = ItemOverlayView(build_catalog(), {"a": build_item("a", is_deleted=True)})
    assert rows(view.select_allowed(0)) == [2, 3]


def apply(overlay: ItemOverlay, number: int, *items: OverlaidItem, is_complete: bool) -> None:
    assert overlay.apply(ItemChanges(LastChange(number, 0), items, is_complete, overlay.generation))


def test_unchanged_items_leave_the_views_as_they_are() -> None:
    overlay = ItemOverlay(lambda _: [])
    overlay.add_catalog("v", build_catalog())
    apply(overlay, 1, build_item("a", title="New"), is_complete=True)
    view = overlay.get_view("v", build_catalog())
    assert view.title(1) == "New"
    apply(overlay, 2, build_item("a", title="New"), is_complete=False)
    assert overlay.get_view("v", build_catalog()) is view
    assert overlay.last_change == LastChange(2, 0)


def test_an_item_missing_among_all_items_is_forgotten() -> None:
    overlay = ItemOverlay(lambda _: [])
    overlay.add_catalog("v", build_catalog())
    both = build_item("a", title="New"), build_item("c", is_deleted=True)
    apply(overlay, 9, *both, is_complete=True)
    apply(overlay, 5, build_item("b", title="B"), is_complete=True)
    view = overlay.get_view("v", build_catalog())
    assert [view.title(row) for row in (1, 2, 3)] == ["A", "B", "C"]
    assert view.select_allowed(0) is None


def test_a_view_is_rebuilt_after_an_item_changes() -> None:
    overlay = ItemOverlay(lambda _: [])
    overlay.add_catalog("v", build_catalog())
    before = overlay.get_view("v", build_catalog())
    changed = build_item("a", title="Renamed"), build_item("elsewhere")
    apply(overlay, 1, *changed, is_complete=False)
    assert (before.title(1), overlay.get_view("v", build_catalog()).title(1)) == ("A", "Renamed")


def test_a_dropped_view_is_rebuilt_on_request() -> None:
    overlay = ItemOverlay(lambda _: [])
    overlay.add_catalog("v", build_catalog())
    apply(overlay, 1, build_item("a", title="Renamed"), is_complete=False)
    overlay.retain_versions([])
    assert overlay.get_view("v", build_catalog()).title(1) == "Renamed"


def test_items_that_no_open_model_has_are_not_kept() -> None:
    overlay = ItemOverlay(lambda _: [])
    overlay.add_catalog("v", build_catalog())
    apply(overlay, 1, build_item("a"), build_item("elsewhere"), is_complete=True)
    apply(overlay, 2, build_item("nowhere", is_deleted=True), is_complete=False)
    assert overlay._items.keys() == {"a"}
    overlay.retain_versions([])
    overlay.add_catalog("w", replace(build_catalog(), item_ids=("x", "y", "z")))
    assert overlay._items == {}


def test_the_items_of_an_opened_model_are_read() -> None:
    requested: list[list[str]] = []

    def read(item_ids: Sequence[str]) -> list[OverlaidItem]:
        requested.append(list(item_ids))
        return [build_item("z", title="Z")] if "z" in item_ids else []

    overlay = ItemOverlay(read)
    overlay.add_catalog("v", build_catalog())
    apply(overlay, 1, build_item("c", title="New"), is_complete=True)
    second = replace(build_catalog(), item_ids=("c", "y", "z"))
    overlay.add_catalog("w", second)
    view = overlay.get_view("w", second)
    assert requested == [["a", "b", "c"], ["y", "z"]]
    assert [view.title(row) for row in (1, 2, 3)] == ["New", None, "Z"]


def test_what_was_read_before_a_model_was_opened_is_read_again() -> None:
    overlay = ItemOverlay(lambda _: [])
    before = overlay.generation
    overlay.add_catalog("v", build_catalog())
    changes = ItemChanges(LastChange(1, 0), [build_item("a")], is_complete=True, generation=before)
    assert not overlay.apply(changes)
    assert overlay.last_change is None


def test_after_a_failed_read_all_items_are_read() -> None:
    def fail(_: Sequence[str]) -> list[OverlaidItem]:
        raise DatabaseUnavailableError("the database must answer, but has not")

    overlay = ItemOverlay(fail)
    apply(overlay, 1, is_complete=True)
    overlay.add_catalog("v", build_catalog())
    assert overlay.last_change is None


instants = st.none() | st.integers(0, 9)
some_items = st.dictionaries(
    st.sampled_from("abcdefx"),
    st.tuples(
        st.none() | st.just("New"),
        st.lists(st.sampled_from("xyz"), max_size=4).map(tuple),
        instants,
        instants,
        st.booleans(),
    ),
)


@given(some_items, some_items, st.integers(0, 9), st.sampled_from(("", "x", "z")))
def test_a_view_with_replaced_items_equals_a_new_one(
    before: dict[str, Any], after: dict[str, Any], at: int, category: str
) -> None:
    ones = np.ones(6, dtype=np.int64)
    categories = (("x",), ("x", "y"), (), ("z", "z"), ("y",), ("x", "z", "x"))
    catalog = Catalog(tuple("abcdef"), (None,) * 6, categories, ones, ones)
    first, second = (
        {item_id: OverlaidItem(item_id, *fields) for item_id, fields in items.items()}
        for items in (before, after)
    )
    changed = {it for it in first.keys() | second.keys() if first.get(it) != second.get(it)}
    view = ItemOverlayView(catalog, first)
    untouched = [view.categories(row) for row in range(1, 7)], view.select_allowed(at)
    replaced, new = view.replace(second, changed), ItemOverlayView(catalog, second)
    chosen = [category] if category else []
    for filters in ({"any_categories": chosen}, {"no_categories": chosen}):
        masks = [each.select_allowed(at, **filters) for each in (replaced, new)]
        everything = np.array([False] + 6 * [True])
        assert np.array_equal(*(everything if mask is None else mask for mask in masks))
    for row in range(1, 7):
        assert (replaced.title(row), replaced.categories(row)) == (
            new.title(row),
            new.categories(row),
        )
    again = [view.categories(row) for row in range(1, 7)], view.select_allowed(at)
    assert str(again) == str(untouched)
