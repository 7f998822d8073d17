"""The sweep of the User page: slider, player and heat map."""

import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser import world
from tests.browser.dashboard import Dashboard

REGULAR = f"#user={world.REGULAR}"
AFTER_ALL = "2025-04-01T00:00:00Z"


def open_swept(dashboard: Dashboard, fragment: str = REGULAR) -> None:
    """Open the page, and wait for the sweep to be drawn."""
    dashboard.open(fragment)
    dashboard.page.wait_for_selector("#sweep[aria-busy=false]")


def count_requests(dashboard: Dashboard, path: str) -> int:
    """How often the page has requested a path."""
    return sum(url.endswith(path) for url in dashboard.requested)


def read_pixels(dashboard: Dashboard) -> list[list[int]]:
    """The heat map's darkness by event, oldest first, and instant: 1 to 766, or 0 for none."""
    pixels: list[list[int]] = dashboard.page.evaluate(
        """() => {
            const {width, height} = document.getElementById("heat-cells");
            const context = document.getElementById("heat-cells").getContext("2d");
            const {data} = context.getImageData(0, 0, width, height);
            const darkness = (at) =>
                data[at + 3] === 0 ? 0 : 766 - data[at] - data[at + 1] - data[at + 2];
            return Array.from({length: height}, (_, row) =>
                Array.from({length: width}, (_, column) =>
                    darkness(4 * ((height - 1 - row) * width + column))));
        }"""
    )
    return pixels


def sweep_of(dashboard: Dashboard, **fields: Any) -> dict[str, Any]:
    """The API's own sweep over the instants that are drawn."""
    body = {"user_id": world.REGULAR, "query_times": dashboard.swept_instants, "n": 10} | fields
    answer: dict[str, Any] = dashboard.api("/v1/attention", body)
    return answer


def drag_to(dashboard: Dashboard, index: int) -> dict[str, Any]:
    """Drag the slider to one of its stops; returns what is drawn before any request is sent."""
    drawn: dict[str, Any] = dashboard.page.evaluate(
        """async (index) => {
            const slider = document.getElementById("query-time-slider");
            slider.value = index;
            slider.dispatchEvent(new Event("input", {bubbles: true}));
            for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
            const rows = [...document.getElementById("top-items").rows];
            return {
                weights: document.getElementById("plot").data[0].y,
                items: rows.map((row) => row.dataset.item),
                line: document.getElementById("heat-map").layout.shapes[0].x0,
            };
        }""",
        index,
    )
    return drawn


