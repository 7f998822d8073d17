"""Every page of the dashboard checked by axe-core: light and dark, narrow and wide."""

from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser import shop
from tests.browser.dashboard import Dashboard

VIEWS = {
    "index.html": "",
    "customers.html": f"#user={shop.CUSTOMER}&compare_time=2011-05-01T00:00:00Z&pin=item:sku-0138",
    "what_if.html": f"#user={shop.CUSTOMER}",
    "population.html": "",
    "kernels.html": "",
    "items.html": "#item=sku-0001&items=200",
    "models.html": "",
    "health.html": "",
}
"""Each page, with something chosen where that is possible."""

LOOKS = [
    ("light", 1280),
    ("dark", 390),
    pytest.param("light", 390, marks=pytest.mark.slow),
    pytest.param("dark", 1280, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
@pytest.mark.parametrize("view", VIEWS)
def test_a_page_has_no_serious_violation(
    shop_dashboard: Dashboard, view: str, scheme: Literal["light", "dark"], width: int
) -> None:
    page = shop_dashboard.page
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    shop_dashboard.open(VIEWS[view], view=view)
    assert find_violations(page) == []


def test_what_needs_attention_has_no_serious_violation(shop_dashboard: Dashboard) -> None:
    shop_dashboard.expected_complaint = "status of 500"
    page = shop_dashboard.page
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.route("**/v1/training-runs*", lambda route: route.fulfill(status=500, json={}))
    shop_dashboard.open(view="health.html")
    expect(page.locator("#forward #card-run")).to_be_visible()
    page.locator("#all-rates > summary").click()
    assert find_violations(page) == []


def find_violations(page: Page) -> list[str]:
    """Describe the violations of serious or critical impact."""
    found = Axe().run(page).response["violations"]
    return [_describe(fault) for fault in found if fault["impact"] in {"serious", "critical"}]


def _describe(fault: dict[str, Any]) -> str:
    """A violation with the elements that have it."""
    where = "; ".join(f"{node['target']} {node['html'][:120]}" for node in fault["nodes"][:10])
    return f"{fault['impact']} {fault['id']}: {fault['help']} ({where})"
