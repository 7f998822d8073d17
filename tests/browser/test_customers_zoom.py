"""The zoom of the time axis on the Customers page."""

import re
from datetime import datetime
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.browser import shop, world
from tests.browser.dashboard import Dashboard

VIEW = "customers.html"
ZOOMED = "&axis_from=2025-01-20T00:00:00Z&axis_until=2025-02-10T00:00:00Z"
AT = "2025-02-01T12:00:00Z"


def usual_step(instants: list[str]) -> float:
    """The most frequent step between swept instants, in seconds."""
    steps = [hours_between(*pair) * 3600 for pair in pairwise(instants)]
    return max(set(steps), key=steps.count)


def hours_between(one: str, other: str) -> float:
    span = datetime.fromisoformat(other) - datetime.fromisoformat(one)
    return span.total_seconds() / 3600


def test_a_part_of_the_axis_is_swept_in_smaller_steps(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(f"#user={shop.CUSTOMER}", view=VIEW)
    whole = shop_dashboard.swept_instants
    shown = shop_dashboard.query_time
    for _ in range(2):
        shop_dashboard.page.get_by_role("button", name="Zoom in").click()
        shop_dashboard.settle()
    part = shop_dashboard.swept_instants
    assert usual_step(part) < usual_step(whole)
    assert shop_dashboard.query_time == shown
    address = dict(re.findall(r"(axis_\w+)=([^&]+)", shop_dashboard.page.url))
    first, last = (address[name].replace("%3A", ":") for name in ("axis_from", "axis_until"))
    assert all(first <= instant <= last for instant in part)
    body = {"user_id": shop.CUSTOMER, "query_time": shown, "exclude_seen": False}
    answer = shop_dashboard.api("/v1/recommendations", body)
    assert shop_dashboard.top_items == [item["item_id"] for item in answer["items"]]
    shop_dashboard.page.get_by_role("button", name="whole").click()
    shop_dashboard.settle()
    assert shop_dashboard.swept_instants == whole
    assert "axis_" not in shop_dashboard.page.url


def test_a_link_restores_the_part_of_the_axis(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}&query_time={AT}{ZOOMED}", view=VIEW)
    assert all("2025-01-20" <= text[:10] <= "2025-02-10" for text in dashboard.swept_instants)
    slider = dashboard.page.locator("#query-time-slider")
    slider.focus()
    slider.press("Home")
    dashboard.settle()
    assert dashboard.query_time >= "2025-01-20"
    slider.press("End")
    dashboard.settle()
    assert dashboard.query_time <= "2025-02-10T00:00:00Z"


def test_the_slider_keeps_to_the_part_that_is_compared_outside(dashboard: Dashboard) -> None:
    other = "&compare_time=2025-03-10T00:00:00Z"
    dashboard.open(f"#user={world.REGULAR}&query_time={AT}{ZOOMED}{other}", view=VIEW)
    assert dashboard.swept_instants[-1].startswith("2025-03-10")
    expect(dashboard.page.locator("#ranking-summary")).to_contain_text("compared with 10 Mar 2025")
    slider = dashboard.page.locator("#query-time-slider")
    assert int(slider.get_attribute("max") or 0) == dashboard.swept_milliseconds[-2]


@pytest.mark.parametrize("at", ["2025-03-05T06:30:00", "2025-01-02T00:00:00"])
def test_a_time_outside_moves_the_part_of_the_axis(dashboard: Dashboard, at: str) -> None:
    dashboard.open(f"#user={world.REGULAR}&query_time={AT}{ZOOMED}", view=VIEW)
    field = dashboard.page.locator("#query-time-field")
    field.fill(at)
    field.press("Enter")
    dashboard.settle()
    assert field.input_value().startswith(at[:16])
    instants = dashboard.swept_instants
    assert instants[0] < at < instants[-1]
    assert hours_between(instants[0], instants[-1]) / 24 == pytest.approx(21, abs=1)


def test_keys_zoom_until_nothing_shorter_can_be_drawn(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}", view=VIEW)
    dashboard.page.locator("#basket-rows").focus()
    into = dashboard.page.get_by_role("button", name="Zoom in")
    for _ in range(20):
        if into.is_disabled():
            break
        dashboard.page.keyboard.press("+")
        dashboard.settle()
    expect(into).to_be_disabled()
    assert 5 < hours_between(dashboard.swept_instants[0], dashboard.swept_instants[-1]) <= 6
    dashboard.page.keyboard.press("-")
    dashboard.settle()
    expect(into).to_be_enabled()
