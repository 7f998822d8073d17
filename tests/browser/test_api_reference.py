"""The reference of the API at /docs, in a browser."""

import re

from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard


def test_the_reference_describes_and_calls_the_api(dashboard: Dashboard) -> None:
    page = dashboard.page
    page.goto(f"{dashboard.service}/docs#/health/live")
    expect(page).to_have_url(re.compile(r"/dashboard/docs\.html#/health/live$"))
    assert page.title() == "API – Kairos"
    expect(page.locator("#operations-users-erase_user")).to_contain_text("/v1/users/{user_id}")
    # A link to one operation opens it.
    operation = page.locator("#operations-health-live")
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table")).to_contain_text('"status": "live"')
    scripts = page.evaluate("[...document.scripts].map((script) => script.src)")
    assert scripts
    assert all(address.startswith(f"{dashboard.service}/dashboard/") for address in scripts)
    assert page.locator("script:not([src])").count() == 0
