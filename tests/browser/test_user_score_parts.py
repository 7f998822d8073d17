"""The User page with a model that names the parts of its scores."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser import odd_models, world
from tests.browser.dashboard import Dashboard

AT = "2026-03-05T12:00:00Z"
FRAGMENT = f"#user={odd_models.USER}&query_time={AT}&exclude_seen=false"


def read_words(dashboard: Dashboard) -> list[str]:
    words = dashboard.page.locator("#top-items .score-parts").all_inner_texts()
    return [" ".join(text.split()) for text in words]


def name_shares(item: dict[str, Any]) -> list[str]:
    return [
        f"{part['name']} {part['share'] * 100:.0f} %"
        for part in item["parts"]
        if part["share"] >= 0.005
    ]


def test_every_item_shows_the_parts_of_its_score(wide_dashboard: Dashboard) -> None:
    wide_dashboard.open(FRAGMENT)
    items = wide_dashboard.last_answer["items"]
    words = read_words(wide_dashboard)
    assert len(words) == len(items)
    for item, text in zip(items, words, strict=True):
        positions = [text.index(shown) for shown in name_shares(item)]
        assert positions == sorted(positions)
    # An item of the history is a repeat; the base of others names its terms.
    assert any(text.startswith("repeats") for text in words)
    assert any(text.startswith("base 100 % (") and "popularity" in text for text in words)
    expect(wide_dashboard.page.locator("#parts-note")).to_be_visible()


def test_the_bar_is_as_wide_as_the_shares(wide_dashboard: Dashboard) -> None:
    wide_dashboard.open(FRAGMENT)
    item = wide_dashboard.last_answer["items"][0]
    for part in item["parts"]:
        bar = wide_dashboard.page.locator(f"#top-items rect.{part['name']}").first
        shown = 100 * part["share"] if part["share"] >= 0.005 else 0
        assert float(str(bar.get_attribute("width"))) == pytest.approx(shown)


def test_rows_keep_their_height_while_the_slider_moves(wide_dashboard: Dashboard) -> None:
    wide_dashboard.open(FRAGMENT)
    wide_dashboard.page.wait_for_selector("#sweep[aria-busy=false]")
    count = len(wide_dashboard.last_answer["items"])
    wide_dashboard.move_slider(0.5)
    # The instants of a sweep have no parts, but their line.
    expect(wide_dashboard.page.locator("#top-items .score-parts")).to_have_count(count)
    wide_dashboard.settle()
    assert all(read_words(wide_dashboard))


def test_other_models_show_no_parts(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}")
    expect(dashboard.page.locator("#top-items tr").first).to_be_visible()
    expect(dashboard.page.locator("#top-items .score-parts")).to_have_count(0)
    expect(dashboard.page.locator("#parts-note")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_parts_have_no_serious_violation(wide_dashboard: Dashboard, scheme: Any) -> None:
    wide_dashboard.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    wide_dashboard.open(FRAGMENT)
    found = Axe().run(wide_dashboard.page).response["violations"]
    assert [fault["id"] for fault in found if fault["impact"] in {"serious", "critical"}] == []
