"""The User page beyond one weight per event: timeline, single heads, occlusion."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser import world
from tests.browser.dashboard import Dashboard

AT = "2025-03-01T12:00:00Z"
REGULAR_AT = f"#user={world.REGULAR}&query_time={AT}"


def answer_of(dashboard: Dashboard, explain: str, **fields: Any) -> dict[str, Any]:
    """The response of the API for the regular customer, requested without a browser."""
    body = {"user_id": world.REGULAR, "query_time": AT, "explain": explain} | fields
    answer: dict[str, Any] = dashboard.api("/v1/recommendations", body)
    return answer


def test_every_event_is_on_the_timeline_once(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.BASKETS}&query_time=2025-02-20T00:00:00Z")
    (lane,) = dashboard.traces("timeline")
    assert sum(lane["customdata"]) == 12
    expect(dashboard.page.locator("#timeline-legend")).to_have_text(re.compile(r"purchase\s+12"))
    # Two baskets had happened by then; the third is hollow.
    assert lane["marker"]["symbol"] == ["circle", "circle", "circle-open"]


def test_a_dot_names_its_events(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    dashboard.hover_over(dashboard.page.locator("#timeline .point").first, "#timeline + .tip")
    tip = dashboard.page.locator("#timeline + .tip")
    expect(tip).to_contain_text(world.HOSTILE_TITLE)
    expect(tip).to_contain_text("2025-01-06 09:00:00")
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_tooltips_name_the_categories_of_events(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#user=12347")
    request = {"user_id": "12347", "query_time": shop_dashboard.last_answer["query_time"]}
    events = shop_dashboard.api("/v1/recommendations", request | {"explain": "attention"})
    categories = [event["categories"] for event in events["attention"]["events"]]
    assert [
        event["categories"] for event in shop_dashboard.last_answer["attention"]["events"]
    ] == categories
    # On top of the last stack, well above the ticks on the axis.
    index = max(index for index, some in enumerate(categories) if some)
    shop_dashboard.page.wait_for_selector("#sweep[aria-busy=false]")
    bar = shop_dashboard.page.locator("#plot .bars .point path").nth(index)
    shop_dashboard.hover_over(bar, "#plot + .tip")
    tip = shop_dashboard.page.locator("#plot + .tip")
    expect(tip).to_contain_text(", ".join(categories[index]))


def test_every_head_is_drawn_on_one_scale(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    heads = answer_of(dashboard, "heads")["attention"]["heads"]
    drawn = dashboard.traces("heads")
    assert len(drawn) == len(heads) == world.HEADS
    for trace, weights in zip(drawn, heads, strict=True):
        assert trace["y"] == pytest.approx(weights, abs=1e-6)
    layout = dashboard.page.evaluate("document.getElementById('heads').layout")
    assert layout["yaxis"]["range"] == layout["yaxis2"]["range"]


def test_a_head_is_chosen_by_a_click_on_it(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    # The cards above are complete, so the layout no longer moves.
    dashboard.page.wait_for_selector("#sweep[aria-busy=false]")
    weights = answer_of(dashboard, "heads")["attention"]["heads"][1]
    highest = dashboard.page.locator("#heads .x2y2 .point path").nth(weights.index(max(weights)))
    dashboard.hover_over(highest, "#heads + .tip")
    dashboard.page.mouse.down()
    dashboard.page.mouse.up()
    expect(dashboard.by_label("Heads")).to_have_value("2")
    dashboard.settle()
    heads = answer_of(dashboard, "heads")["attention"]["heads"]
    assert dashboard.drawn_weights == pytest.approx(heads[1], abs=1e-6)
    assert "head=2" in dashboard.page.url


def test_occlusion_is_drawn_against_the_weights(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    dashboard.page.get_by_role("button", name="Leave out events").click()
    expect(dashboard.page.locator("#occlusion-result")).to_be_visible()
    attention = answer_of(dashboard, "occlusion")["attention"]
    measured = [event for event in attention["events"] if event["occlusion"] is not None]
    (points,) = dashboard.traces("occlusion-plot")
    assert points["x"] == pytest.approx([event["weight"] for event in measured], abs=1e-6)
    assert points["y"] == pytest.approx([event["occlusion"] for event in measured], abs=1e-5)
    shown = dashboard.page.locator("#faithfulness").inner_text()
    assert float(shown.replace("−", "-")) == pytest.approx(attention["faithfulness"], abs=0.005)
    expect(dashboard.page.locator("#occlusion-plot ~ figcaption")).to_contain_text(
        "they do not prove cause"
    )
    rows = dashboard.page.locator("#occlusion-table tbody tr")
    expect(rows).to_have_count(len(measured))
    heaviest = max(measured, key=lambda event: event["weight"])
    expect(rows.first).to_contain_text(f"{heaviest['weight'] * 100:.1f} %")


def test_a_link_keeps_the_item_that_is_explained(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    item = dashboard.top_items[2]
    dashboard.by_label("Item").and_(dashboard.page.locator("select")).last.select_option(item)
    dashboard.page.get_by_role("button", name="Leave out events").click()
    expect(dashboard.page.locator("#occlusion-result")).to_be_visible()
    link = dashboard.page.url
    assert f"explain_item_id={item}" in link
    dashboard.page.goto("about:blank")
    dashboard.open(link[link.index("#") :])
    expect(dashboard.page.locator("#occlusion-result")).to_be_visible()
    attention = answer_of(dashboard, "occlusion", explain_item_id=item)["attention"]
    (points,) = dashboard.traces("occlusion-plot")
    expected = [event["occlusion"] for event in attention["events"]]
    assert points["y"] == pytest.approx(expected, abs=1e-5)


def test_occlusion_is_hidden_when_the_query_time_moves(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    dashboard.page.get_by_role("button", name="Leave out events").click()
    expect(dashboard.page.locator("#occlusion-result")).to_be_visible()
    dashboard.move_slider(0.25)
    expect(dashboard.page.locator("#occlusion-result")).to_be_hidden()
    assert "explain_item_id" not in dashboard.page.url


def test_an_empty_history_has_nothing_to_explain(dashboard: Dashboard) -> None:
    dashboard.open("#user=nobody")
    expect(dashboard.page.locator("#sweep-note")).to_contain_text("no events")
    expect(dashboard.page.locator("#heads-note")).to_contain_text("no weights of single heads")
    expect(dashboard.page.get_by_role("button", name="Leave out events")).to_be_disabled()
    expect(dashboard.page.locator("#timeline-summary")).to_have_text("No events.")


def test_links_lead_to_the_what_if_view_and_to_items(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    what_if = dashboard.page.get_by_role("link", name="Edit this history in What if")
    expect(what_if).to_have_attribute(
        "href", f"what_if.html#user={world.REGULAR}&query_time=2025-03-01T12%3A00%3A00.000Z"
    )
    first = dashboard.page.locator("#top-items a").first
    expect(first).to_have_attribute("href", f"items.html#item={dashboard.top_items[0]}")
    expect(dashboard.page.locator("#history-events a")).to_have_count(10)
