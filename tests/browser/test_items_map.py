"""The map of the Items page: points of the API, with a colour and symbol per category."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.browser.items_view import (
    DENSITY,
    MARKED,
    POPULAR,
    VIEW,
    drawn_points,
    map_of,
    open_item,
    pixel,
    points_of,
    served,
)


@pytest.fixture(scope="module")
def map_500(browser: Browser, shop: str) -> Iterator[Dashboard]:
    """The page with a map of 500 items; tests leave all of its categories checked."""
    with watched_dashboard(browser, shop) as dashboard:
        yield dashboard.open("#items=500", view=VIEW)


def width_in_view(dashboard: Dashboard) -> float:
    low, high = dashboard.page.evaluate("document.getElementById('map').layout.xaxis.range")
    return float(high - low)


def test_the_map_has_the_points_of_the_api(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view=VIEW)
    items = map_of(shop_dashboard)
    drawn = drawn_points(shop_dashboard)
    assert set().union(*drawn.values()) == points_of(items)
    assert sum(len(points) for points in drawn.values()) == len(items) == 1000
    shop_dashboard.page.get_by_label("Items shown").select_option("500")
    shop_dashboard.settle()
    drawn = drawn_points(shop_dashboard)
    assert set().union(*drawn.values()) == points_of(map_of(shop_dashboard, 500))


def test_colour_and_symbol_show_the_first_category(map_500: Dashboard) -> None:
    items = map_of(map_500, 500)
    drawn = drawn_points(map_500)
    assert drawn["no category"] == points_of([item for item in items if not item["categories"]])
    named = set(drawn) - {"no category", "other categories"}
    assert len(named) == 16, named
    for name in named:
        expected = [
            item
            for item in items
            if next((one for one in item["categories"] if one in named), None) == name
        ]
        assert drawn[name] == points_of(expected)
    looks = [
        (trace["marker"]["color"], trace["marker"]["symbol"])
        for trace in map_500.traces("map")[DENSITY:-MARKED]
    ]
    assert len(set(looks)) == len(looks)


def test_choosing_categories_hides_the_others(map_500: Dashboard) -> None:
    items = map_of(map_500, 500)
    legend = map_500.page.locator("#categories")
    legend.get_by_role("button", name="none").click()
    legend.get_by_label("Home decoration").check()
    map_500.settle()
    # All of its items, also those with another first category.
    expected = points_of([item for item in items if "Home decoration" in item["categories"]])
    assert drawn_points(map_500) == {"Home decoration": expected}
    legend.get_by_role("button", name="all").click()
    map_500.settle()
    assert set().union(*drawn_points(map_500).values()) == points_of(items)


def test_larger_points_have_more_events(map_500: Dashboard) -> None:
    events = {(item["x"], item["y"]): item["events"] for item in map_of(map_500, 500)}
    for trace in map_500.traces("map")[DENSITY:-MARKED]:
        points = zip(trace["x"], trace["y"], strict=True)
        by_events = sorted(
            zip((events[point] for point in points), trace["marker"]["size"], strict=True)
        )
        sizes = [size for _, size in by_events]
        assert sizes == sorted(sizes)


def test_a_click_on_a_point_opens_its_item(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 404"
    dashboard.open(view=VIEW)
    dashboard.traces("map")
    item = map_of(dashboard)[4]
    x, y = pixel(dashboard, item)
    dashboard.page.mouse.move(x - 1, y)
    dashboard.page.mouse.move(x, y)
    expect(dashboard.page.locator("#map + .tip")).to_contain_text(item["title"])
    expect(dashboard.page.locator("#map + .tip")).to_contain_text(f"{item['events']} events")
    dashboard.page.mouse.click(x, y)
    dashboard.settle()
    expect(dashboard.page.locator("#item-heading")).to_have_text(item["title"])


def test_the_chosen_and_the_similar_items_are_marked(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR, items="2000")
    items = map_of(shop_dashboard)
    response = shop_dashboard.api(f"/v1/items/{POPULAR}/similar?n=10")
    near = {item["item_id"] for item in response["items"]}
    _, similar, chosen = shop_dashboard.traces("map")[-MARKED:]
    assert set(zip(similar["x"], similar["y"], strict=True)) == points_of(
        [item for item in items if item["item_id"] in near]
    )
    assert set(zip(chosen["x"], chosen["y"], strict=True)) == points_of(
        [item for item in items if item["item_id"] == POPULAR]
    )
    expect(shop_dashboard.page.locator("#map-marked")).to_contain_text(
        f"{len(similar['x'])} of the 10 items listed as similar"
    )


def test_buttons_and_pointer_zoom_and_move_the_map(dashboard: Dashboard) -> None:
    page = dashboard.open(view=VIEW).page
    dashboard.traces("map")
    whole = width_in_view(dashboard)
    page.get_by_role("button", name="Zoom in").press("Enter")
    dashboard.wait_until("(w) => map.layout.xaxis.range[1] - map.layout.xaxis.range[0] < w", whole)
    assert width_in_view(dashboard) == pytest.approx(whole / 1.5)
    low = page.evaluate("map.layout.xaxis.range[0]")
    page.get_by_role("button", name="Move right").click()
    dashboard.wait_until("(low) => map.layout.xaxis.range[0] > low", low)
    page.get_by_role("button", name="Reset the map").click()
    dashboard.wait_until(
        "(w) => map.layout.xaxis.range[1] - map.layout.xaxis.range[0] >= w * 0.999", whole
    )
    page.locator("#map").hover()
    page.mouse.wheel(0, -300)
    dashboard.wait_until(
        "(w) => map.layout.xaxis.range[1] - map.layout.xaxis.range[0] < w * 0.95", whole
    )
    zoomed = width_in_view(dashboard)
    # Redrawing keeps the view.
    page.locator("#categories").get_by_label("no category").uncheck()
    dashboard.settle()
    assert width_in_view(dashboard) == pytest.approx(zoomed, rel=1e-3)


def test_the_caption_states_how_near_items_stay(map_500: Dashboard) -> None:
    page = map_500.page
    version = served(map_500)["version"]
    response = map_500.api(f"/v1/models/{version}/map?items=1")
    assert response["method"] == "tsne"
    expect(page.locator("#map-summary")).to_contain_text("placed by t-SNE of their vectors")
    expect(page.locator("#map-summary")).to_contain_text("uses all 16 dimensions")
    kept = round(10 * response["neighbours_kept"])
    assert kept > 1
    expect(page.locator("#map-kept")).to_have_text(
        f"Of an item's 10 nearest neighbours, {kept} on average are among its 10 nearest on "
        "the map."
    )


def test_a_version_without_a_map_is_projected(dashboard: Dashboard) -> None:
    page = dashboard.open(view=VIEW).page
    first, second = dashboard.api(f"/v1/models/{served(dashboard)['version']}/map")["explained"]
    expect(page.locator("#map-summary")).to_contain_text(
        f"the first axis explains {first * 100:.1f} % of the variance, the second "
        f"{second * 100:.1f} %"
    )


def test_a_category_looks_the_same_on_every_map(shop_dashboard: Dashboard) -> None:
    def read_looks(fragment: str) -> dict[str, tuple[str, str]]:
        shop_dashboard.open(fragment, view=VIEW)
        return {
            trace["name"]: (trace["marker"]["color"], trace["marker"]["symbol"])
            for trace in shop_dashboard.traces("map")[DENSITY:-MARKED]
        }

    whole = read_looks("#items=1000")
    for fragment in ("#items=200", '#items=1000&categories=["Bags","Party"]'):
        looks = read_looks(fragment)
        assert len(looks) > 2
        assert looks.items() <= whole.items()


def test_a_search_is_marked_on_the_map(map_500: Dashboard) -> None:
    page = map_500.page
    page.get_by_label("Title, id or category contains").fill("LUNCH bag")
    expected = [item for item in map_of(map_500, 500) if "LUNCH BAG" in (item["title"] or "")]
    expect(page.locator("#map-found")).to_contain_text(f"In squares: {len(expected)} items with")
    map_500.settle()
    found = map_500.traces("map")[-MARKED]
    assert set(zip(found["x"], found["y"], strict=True)) == points_of(expected)
    page.get_by_label("Title, id or category contains").fill("")
    expect(page.locator("#map-found")).to_have_text("")


def test_crowds_are_shaded(map_500: Dashboard) -> None:
    items = map_of(map_500, 500)
    levels = map_500.traces("map")[:DENSITY]
    areas = [len([x for x in trace["x"] if x is not None]) for trace in levels]
    assert areas[0] > 0
    assert [trace["fill"] for trace in levels] == ["toself"] * DENSITY
    left, right = min(item["x"] for item in items), max(item["x"] for item in items)
    crowded = [x for x in levels[-1]["x"] if x is not None]
    cell = (right - left) / 20
    assert left - cell <= min(crowded) < max(crowded) <= right + cell


def test_the_map_is_also_a_table(dashboard: Dashboard) -> None:
    page = dashboard.open(view=VIEW).page
    page.locator("#map-table summary").click()
    rows = page.locator("#map-table tbody tr")
    items = map_of(dashboard)
    expect(rows).to_have_count(len(items))
    expect(rows.nth(3)).to_contain_text(items[3]["title"])
