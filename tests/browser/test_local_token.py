"""The link with the local token: it opens the dashboard of a service without keys."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, expect

from tests.app import tiny_bundle
from tests.processes import Server, processes

EMPTY = '[{},{},"",null]'


@pytest.fixture(scope="module")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without keys."""
    directory = tmp_path_factory.mktemp("keyless")
    tiny_bundle.publish(directory / "bundles", seed=1)
    with processes(directory, directory / "bundles") as start:
        yield start()


@pytest.fixture
def sent(page: Page) -> list[Request]:
    """The requests of the page."""
    requests: list[Request] = []
    # Playwright cannot hold a method of a built-in type.
    page.on("request", lambda request: requests.append(request))  # noqa: PLW0108
    return requests


def link(server: Server, view: str = "") -> str:
    return f"{server.url}/dashboard/{view}#token={server.token}"


def expect_settled(page: Page) -> None:
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator(".key")).to_contain_text("local token")


def stored(page: Page) -> str:
    return str(
        page.evaluate("JSON.stringify([sessionStorage, localStorage, document.cookie, null])")
    )


def test_the_link_opens_the_dashboard_and_leaves_the_address(
    server: Server, page: Page, sent: list[Request]
) -> None:
    page.goto(link(server, "models.html"))
    expect_settled(page)
    assert server.token not in page.url
    assert server.token not in page.evaluate("document.referrer")
    for request in sent:
        assert server.token not in request.url
        assert not request.headers.get("referer")
    assert server.token not in server.log.read_text()


def test_other_views_of_the_tab_keep_the_token(server: Server, page: Page) -> None:
    page.goto(link(server, "models.html"))
    expect_settled(page)
    page.get_by_role("link", name="Operations").click()
    expect(page).to_have_url(f"{server.url}/dashboard/health.html")
    expect(page.locator(".key")).to_contain_text("local token")
    assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


def test_a_tab_without_the_token_says_how_to_get_one(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/dashboard/models.html")
    dialog = page.get_by_role("dialog", name="key is needed")
    expect(dialog).to_contain_text("open the link that kairos dashboard prints")
    assert stored(page) == EMPTY
    dialog.get_by_label("API key").fill(server.token)
    dialog.get_by_role("button", name="Use key").click()
    expect_settled(page)


def test_the_link_works_in_a_tab_that_shows_the_page(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/dashboard/models.html")
    expect(page.get_by_role("dialog")).to_have_count(1)
    page.goto(link(server, "models.html"))
    expect_settled(page)
    assert server.token not in page.url


def test_what_is_no_token_is_not_kept(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/dashboard/models.html#token=kairos_0000000000000000_x")
    expect(page.get_by_role("dialog")).to_have_count(1)
    assert "token" not in page.url
    assert stored(page) == EMPTY
