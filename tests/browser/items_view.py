"""What tests of the Items page read: its items, points and lists."""

from typing import Any
from urllib.parse import quote

from playwright.sync_api import Locator, Page

from tests.browser.dashboard import Dashboard

VIEW = "items.html"
POPULAR = "sku-0001"
"""An article of the demo with events in most weeks."""
MARKED = 3
"""The last traces of the map: around the items found, the similar ones, and the chosen one."""
DENSITY = 4
"""The first traces of the map: the levels of the shading."""


def open_item(dashboard: Dashboard, item_id: str, **state: str) -> None:
    """Open an item by a link, with a small map unless `state` has another size."""
    values = {"item": item_id, "items": "100", **state}
    fields = "&".join(f"{name}={quote(value)}" for name, value in values.items())
    dashboard.open(f"#{fields}", view=VIEW)


def served(dashboard: Dashboard) -> dict[str, Any]:
    """The version that serves."""
    (model,) = [one for one in dashboard.api("/v1/models")["models"] if one["is_serving"]]
    return dict(model)


def map_of(dashboard: Dashboard, items: int = 2000) -> list[dict[str, Any]]:
    """The items of the map in the API."""
    version = served(dashboard)["version"]
    return list(dashboard.api(f"/v1/models/{version}/map?items={items}")["items"])


def drawn_points(dashboard: Dashboard) -> dict[str, set[tuple[float, float]]]:
    """The points of the map by the name of their group."""
    return {
        trace["name"]: set(zip(trace["x"], trace["y"], strict=True))
        for trace in dashboard.traces("map")[DENSITY:-MARKED]
    }


def points_of(items: list[dict[str, Any]]) -> set[tuple[float, float]]:
    return {(item["x"], item["y"]) for item in items}


def pixel(dashboard: Dashboard, item: dict[str, Any]) -> tuple[float, float]:
    """The position of an item of the map on the screen."""
    dashboard.page.locator("#map").scroll_into_view_if_needed()
    x, y = dashboard.page.evaluate(
        """({x, y}) => {
            const {_fullLayout: {xaxis, yaxis}} = document.getElementById("map");
            const frame = document.getElementById("map").getBoundingClientRect();
            return [
                frame.left + xaxis._offset + xaxis.l2p(x),
                frame.top + yaxis._offset + yaxis.l2p(y),
            ];
        }""",
        item,
    )
    return x, y


def options(page: Page) -> Locator:
    """The options of the search."""
    return page.get_by_role("listbox", name="Items").get_by_role("option")


def similar_rows(dashboard: Dashboard) -> list[Locator]:
    return dashboard.page.locator("#similar-items tr").all()
