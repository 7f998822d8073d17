"""The dashboard through the proxy, with a key."""

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import expect

from app.auth.key_cache import generate_key
from app.dashboard.pages import PAGES
from tests.browser.conftest import browser, chromium, context, look_at, page  # noqa: F401
from tests.browser.dashboard import Dashboard
from tests.deployment.proxy import Site, needs_nginx, store_key
from tests.processes import ROOT, eventually

# A browser in this process keeps an event loop running, which would break other tests.
pytestmark = [needs_nginx, pytest.mark.browser, pytest.mark.timeout(300)]

STATIC = ROOT / "app" / "dashboard" / "static"
FILES = [
    *sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()),
    *(view.file for view in PAGES),
]
SECURITY_HEADERS = (
    "content-security-policy",
    "content-type",
    "cross-origin-opener-policy",
    "permissions-policy",
    "referrer-policy",
    "x-content-type-options",
)


def test_files_pass_unchanged_with_their_security_headers(site: Site) -> None:
    replica = site.replicas[0].url
    with (
        httpx.Client(base_url=site.proxy.url) as outside,
        httpx.Client(base_url=replica) as inside,
    ):
        for name in [*FILES, ""]:
            direct = inside.get(f"/dashboard/{name}")
            # The second response is the proxy's cached copy.
            for response in (outside.get(f"/dashboard/{name}"), outside.get(f"/dashboard/{name}")):
                assert response.status_code == 200, name
                assert response.content == direct.content, name
                headers = {header: response.headers.get(header) for header in SECURITY_HEADERS}
                assert headers == {header: direct.headers[header] for header in SECURITY_HEADERS}, (
                    name
                )


def test_the_caller_is_read_through_the_proxy(site: Site) -> None:
    caller = site.proxy.http.get("/v1/caller").json()
    assert (caller["role"], caller["has_key"]) == ("admin", True)
    assert httpx.get(f"{site.proxy.url}/v1/caller").status_code == 401
    assert httpx.get(f"{site.proxy.url}/v1/metrics").status_code == 401


def test_metrics_name_their_replica(site: Site) -> None:
    replicas = {site.proxy.http.get("/v1/metrics").json()["instance"] for _ in range(30)}
    assert len(replicas) == len(site.replicas)


def test_a_page_opens_with_a_read_key_and_stores_it(
    site: Site,
    look_at: Callable[[str], Dashboard],  # noqa: F811
) -> None:
    key = read_key(site)
    dashboard = look_at(site.proxy.url)
    dashboard.expected_complaint = "401"
    tab = dashboard.page
    tab.goto(f"{site.proxy.url}/dashboard/health.html#interval=1")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use key").click()
    expect(tab.locator("#polled")).to_contain_text("2 processes polled", timeout=60_000)
    dashboard.expected_complaint = None
    dashboard.complaints.clear()
    dashboard.open("#interval=2", view="health.html")
    expect(tab.locator("#polled")).to_contain_text("polled, last at")
    expect(dialog).to_have_count(0)


def read_key(site: Site) -> str:
    """A read key that every replica accepts."""
    key_id, key = generate_key()
    store_key(f"sqlite:///{site.proxy.log.parent / 'kairos.db'}", key_id, key, role="read")
    bearer = {"Authorization": f"Bearer {key}"}

    def is_accepted() -> bool:
        responses = (httpx.get(f"{each.url}/v1/caller", headers=bearer) for each in site.replicas)
        return all(response.is_success for response in responses)

    eventually(is_accepted)
    return key
