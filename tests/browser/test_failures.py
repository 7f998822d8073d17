"""An endpoint that fails: the page says so, keeps the rest, and requests it again."""

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from app.dashboard import pages
from tests.browser.dashboard import Dashboard
from tests.browser.failing import (
    BACKGROUND,
    DETAIL,
    UNREACHED,
    VIEWS,
    Endpoint,
    Failure,
    View,
    name_endpoints,
    wait_until_idle,
)
from tests.browser.odd_models import OddVersions

FOLDER = Path(pages.__file__).parent
"""Of the dashboard's templates."""
CASES = [
    pytest.param(
        view,
        endpoint,
        id=f"{view.name}: {endpoint.name}",
        marks=() if view.is_fast else pytest.mark.slow,
    )
    for view in VIEWS
    for endpoint in view.endpoints
]


def test_every_page_is_in_the_table() -> None:
    assert {view.page for view in VIEWS} == {name for name, _ in pages.render_pages(FOLDER)}


@pytest.mark.parametrize(("view", "endpoint"), CASES)
def test_a_failing_endpoint_leaves_the_rest(
    odd_dashboard: Dashboard, odd_versions: OddVersions, view: View, endpoint: Endpoint
) -> None:
    odd_dashboard.expected_complaint = r"status of (404|500)|net::ERR_FAILED"
    requested: set[str] = set()
    odd_dashboard.page.on("request", lambda request: requested.update(name_endpoints(request)))
    failure = Failure(odd_dashboard.page, endpoint.name)
    if view.act is None:
        failure.kind = "status 500"
    _open(odd_dashboard, view, odd_versions)
    wait_until_idle(odd_dashboard)
    if view.act is not None:
        odd_dashboard.settle()
        requested.clear()
        failure.kind = "status 500"
        view.act(odd_dashboard.page, odd_versions)
    _expect_failure(odd_dashboard, endpoint, DETAIL)
    failure.kind = "aborted"
    _request_again(odd_dashboard, endpoint)
    _expect_failure(odd_dashboard, endpoint, UNREACHED)
    failure.kind = None
    _request_again(odd_dashboard, endpoint)
    for sentence in (DETAIL, UNREACHED):
        expect(odd_dashboard.page.get_by_text(sentence).locator("visible=true")).to_have_count(0)
    odd_dashboard.settle()
    # No endpoint that the view requests is missing from the table.
    tried = {one.name for one in view.endpoints} | set(view.also)
    assert requested - BACKGROUND <= tried


def _open(dashboard: Dashboard, view: View, versions: OddVersions) -> None:
    fragment = dict(view.fragment)
    if view.version is not None:
        fragment["version"] = getattr(versions, view.version)
    dashboard.page.goto(f"{dashboard.service}/dashboard/{view.page}#{urlencode(fragment)}")


def _expect_failure(dashboard: Dashboard, endpoint: Endpoint, sentence: str) -> None:
    page = dashboard.page
    if endpoint.says:
        expect(page.get_by_text(sentence).locator("visible=true").first).to_be_visible()
    wait_until_idle(dashboard)
    if endpoint.keeps is not None:
        kept = page.locator(f"main:not(.stale) :is({endpoint.keeps})").first
        expect(kept).to_be_visible()
        expect(kept).not_to_be_empty()
    if endpoint.removes is not None:
        expect(page.locator(endpoint.removes).locator("visible=true")).to_have_count(0)


def _request_again(dashboard: Dashboard, endpoint: Endpoint) -> None:
    if endpoint.button is not None:
        dashboard.page.get_by_role("button", name=endpoint.button).first.click()