def test_the_heat_map_is_the_matrix_of_the_api(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    # A pixel per weight: traces and elements of plotly.js take far longer.
    assert dashboard.traces("heat-map") == []
    assert dashboard.page.locator("#heat-map .plot > *").count() == 0
    drawn = read_pixels(dashboard)
    swept = sweep_of(dashboard)
    assert len(drawn) == len(swept["events"]) == 10
    shades: dict[float, int] = {}
    for row, pixels in enumerate(drawn):
        weights = [instant["weights"][row] for instant in swept["instants"]]
        assert len(pixels) == len(weights) == 200
        assert [pixel == 0 for pixel in pixels] == [weight is None for weight in weights]
        shades |= {
            weight: pixel
            for weight, pixel in zip(weights, pixels, strict=True)
            if weight is not None
        }
    ordered = [shades[weight] for weight in sorted(shades)]
    # The three channels of a colour are rounded.
    assert all(later >= earlier - 3 for earlier, later in pairwise(ordered))
    assert len(set(ordered)) > 30


def test_the_sweep_waits_for_the_first_charts(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    requested, drawn = dashboard.page.evaluate(
        """["kairos-sweep-requested", "kairos-first-view"]
            .map((name) => performance.getEntriesByName(name)[0])
            .map(({startTime, duration}) => startTime + duration)"""
    )
    assert drawn <= requested


def test_weights_and_items_follow_the_slider_at_once(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    swept = sweep_of(dashboard)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    dashboard.page.route("**/v1/recommendations", hold)
    for index in (0, 60, 199):
        expected = swept["instants"][index]
        drawn = drag_to(dashboard, index)
        weights = [weight for weight in expected["weights"] if weight is not None]
        assert drawn["weights"] == pytest.approx(weights, abs=1e-6)
        assert sum(drawn["weights"]) == pytest.approx(1, abs=1e-5)
        assert drawn["items"] == [item["item_id"] for item in expected["items"]]
    # No response arrived meanwhile: all of this is from the sweep.
    assert dashboard.answer_count == 1
    dashboard.page.unroute("**/v1/recommendations")
    drag_to(dashboard, 100)
    dashboard.settle()
    assert count_requests(dashboard, "/v1/attention") == 1


def test_a_resting_slider_shows_the_exact_response(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    dashboard.page.evaluate(
        """() => {
            const slider = document.getElementById("query-time-slider");
            for (const index of [20, 21, 22]) {
                slider.value = index;
                slider.dispatchEvent(new Event("input", {bubbles: true}));
            }
        }"""
    )
    dashboard.settle()
    last = dashboard.last_answer
    assert last["query_time"] == sweep_of(dashboard)["instants"][22]["query_time"]
    assert dashboard.drawn_weights == [event["weight"] for event in last["attention"]["events"]]
    assert dashboard.answer_count == 2


def test_another_number_of_items_requests_a_new_sweep(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    dashboard.page.locator("#n").select_option("5")
    dashboard.settle()
    dashboard.page.wait_for_selector("#sweep[aria-busy=false]")
    assert len(drag_to(dashboard, 10)["items"]) == 5
    assert count_requests(dashboard, "/v1/attention") == 2
    dashboard.settle()


def test_a_click_on_the_heat_map_moves_the_query_time(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    assert drag_to(dashboard, 40)["line"] == dashboard.page.evaluate(
        "Date.parse", dashboard.swept_instants[40]
    )
    dashboard.settle()
    plot = dashboard.page.locator("#heat-map .draglayer .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    dashboard.page.mouse.move(box["x"] + box["width"] * 0.74, box["y"] + box["height"] / 2)
    dashboard.page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    expect(dashboard.page.locator("#heat-map + .tip")).to_be_visible()
    before = dashboard.page.url
    dashboard.page.mouse.down()
    dashboard.page.mouse.up()
    dashboard.page.wait_for_url(lambda url: url != before)
    dashboard.settle()
    assert dashboard.last_answer["query_time"] in {
        at.replace(".000Z", "Z") for at in dashboard.swept_instants[146:154]
    }


def test_play_moves_the_query_time_and_the_ranking(dashboard: Dashboard) -> None:
    open_swept(dashboard, f"{REGULAR}&query_time={AFTER_ALL}&exclude_seen=false&speed=fast")
    before = dashboard.top_items
    play = dashboard.page.get_by_role("button", name="Play")
    drag_to(dashboard, 0)
    play.focus()
    play.press("Enter")
    expect(dashboard.page.get_by_role("button", name="Pause")).to_be_focused()
    # Checked in every frame: the next step may remove it again.
    dashboard.page.evaluate(
        """() => new Promise((resolve) => {
            const look = () => {
                if (document.querySelector("#top-items .moved")) resolve();
                else requestAnimationFrame(look);
            };
            look();
        })"""
    )
    dashboard.page.keyboard.press("Space")
    expect(play).to_be_focused()
    dashboard.settle()
    index = int(dashboard.page.locator("#query-time-slider").input_value())
    assert index > 0
    swept = sweep_of(dashboard, exclude_seen=False)["instants"][index]
    assert dashboard.top_items == [item["item_id"] for item in swept["items"]] != before
    assert count_requests(dashboard, "/v1/attention") == 1


def test_play_ends_at_the_last_instant_and_restarts(dashboard: Dashboard) -> None:
    open_swept(dashboard, f"{REGULAR}&speed=fast")
    drag_to(dashboard, 196)
    slider = dashboard.page.locator("#query-time-slider")
    dashboard.page.get_by_role("button", name="Play").click()
    expect(slider).to_have_value("199")
    play = dashboard.page.get_by_role("button", name="Play")
    expect(play).to_be_visible()
    dashboard.page.locator("#speed").select_option("slow")
    play.click()
    expect(slider).to_have_value(re.compile(r"^[0-9]$"))
    dashboard.page.get_by_role("button", name="Pause").click()
    dashboard.settle()
    assert "speed" not in dashboard.page.url or "speed=slow" in dashboard.page.url


def test_reduced_motion_plays_few_steps(dashboard: Dashboard) -> None:
    dashboard.page.emulate_media(reduced_motion="reduce")
    open_swept(dashboard)
    drag_to(dashboard, 0)
    dashboard.page.get_by_role("button", name="Play").click()
    expect(dashboard.page.locator("#query-time-slider")).to_have_value("10")
    dashboard.page.get_by_role("button", name="Pause").click()
    dashboard.settle()


def test_ranks_show_their_change_since_the_last_instant(dashboard: Dashboard) -> None:
    open_swept(dashboard, f"{REGULAR}&exclude_seen=false")
    expect(dashboard.page.locator("#top-items .moved")).to_have_count(0)
    earlier, later = drag_to(dashboard, 0)["items"], drag_to(dashboard, 100)["items"]
    dashboard.settle()
    rows = dashboard.page.locator("#top-items tr")
    for rank, item in enumerate(later):
        if item not in earlier:
            expected = "new since the instant before"
        elif earlier.index(item) == rank:
            expected = ""
        else:
            change = earlier.index(item) - rank
            symbol, word = ("▴", "up") if change > 0 else ("▾", "down")
            expected = f"{symbol}{abs(change)}, {word} since the instant before"
        expect(rows.nth(rank).locator(".rank")).to_have_text(f"{rank + 1}{expected}")
    assert earlier != later


def test_a_withheld_query_time_has_no_sweep(dashboard: Dashboard) -> None:
    open_swept(dashboard, f"{REGULAR}&query_time_withheld=true")
    expect(dashboard.page.locator("#sweep-note")).to_contain_text("withheld from the model")
    expect(dashboard.page.locator("#heat-map")).to_be_hidden()
    expect(dashboard.page.get_by_role("button", name="Play")).to_be_disabled()
    dashboard.move_slider(0.25)
    assert dashboard.answer_count == 2
    assert count_requests(dashboard, "/v1/attention") == 0


def test_rows_are_named_if_there_is_room(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    label = dashboard.page.locator("#heat-map .yaxislayer-above text").first
    expect(label).to_have_text(f"{world.HOSTILE_TITLE[:23]}…")
    assert dashboard.page.locator("img").count() == 0
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None
    dashboard.page.set_viewport_size({"width": 390, "height": 900})
    expect(label).to_have_count(0)


def test_the_sweep_can_be_read_as_a_table(dashboard: Dashboard) -> None:
    open_swept(dashboard)
    dashboard.page.locator("#heat-table summary").click()
    rows = dashboard.page.locator("#heat-table tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.first.locator("td").first).to_have_text(world.HOSTILE_TITLE)
    first = sweep_of(dashboard)["instants"][0]["weights"]
    expect(rows.first.locator("td").nth(2)).to_have_text(f"{first[0] * 100:.1f} %")
    expect(rows.last.locator("td").nth(2)).to_have_text("–")
