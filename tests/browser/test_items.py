"""The Items page shows what the API returns for an item."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.browser.items_view import (
    POPULAR,
    VIEW,
    drawn_points,
    map_of,
    open_item,
    options,
    points_of,
    served,
    similar_rows,
)


@pytest.fixture(scope="module")
def popular_item(browser: Browser, shop: str) -> Iterator[Dashboard]:
    """The page of a popular item; tests choose the step of its bars."""
    with watched_dashboard(browser, shop) as dashboard:
        open_item(dashboard, POPULAR)
        yield dashboard


# Finding an item


def test_an_item_is_found_by_title_with_the_keyboard(shop_dashboard: Dashboard) -> None:
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


def test_popular_items_are_listed_until_one_is_chosen(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open("#items=100", view=VIEW).page
    items = map_of(shop_dashboard, 100)
    rows = page.locator("#popular-items tr")
    assert [row.inner_text().split("\t")[0] for row in rows.all()] == [
        str(rank) for rank in range(1, 51)
    ]
    expect(rows.first).to_contain_text(items[0]["title"])
    expect(rows.first).to_contain_text(str(items[0]["events"]))
    page.get_by_label("Title, id or category contains").fill("easter")
    expected = [
        item
        for item in items
        if "easter" in f"{item['title']} {item['item_id']} {item['categories']}".lower()
    ]
    expect(rows).to_have_count(min(50, len(expected)))
    rows.first.get_by_role("link").press("Enter")
    shop_dashboard.settle()
    expect(page.locator("#item-heading")).to_have_text(expected[0]["title"])
    expect(page.locator("#item-heading")).to_be_focused()
    expect(page.locator("#popular")).to_be_hidden()


# Similar items


def test_the_similar_items_are_those_of_the_api(popular_item: Dashboard) -> None:
    response = popular_item.api(f"/v1/items/{POPULAR}/similar?n=10")
    rows = similar_rows(popular_item)
    assert len(rows) == len(response["items"]) == 10
    for row, item in zip(rows, response["items"], strict=True):
        expect(row.get_by_role("link")).to_have_text(item["title"])
        expect(row).to_contain_text(f"{item['score']:.3f}")
        assert row.locator("meter").evaluate("bar => bar.value") == pytest.approx(item["score"])


def test_another_version_has_other_similar_items(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    (_, _, oldest) = shop_dashboard.api("/v1/models")["models"]
    shop_dashboard.page.get_by_label("Version", exact=True).select_option(oldest["version"])
    shop_dashboard.settle()
    response = shop_dashboard.api(
        f"/v1/items/{POPULAR}/similar?n=10&model_version={oldest['version']}"
    )
    links = [row.get_by_role("link").inner_text() for row in similar_rows(shop_dashboard)]
    # The browser shows several spaces of a title as one.
    assert links == [" ".join(item["title"].split()) for item in response["items"]]
    mapped = shop_dashboard.api(f"/v1/models/{oldest['version']}/map?items=100")["items"]
    assert set().union(*drawn_points(shop_dashboard).values()) == points_of(mapped)


def test_a_click_opens_a_similar_item_and_back_returns(shop_dashboard: Dashboard) -> None:
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


# Popularity


@pytest.mark.parametrize("step", ["day", "week", "month"])
def test_the_bars_are_the_events_of_the_api(popular_item: Dashboard, step: str) -> None:
    popular_item.page.get_by_label(step, exact=True).check(force=True)
    popular_item.settle()
    response = popular_item.api(f"/v1/items/{POPULAR}/popularity?step={step}")
    traces = popular_item.traces("popularity-plot")
    assert {trace["name"]: trace["y"] for trace in traces} == {
        action: list(events) for action, events in response["actions"].items()
    }
    drawn = popular_item.page.evaluate(
        "document.getElementById('popularity-plot').data[0].x.map(at => new Date(at).toJSON())"
    )
    assert [at.replace(".000Z", "Z") for at in drawn] == [
        bucket["start"] for bucket in response["counts"]
    ]
    expect(popular_item.page.locator("#popularity-summary")).to_contain_text(
        f"{response['events']} stored events"
    )


def test_an_action_looks_the_same_for_every_item(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.page
    open_item(shop_dashboard, POPULAR)
    both = bars_by_action(shop_dashboard)
    assert set(both) == {"purchase", "cancel"}
    orange = page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--query-time').trim()"
    )
    assert orange not in {color for color, _ in both.values()}
    assert len(set(both.values())) == 2

    def without_purchases(route: Route) -> None:
        response = route.fetch()
        content = response.json()
        del content["actions"]["purchase"]
        content["actions"]["borrow"] = content["actions"]["cancel"]
        route.fulfill(json=content)

    page.route("**/popularity*", without_purchases)
    page.reload()
    shop_dashboard.settle()
    others = bars_by_action(shop_dashboard)
    assert others["cancel"] == both["cancel"]
    assert len({*both.values(), others["borrow"]}) == 3
    page.unroute_all()
    page.route("**/popularity*", lambda route: route.fulfill(json=reordered(route)))
    page.reload()
    shop_dashboard.settle()
    assert bars_by_action(shop_dashboard) == both


def reordered(route: Route) -> dict[str, Any]:
    """The response with its actions in the other order."""
    content: dict[str, Any] = route.fetch().json()
    return content | {"actions": dict(reversed(content["actions"].items()))}


def bars_by_action(dashboard: Dashboard) -> dict[str, tuple[str, str]]:
    """The colour and the hatching of the bars of each action."""
    return {
        trace["name"]: (trace["marker"]["color"], trace["marker"]["pattern"]["shape"])
        for trace in dashboard.traces("popularity-plot")
    }


def test_the_training_window_of_the_version_is_shaded(shop_dashboard: Dashboard) -> None:
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


# Links


def test_a_link_restores_the_page(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    page = shop_dashboard.page
    (_, _, oldest) = shop_dashboard.api("/v1/models")["models"]
    page.get_by_label("Version", exact=True).select_option(oldest["version"])
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
    expect(page.get_by_label("Version", exact=True)).to_have_value(oldest["version"])
    expect(page.locator("#categories").get_by_label("Bags")).not_to_be_checked()


def test_a_link_to_an_unpublished_version_says_so(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#model_version=gone", view=VIEW)
    expect(shop_dashboard.page.locator("#version-note")).to_contain_text("gone is not published")
