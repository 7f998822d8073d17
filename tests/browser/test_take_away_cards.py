"""What is taken away from each card: pictures, the numbers of the API, and requests that run."""

from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.take_away_cards import PAGES
from tests.browser.take_away_view import (
    assert_rows,
    count_colors,
    open_menu,
    read_rows,
    read_size,
    run_curl,
    run_python,
    take,
)
from tests.processes import Server

SVG = "{http://www.w3.org/2000/svg}"
SCALE = 2
"""Pixels of a PNG file per pixel of the SVG file."""


def open_page(dashboard: Dashboard, view: str) -> Dashboard:
    """Open a page with something to take away from each of its cards."""
    file, _, fragment = view.partition("#")
    dashboard.open("" if fragment in {"", "newest"} else f"#{fragment}", view=file)
    page = dashboard.page
    if fragment == "newest":
        page.locator("#version").select_option(index=0)
        dashboard.settle()
    for button in page.locator("#recipients-find, #examples-find").filter(visible=True).all():
        button.click()
        dashboard.settle()
        dashboard.wait_until(
            "() => document.querySelector('#recipients-found, #examples-found').childElementCount"
        )
    if file == "what_if.html":
        page.locator("#history-card").get_by_role("button", name="Remove").first.click()
        dashboard.settle()
    return dashboard


@pytest.mark.parametrize("view", PAGES)
def test_a_card_becomes_a_picture(shop_dashboard: Dashboard, view: str) -> None:
    open_page(shop_dashboard, view)
    for card in PAGES[view]:
        root = ElementTree.fromstring(take(shop_dashboard, card.selector, "SVG"))
        text = " ".join(" ".join(one.itertext()) for one in root.iter(f"{SVG}text"))
        for label in (card.title, *card.labels):
            assert label in text, card
        picture = take(shop_dashboard, card.selector, "PNG")
        size = (round(float(root.attrib[side]) * SCALE) for side in ("width", "height"))
        assert read_size(picture) == tuple(size), card
        assert count_colors(shop_dashboard, picture) > 10, card


@pytest.mark.parametrize("view", PAGES)
def test_requests_give_the_numbers_of_the_file(shop_dashboard: Dashboard, view: str) -> None:
    open_page(shop_dashboard, view)
    for card in PAGES[view]:
        answers = run_curl(shop_dashboard, card.selector)
        assert run_python(shop_dashboard, card.selector) == answers
        rows = read_rows(shop_dashboard, card.selector)
        assert_rows(rows, card.expect(answers), is_ordered=card.is_ordered)


def test_a_panel_of_operations_is_taken_away(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=1", view="health.html")
    panel = ".panel:has(#chart-requests)"
    shop_dashboard.page.locator(f"{panel} .plot.js-plotly-plot").scroll_into_view_if_needed()
    rows = read_rows(shop_dashboard, panel)
    assert rows[0]["time"].endswith("Z")
    assert all(float(row["requests, per second"]) >= 0 for row in rows)
    assert "http_requests_total" in str(run_curl(shop_dashboard, panel))
    assert count_colors(shop_dashboard, take(shop_dashboard, panel, "PNG")) > 10


def test_a_menu_works_by_keyboard(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open(view="index.html").page
    menu = page.locator("#changing .menu")
    menu.locator("summary").press("Enter")
    expect(menu.get_by_role("button")).to_have_count(6)
    page.keyboard.press("Tab")
    expect(menu.get_by_role("button", name="Picture (PNG)")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu.locator("summary")).to_be_focused()
    expect(menu.get_by_role("button")).to_have_count(0)


@pytest.mark.parametrize("view", PAGES)
def test_open_menus_fit_a_narrow_screen(shop_dashboard: Dashboard, view: str) -> None:
    page = shop_dashboard.page
    page.set_viewport_size({"width": 390, "height": 900})
    open_page(shop_dashboard, view)
    for card in PAGES[view]:
        box = open_menu(shop_dashboard, card.selector).locator("ul").bounding_box()
        assert box is not None
        assert box["x"] >= 0, card
        assert page.evaluate("document.documentElement.scrollWidth") == 390, card
        page.keyboard.press("Escape")


def test_a_card_without_numbers_says_why(
    look_at: Callable[[str], Dashboard], empty_service: Server
) -> None:
    dashboard = look_at(empty_service.url)
    dashboard.expected_complaint = "status of 503"
    reasons = {
        "index.html": {"#serving": "No model serves yet."},
        "models.html": {"#trail-card": "the card has no numbers"},
        "items.html": {"#map-card": "No model is published yet"},
    }
    for view, cards in reasons.items():
        dashboard.open(view=view)
        for card, why in cards.items():
            menu = open_menu(dashboard, card)
            expect(menu.get_by_role("status")).to_contain_text(why)
            expect(menu.get_by_role("button")).to_have_count(0)


def test_an_open_menu_has_no_serious_violation(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view="index.html")
    open_menu(shop_dashboard, "#serving")
    found = Axe().run(shop_dashboard.page).response["violations"]
    assert [fault["id"] for fault in found if fault["impact"] in {"serious", "critical"}] == []
