"""What is taken away from each card: pictures, the numbers of the API, and requests that run."""

from xml.etree import ElementTree

import pytest

from tests.browser.dashboard import Dashboard
from tests.browser.take_away_cards import PAGES
from tests.browser.take_away_view import (
    assert_rows,
    count_colors,
    read_rows,
    read_size,
    run_curl,
    run_python,
    take,
)

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
        assert_rows(read_rows(shop_dashboard, card.selector), card.expect(answers))
