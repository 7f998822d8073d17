"""The items view: what is drawn is what the API says, and what an item holds stays text."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from model.encoders.popularity import PopularityConfig
from tests.app import tiny_bundle
from tests.browser import world
from tests.browser.dashboard import Dashboard
from tests.processes import Server, processes

VIEW = "items.html"
POPULAR = "sku-0001"
"""An article of the demo with events in most weeks."""
SLASHED, DOTS, NEW, OVER = "lamps/red & blue?#", "..", "новинка", "sku-over"
MARKED = 2
"""Traces of the map that come last: rings around the similar items, and around the chosen one."""


@pytest.fixture(scope="module")
def odd_shop(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose stored items have odd ids and titles, and a version without item vectors."""
    directory = tmp_path_factory.mktemp("odd")
    world.publish(directory / "bundles")
    encoder = PopularityConfig()
    tiny_bundle.publish(directory / "bundles", 1, activate=False, encoder=encoder)
    with processes(directory, directory / "bundles") as start:
        server = start()
        world.fill(server.url)
        items = [
            {
                "item_id": world.ITEM_IDS[0],
                "title": world.HOSTILE_TITLE,
                "categories": ["<b>bold</b>"],
            },
            {
                "item_id": SLASHED,
                "title": "Lamp, red and blue",
                "properties": {"<i>": {"price": 3.5}},
            },
            {"item_id": DOTS, "title": "Dots"},
            {"item_id": NEW, "title": "Lamp, new"},
            {"item_id": OVER, "title": "Lamp, gone", "available_until": "2025-02-01T00:00:00Z"},
        ]
        server.http.put("/v1/items", json={"items": items}).raise_for_status()
        yield server


@pytest.fixture
def odd(odd_shop: Server, look_at: Callable[[str], Dashboard]) -> Dashboard:
    """Its dashboard."""
    return look_at(odd_shop.url)


def open_item(dashboard: Dashboard, item_id: str, **state: str) -> None:
    """Open an item by a link, beside a small map unless it says otherwise."""
    said = {"item": item_id, "items": "100", **state}
    fields = "&".join(f"{name}={quote(value)}" for name, value in said.items())
    dashboard.open(f"#{fields}", view=VIEW)


def served(dashboard: Dashboard) -> dict[str, Any]:
    """The version that answers."""
    (model,) = [one for one in dashboard.api("/v1/models")["models"] if one["is_serving"]]
    return dict(model)


def map_of(dashboard: Dashboard, items: int = 2000) -> list[dict[str, Any]]:
    """The map's items, as the API has them."""
    version = served(dashboard)["version"]
    return list(dashboard.api(f"/v1/models/{version}/map?items={items}")["items"])


def drawn_points(dashboard: Dashboard) -> dict[str, set[tuple[float, float]]]:
    """The points of the map by the name of their group."""
    return {
        trace["name"]: set(zip(trace["x"], trace["y"], strict=True))
        for trace in dashboard.traces("map")[:-MARKED]
    }


def places(items: list[dict[str, Any]]) -> set[tuple[float, float]]:
    return {(item["x"], item["y"]) for item in items}


def pixel(dashboard: Dashboard, item: dict[str, Any]) -> tuple[float, float]:
    """Where an item of the map is on the screen."""
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


def width_in_view(dashboard: Dashboard) -> float:
    low, high = dashboard.page.evaluate("document.getElementById('map').layout.xaxis.range")
    return float(high - low)


def options(page: Page) -> Locator:
    """What the search offers."""
    return page.get_by_role("listbox", name="Items").get_by_role("option")


def similar_rows(dashboard: Dashboard) -> list[Locator]:
    return dashboard.page.locator("#similar-items tr").all()


# Finding an item


