"""The User page in a real browser against a real service."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.browser import world
from tests.browser.dashboard import Dashboard
from tests.processes import LOCAL_TOKEN

AT = "2025-03-01T12:00:00Z"
REGULAR_AT = f"#user={world.REGULAR}&query_time={AT}"


def answer_of(service: str, user_id: str, at: str = AT) -> dict[str, Any]:
    """The response of the API, requested without a browser."""
    request = {"user_id": user_id, "query_time": at, "explain": "heads"}
    answer = httpx.post(
        f"{service}/v1/recommendations", json=request, auth=LOCAL_TOKEN
    ).raise_for_status()
    return dict(answer.json())


def test_the_bars_are_the_weights_of_the_api_and_sum_to_one(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    events = answer_of(dashboard.service, world.REGULAR)["attention"]["events"]
    assert dashboard.drawn_weights == pytest.approx([event["weight"] for event in events], abs=1e-6)
    assert sum(dashboard.drawn_weights) == pytest.approx(1, abs=1e-5)
    assert dashboard.bars_on_screen == len(events) == 10


def test_a_single_head_can_be_shown(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    dashboard.by_label("Heads").select_option("head 2")
    dashboard.settle()
    heads = answer_of(dashboard.service, world.REGULAR)["attention"]["heads"]
    assert len(heads) == world.HEADS
    assert dashboard.drawn_weights == pytest.approx(heads[1], abs=1e-6)


def test_the_table_shows_the_weights_of_the_chart(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    heaviest = max(
        answer_of(dashboard.service, world.REGULAR)["attention"]["events"],
        key=lambda event: event["weight"],
    )
    title = world.TITLES[world.ITEM_IDS.index(heaviest["item_id"])]
    first = dashboard.page.locator("#history-events tr").first
    expect(first).to_contain_text(title)
    expect(first).to_contain_text("purchase")
    expect(first).to_contain_text(f"{heaviest['weight'] * 100:.1f} %")


@pytest.mark.parametrize("arrives_last", ["the response", "plotly.js"])
def test_what_is_further_down_waits_for_the_first_charts(
    dashboard: Dashboard, arrives_last: str
) -> None:
    def wait_for_plotly(route: Route) -> None:
        dashboard.wait_until("() => window.Plotly")
        route.continue_()

    def wait_for_numbers(route: Route) -> None:
        dashboard.wait_until("() => document.querySelector('#top-items tr')")
        route.continue_()

    if arrives_last == "plotly.js":
        dashboard.page.route("**/plotly-basic.min.js", wait_for_numbers)
    else:
        dashboard.page.route("**/v1/recommendations", wait_for_plotly)
    dashboard.page.add_init_script(
        """const measure = performance.measure.bind(performance);
        performance.measure = (name, options) => {
            const count = (selector) => document.querySelectorAll(selector).length;
            if (name === "kairos-first-view") {
                window.firstView = ["#top-items tr", "#plot .bars"].map(count).map(Boolean);
                window.later = ["#history-events tr", "#heads svg"].map(count).map(Boolean);
            }
            return measure(name, options);
        };"""
    )
    dashboard.open(REGULAR_AT)
    assert dashboard.page.evaluate("[window.firstView, window.later]") == [
        [True, True],
        [False, False],
    ]
    expect(dashboard.page.locator("#history-events tr")).to_have_count(10)
    dashboard.page.wait_for_selector("#heads svg")


def test_no_formatter_of_intl_is_made(dashboard: Dashboard) -> None:
    dashboard.page.add_init_script(
        """window.made = [];
        for (const name of ["NumberFormat", "DateTimeFormat", "PluralRules"]) {
            Intl[name] = new Proxy(Intl[name], {
                construct(kind, options) {
                    window.made.push(name);
                    return Reflect.construct(kind, options);
                },
            });
        }"""
    )
    dashboard.open(REGULAR_AT)
    assert dashboard.page.evaluate("window.made") == []


def test_bars_of_one_basket_are_stacked(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.BASKETS}")
    drawn = dashboard.page.evaluate("(({x, base}) => ({x, base}))(plot.data[0])")
    assert len(set(drawn["x"])) == 3
    weights = dashboard.drawn_weights
    for basket in range(3):
        expected = [sum(weights[basket * 4 : basket * 4 + index]) for index in range(4)]
        assert drawn["base"][basket * 4 : basket * 4 + 4] == pytest.approx(expected)


def test_moving_the_query_time_changes_the_weights(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}")
    before = dashboard.drawn_weights
    dashboard.move_slider(0.5)
    assert len(dashboard.drawn_weights) == len(before)
    assert dashboard.drawn_weights != pytest.approx(before, abs=1e-4)


def test_moving_the_query_time_changes_the_ranking(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}&exclude_seen=false")
    before = dashboard.top_items
    dashboard.move_slider(0.1)
    assert dashboard.top_items != before
    assert dashboard.top_items == [item["item_id"] for item in dashboard.last_answer["items"]]


def test_the_slider_reaches_back_before_later_events(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}")
    dashboard.move_slider(0)
    assert len(dashboard.drawn_weights) == 2
    expect(dashboard.page.locator("#history-note")).to_have_text(
        "2 read by the model, 8 after the query time."
    )


def test_a_fast_slider_ends_on_its_last_position(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}")
    for share in (0.1, 0.9, 0.2, 0.8, 0.3):
        dashboard.page.evaluate(
            """(share) => {
                const slider = document.getElementById("query-time-slider");
                slider.value = share * slider.max;
                slider.dispatchEvent(new Event("input"));
            }""",
            share,
        )
        dashboard.page.wait_for_timeout(15)
    dashboard.settle()
    shown = dashboard.page.locator("#query-time-field").input_value()
    last = dashboard.last_answer
    assert last["query_time"].startswith(shown)
    assert dashboard.drawn_weights == [event["weight"] for event in last["attention"]["events"]]


def test_the_datetime_field_is_parsed_as_utc(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}")
    dashboard.page.locator("#query-time-field").fill("2025-01-20T06:30:15")
    dashboard.settle()
    assert dashboard.last_answer["query_time"] == "2025-01-20T06:30:15Z"


def test_the_time_axis_can_be_the_log_of_elapsed_time(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    weights = dashboard.drawn_weights
    dashboard.page.get_by_text("elapsed, log").click()
    dashboard.settle()
    assert dashboard.drawn_weights == weights
    axis = dashboard.page.evaluate("plot.layout.xaxis.title.text")
    assert axis == "elapsed before query time (log)"
    assert dashboard.page.evaluate("plot.data[0].x") == sorted(
        dashboard.page.evaluate("plot.data[0].x")
    )


def test_a_hostile_title_is_shown_as_text(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    expect(dashboard.page.locator("#history-events")).to_contain_text(world.HOSTILE_TITLE)
    bar = dashboard.page.locator("#plot .bars .point path").first
    dashboard.hover_over(bar, "#plot + .tip")
    expect(dashboard.page.locator("#plot + .tip")).to_contain_text(world.HOSTILE_TITLE)
    assert dashboard.page.locator("img").count() == 0
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_users_are_found_by_prefix_and_opened(dashboard: Dashboard) -> None:
    dashboard.open()
    dashboard.by_label("Id starts with").fill("dept/")
    buttons = dashboard.page.locator("#user-list button")
    expect(buttons).to_have_count(1)
    buttons.click()
    dashboard.settle()
    expect(dashboard.page.locator("#user-name")).to_have_text(world.NEWCOMER)
    expect(dashboard.page.locator("#warnings")).to_contain_text(
        "1 item of the history is unknown to the model"
    )
    expect(dashboard.page.locator("#history-used")).to_contain_text("1 of 2 events")


def test_a_link_restores_what_was_shown(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    dashboard.page.locator("#n").select_option("5")
    dashboard.by_label("exclude seen items").uncheck()
    dashboard.by_label("withhold the query time").check()
    dashboard.page.get_by_text("elapsed, log").click()
    dashboard.settle()
    items, weights = dashboard.top_items, dashboard.drawn_weights
    assert len(items) == 5
    link = dashboard.page.url
    dashboard.page.goto("about:blank")
    dashboard.open(link[link.index("#") :])
    assert dashboard.top_items == items
    assert dashboard.drawn_weights == weights
    expect(dashboard.by_label("exclude seen items")).not_to_be_checked()
    expect(dashboard.by_label("withhold the query time")).to_be_checked()
    assert dashboard.last_answer["query_time"] == AT


def test_back_returns_to_the_previous_user(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    dashboard.page.locator(f"#user-list button[value={world.BASKETS}]").click()
    expect(dashboard.page.locator("#user-name")).to_have_text(world.BASKETS)
    dashboard.settle()
    dashboard.page.go_back()
    expect(dashboard.page.locator("#user-name")).to_have_text(world.REGULAR)
    dashboard.settle()
    assert len(dashboard.drawn_weights) == 10


def test_an_unknown_user_gets_popular_items_with_a_notice(dashboard: Dashboard) -> None:
    dashboard.open("#user=nobody")
    expect(dashboard.page.locator("#fallback")).to_contain_text("popular items only")
    expect(dashboard.page.locator("#plot-summary")).to_contain_text("No event was read")
    assert dashboard.top_items[0] == world.ITEM_IDS[0]


def test_the_message_of_a_refused_request_is_shown(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 422"
    dashboard.page.goto(f"{dashboard.service}/dashboard/#user={'u' * 257}")
    expect(dashboard.page.get_by_role("alert")).to_contain_text("at most 256 characters")


def test_the_slider_works_by_keyboard_and_names_the_instant(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT)
    slider = dashboard.page.get_by_role("slider", name="Query time")
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") != before
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, ", str(before))
    dashboard.settle()