def test_an_item_is_found_by_its_title_and_opened_by_keyboard(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open(view=VIEW).page
    found = shop_dashboard.api("/v1/items?q=hanging%20heart&limit=2")["items"][1]
    page.get_by_label("Find an item").fill("hanging heart")
    expect(options(page).first).to_contain_text("HANGING HEART")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    shop_dashboard.settle()
    expect(page.locator("#item-heading")).to_have_text(found["title"])
    expect(page.locator("#facts")).to_contain_text(found["item_id"])
    expect(page.locator("#facts")).to_contain_text(", ".join(found["categories"]))


def test_an_id_opens_its_item(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open("#items=100", view=VIEW).page
    page.get_by_label("Find an item").fill(POPULAR)
    options(page).last.click()
    shop_dashboard.settle()
    stored = shop_dashboard.api(f"/v1/items/{POPULAR}")
    expect(page.locator("#item-heading")).to_have_text(stored["title"])


def test_the_most_popular_items_are_listed_until_one_is_chosen(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open("#items=100", view=VIEW).page
    items = map_of(shop_dashboard, 100)
    rows = page.locator("#popular-items tr")
    assert [row.inner_text().split("\t")[0] for row in rows.all()] == [
        str(rank) for rank in range(1, 51)
    ]
    expect(rows.first).to_contain_text(items[0]["title"])
    expect(rows.first).to_contain_text(str(items[0]["events"]))
    page.get_by_label("Title, id or category contains").fill("easter")
    wanted = [
        item
        for item in items
        if "easter" in f"{item['title']} {item['item_id']} {item['categories']}".lower()
    ]
    expect(rows).to_have_count(min(50, len(wanted)))
    rows.first.get_by_role("link").press("Enter")
    shop_dashboard.settle()
    expect(page.locator("#item-heading")).to_have_text(wanted[0]["title"])
    expect(page.locator("#item-heading")).to_be_focused()
    expect(page.locator("#popular")).to_be_hidden()


# What is like it


def test_the_similar_items_are_those_of_the_api(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    answer = shop_dashboard.api(f"/v1/items/{POPULAR}/similar?n=10")
    rows = similar_rows(shop_dashboard)
    assert len(rows) == len(answer["items"]) == 10
    for row, item in zip(rows, answer["items"], strict=True):
        expect(row.get_by_role("link")).to_have_text(item["title"])
        expect(row).to_contain_text(f"{item['score']:.3f}")
        assert row.locator("meter").evaluate("bar => bar.value") == pytest.approx(item["score"])


def test_another_version_finds_other_items_alike(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    (_, _, oldest) = shop_dashboard.api("/v1/models")["models"]
    shop_dashboard.page.get_by_label("Model").select_option(oldest["version"])
    shop_dashboard.settle()
    answer = shop_dashboard.api(
        f"/v1/items/{POPULAR}/similar?n=10&model_version={oldest['version']}"
    )
    links = [row.get_by_role("link").inner_text() for row in similar_rows(shop_dashboard)]
    assert links == [item["title"] for item in answer["items"]]
    mapped = shop_dashboard.api(f"/v1/models/{oldest['version']}/map?items=100")["items"]
    assert set().union(*drawn_points(shop_dashboard).values()) == places(mapped)


def test_a_similar_item_is_a_click_away_and_back_returns(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    page = shop_dashboard.page
    before = page.locator("#item-heading").inner_text()
    link = similar_rows(shop_dashboard)[0].get_by_role("link")
    title = link.inner_text()
    link.click()
    shop_dashboard.settle()
    expect(page.locator("#item-heading")).to_have_text(title)
    page.go_back()
    shop_dashboard.settle()
    expect(page.locator("#item-heading")).to_have_text(before)


# Its events over time


@pytest.mark.parametrize("step", ["day", "week", "month"])
def test_the_bars_are_the_events_of_the_api(shop_dashboard: Dashboard, step: str) -> None:
    open_item(shop_dashboard, POPULAR)
    shop_dashboard.page.get_by_label(step, exact=True).check(force=True)
    shop_dashboard.settle()
    answer = shop_dashboard.api(f"/v1/items/{POPULAR}/popularity?step={step}")
    traces = shop_dashboard.traces("popularity-plot")
    assert {trace["name"]: trace["y"] for trace in traces} == {
        action: list(events) for action, events in answer["actions"].items()
    }
    drawn = shop_dashboard.page.evaluate(
        "document.getElementById('popularity-plot').data[0].x.map(at => new Date(at).toJSON())"
    )
    assert [at.replace(".000Z", "Z") for at in drawn] == [
        bucket["start"] for bucket in answer["counts"]
    ]
    expect(shop_dashboard.page.locator("#popularity-summary")).to_contain_text(
        f"{answer['events']} stored events"
    )


def test_what_the_version_was_trained_on_is_shaded(shop_dashboard: Dashboard) -> None:
    (_, _, oldest) = shop_dashboard.api("/v1/models")["models"]
    for model in (served(shop_dashboard), oldest):
        open_item(shop_dashboard, POPULAR, model_version=model["version"])
        shop_dashboard.traces("popularity-plot")
        shaded = shop_dashboard.page.evaluate(
            """document.getElementById("popularity-plot").layout.shapes
                .filter(({type}) => type === "rect")
                .map(({x0, x1}) => [x0, x1].map((at) => new Date(at).toJSON()))"""
        )
        window = model["data_window"]
        assert shaded == [[at.replace("Z", ".000Z") for at in window.values()]]


# The map


def test_the_map_places_items_where_the_api_does(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view=VIEW)
    items = map_of(shop_dashboard)
    drawn = drawn_points(shop_dashboard)
    assert set().union(*drawn.values()) == places(items)
    assert sum(len(points) for points in drawn.values()) == len(items) == 2000
    shop_dashboard.page.get_by_label("Items shown").select_option("500")
    shop_dashboard.settle()
    drawn = drawn_points(shop_dashboard)
    assert set().union(*drawn.values()) == places(map_of(shop_dashboard, 500))


def test_colour_and_symbol_say_the_first_category(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#items=500", view=VIEW)
    items = map_of(shop_dashboard, 500)
    drawn = drawn_points(shop_dashboard)
    assert drawn["no category"] == places([item for item in items if not item["categories"]])
    named = set(drawn) - {"no category", "other categories"}
    assert len(named) == 16, named
    for name in named:
        expected = [
            item
            for item in items
            if next((one for one in item["categories"] if one in named), None) == name
        ]
        assert drawn[name] == places(expected)
    looks = [
        (trace["marker"]["color"], trace["marker"]["symbol"])
        for trace in shop_dashboard.traces("map")[:-MARKED]
    ]
    assert len(set(looks)) == len(looks)


def test_choosing_categories_hides_the_others(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#items=500", view=VIEW)
    items = map_of(shop_dashboard, 500)
    legend = shop_dashboard.page.locator("#categories")
    legend.get_by_role("button", name="none").click()
    legend.get_by_label("Home decoration").check()
    shop_dashboard.settle()
    # All of its items, those too whose first category is another.
    expected = places([item for item in items if "Home decoration" in item["categories"]])
    assert drawn_points(shop_dashboard) == {"Home decoration": expected}
    legend.get_by_role("button", name="all").click()
    shop_dashboard.settle()
    assert set().union(*drawn_points(shop_dashboard).values()) == places(items)


def test_larger_points_have_more_events(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#items=500", view=VIEW)
    events = {(item["x"], item["y"]): item["events"] for item in map_of(shop_dashboard, 500)}
    for trace in shop_dashboard.traces("map")[:-MARKED]:
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


def test_the_chosen_item_and_those_like_it_are_marked(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR, items="2000")
    items = map_of(shop_dashboard)
    answer = shop_dashboard.api(f"/v1/items/{POPULAR}/similar?n=10")
    near = {item["item_id"] for item in answer["items"]}
    similar, chosen = shop_dashboard.traces("map")[-MARKED:]
    assert set(zip(similar["x"], similar["y"], strict=True)) == places(
        [item for item in items if item["item_id"] in near]
    )
    assert set(zip(chosen["x"], chosen["y"], strict=True)) == places(
        [item for item in items if item["item_id"] == POPULAR]
    )
    expect(shop_dashboard.page.locator("#map-marked")).to_contain_text(
        f"{len(similar['x'])} of the 10 items listed as similar"
    )


def test_the_map_is_zoomed_and_moved_by_buttons_and_by_the_pointer(dashboard: Dashboard) -> None:
    page = dashboard.open(view=VIEW).page
    dashboard.traces("map")
    whole = width_in_view(dashboard)
    page.get_by_role("button", name="Zoom in").press("Enter")
    page.wait_for_function(
        "([w]) => map.layout.xaxis.range[1] - map.layout.xaxis.range[0] < w", arg=[whole]
    )
    assert width_in_view(dashboard) == pytest.approx(whole / 1.5)
    low = page.evaluate("map.layout.xaxis.range[0]")
    page.get_by_role("button", name="Move right").click()
    page.wait_for_function("([low]) => map.layout.xaxis.range[0] > low", arg=[low])
    page.get_by_role("button", name="Reset the map").click()
    page.wait_for_function(
        "([w]) => map.layout.xaxis.range[1] - map.layout.xaxis.range[0] >= w * 0.999", arg=[whole]
    )
    page.locator("#map").hover()
    page.mouse.wheel(0, -300)
    page.wait_for_function(
        "([w]) => map.layout.xaxis.range[1] - map.layout.xaxis.range[0] < w * 0.95", arg=[whole]
    )
    zoomed = width_in_view(dashboard)
    # What is drawn anew stays where it was.
    page.locator("#categories").get_by_label("no category").uncheck()
    dashboard.settle()
    assert width_in_view(dashboard) == pytest.approx(zoomed, rel=1e-3)


def test_the_caption_says_how_little_a_map_tells(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open("#items=100", view=VIEW).page
    version = served(shop_dashboard)["version"]
    first, second = shop_dashboard.api(f"/v1/models/{version}/map?items=1")["explained"]
    summary = page.locator("#map-summary")
    expect(summary).to_contain_text(
        f"the first axis explains {first * 100:.1f} % of the variance, the second "
        f"{second * 100:.1f} %"
    )
    expect(summary).to_contain_text("near in two of 16 directions only")


def test_the_map_is_a_table_too(dashboard: Dashboard) -> None:
    page = dashboard.open(view=VIEW).page
    page.locator("#map-table summary").click()
    rows = page.locator("#map-table tbody tr")
    items = map_of(dashboard)
    expect(rows).to_have_count(len(items))
    expect(rows.nth(3)).to_contain_text(items[3]["title"])


# Links


def test_a_link_brings_back_what_was_shown(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    page = shop_dashboard.page
    (_, _, oldest) = shop_dashboard.api("/v1/models")["models"]
    page.get_by_label("Model").select_option(oldest["version"])
    page.get_by_label("month", exact=True).check(force=True)
    page.get_by_label("Items shown").select_option("1000")
    shop_dashboard.settle()
    page.locator("#categories").get_by_label("Bags").uncheck()
    page.locator("#categories").get_by_label("no category").uncheck()
    shop_dashboard.settle()
    drawn, heading = shop_dashboard.traces("map"), page.locator("#item-heading").inner_text()
    bars, link = shop_dashboard.traces("popularity-plot"), page.url
    page.goto("about:blank")
    shop_dashboard.open(link[link.index("#") :], view=VIEW)
    assert [trace.get("name") for trace in shop_dashboard.traces("map")] == [
        trace.get("name") for trace in drawn
    ]
    assert [trace["x"] for trace in shop_dashboard.traces("map")] == [trace["x"] for trace in drawn]
    assert [trace["y"] for trace in shop_dashboard.traces("popularity-plot")] == [
        trace["y"] for trace in bars
    ]
    expect(page.locator("#item-heading")).to_have_text(heading)
    expect(page.get_by_label("Model")).to_have_value(oldest["version"])
    expect(page.locator("#categories").get_by_label("Bags")).not_to_be_checked()


def test_a_link_to_a_version_that_is_gone_says_so(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#model_version=gone", view=VIEW)
    expect(shop_dashboard.page.locator("#version-note")).to_contain_text("gone is not published")


# Odd items


def test_a_title_is_text_whatever_it_holds(odd: Dashboard) -> None:
    page = odd.open(view=VIEW).page
    page.get_by_label("Find an item").fill("onerror")
    expect(options(page).first).to_contain_text(world.HOSTILE_TITLE)
    expect(page.locator("#popular-items")).to_contain_text(world.HOSTILE_TITLE)
    page.keyboard.press("Enter")
    odd.settle()
    expect(page.locator("#item-heading")).to_have_text(world.HOSTILE_TITLE)
    expect(page.locator("#map-marked")).to_contain_text(world.HOSTILE_TITLE)
    expect(page.locator("#map .annotation-text")).to_contain_text("<img src=x onerror=")
    expect(page.locator("#categories")).to_contain_text("<b>bold</b>")
    x, y = pixel(odd, map_of(odd)[0])
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    expect(page.locator("#map + .tip")).to_contain_text(world.HOSTILE_TITLE)
    assert page.locator("img").count() == 0
    assert page.evaluate("document.body.dataset.hacked") is None


def test_an_item_the_model_does_not_know_shows_what_is_stored(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, SLASHED)
    page = odd.page
    expect(page.locator("#item-heading")).to_have_text("Lamp, red and blue")
    expect(page.locator("#facts")).to_contain_text('<i>: {"price":3.5}')
    expect(page.locator("#similar-note")).to_contain_text("retrain with events of that item")
    expect(page.locator("#popularity-missing")).to_contain_text("No event of this item is stored")
    expect(page.locator("#map-marked")).to_contain_text("not among the items of this map")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_an_item_that_is_not_stored_shows_what_the_model_knows(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 404"
    open_item(dashboard, world.ITEM_IDS[3])
    page = dashboard.page
    expect(page.locator("#item-heading")).to_have_text(world.TITLES[3])
    expect(page.locator("#facts")).to_contain_text("store it with PUT /v1/items")
    assert len(similar_rows(dashboard)) == 10
    (purchases,) = dashboard.traces("popularity-plot")
    counted = dashboard.api(f"/v1/items/{world.ITEM_IDS[3]}/popularity?step=week")["actions"]
    assert counted == {"purchase": purchases["y"]}


def test_an_item_nobody_has_heard_of_is_answered_in_the_words_of_the_service(
    odd: Dashboard,
) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, "sku-nobody")
    for place, path in (
        ("#facts", ""),
        ("#similar-note", "/similar"),
        ("#popularity-missing", "/popularity"),
    ):
        said = httpx.get(f"{odd.service}/v1/items/sku-nobody{path}").json()["detail"]
        expect(odd.page.locator(place)).to_contain_text(said)


@pytest.mark.parametrize("item_id", [DOTS, ".", "a/../b", f"{SLASHED}/similar"])
def test_an_id_that_no_address_can_hold_is_told_so(odd: Dashboard, item_id: str) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, item_id)
    expect(odd.page.locator("#item-heading")).to_have_text(item_id)
    expect(odd.page.locator("#facts")).to_contain_text("store it under another id")


def test_an_item_that_is_not_available_now_says_so(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, OVER)
    expect(odd.page.locator("#facts")).to_contain_text(
        "not now, only until 2025-02-01 00:00:00 UTC"
    )


def test_an_id_may_be_of_any_letters(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, NEW)
    expect(odd.page.locator("#item-heading")).to_have_text("Lamp, new")
    expect(odd.page.locator("#facts")).to_contain_text(NEW)


def test_a_version_without_item_vectors_says_that_it_has_no_map(odd: Dashboard) -> None:
    odd.expected_complaint = "status of (404|409)"
    models = odd.api("/v1/models")["models"]
    (flat,) = [model["version"] for model in models if not model["is_serving"]]
    open_item(odd, "i3", model_version=flat)
    refusal = httpx.get(f"{odd.service}/v1/models/{flat}/map").json()["detail"]
    assert "learns none" in refusal
    expect(odd.page.locator("#map-missing")).to_have_text(refusal)
    expect(odd.page.locator("#similar-note")).to_have_text(refusal)
    expect(odd.page.locator("#map-shown")).to_be_hidden()
