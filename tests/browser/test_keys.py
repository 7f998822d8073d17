"""API keys in the dashboard: prompted for when needed, stored no longer than necessary."""

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from app.auth.key_cache import Role
from app.keys.issuing import create_key, revoke_key
from tests.browser.dashboard import Dashboard
from tests.processes import Server, eventually

VIEW = "models.html"
UNKNOWN_KEY = "kairos_0000000000000000_" + "A" * 43


@dataclass(frozen=True)
class KeyedShop:
    """A service with API keys, which requests from this machine need too."""

    dashboard: Dashboard
    database_url: str
    read: str
    admin: str
    ingest: str

    @property
    def page(self) -> Page:
        return self.dashboard.page

    @property
    def dialog(self) -> Locator:
        """The dialog that prompts for a key."""
        return self.page.get_by_role("dialog", name="key is needed")

    def go(self) -> None:
        """Open the Models page without waiting for it to settle."""
        self.page.goto(f"{self.dashboard.service}/dashboard/{VIEW}")

    def enter(self, key: str) -> None:
        self.dialog.get_by_label("API key").fill(key)
        self.dialog.get_by_role("button", name="Use key").click()

    def current(self) -> str:
        """The current version, requested with the read key."""
        headers = {"Authorization": f"Bearer {self.read}"}
        answer = httpx.get(f"{self.dashboard.service}/v1/models", headers=headers)
        models = answer.raise_for_status().json()["models"]
        return str(next(model["version"] for model in models if model["is_current"]))

    def stored(self) -> str:
        """Everything the browser stores for this site."""
        return str(
            self.page.evaluate(
                "JSON.stringify([sessionStorage, localStorage, document.cookie, history.state])"
            )
        )


@pytest.fixture
def keyed(module_shop: Server, look_at: Callable[..., Dashboard]) -> KeyedShop:
    """A shared service, with keys of their own for each test."""
    server = module_shop
    database_url = f"sqlite:///{server.log.parent / 'kairos.db'}"
    roles: tuple[Role, ...] = ("read", "admin", "ingest")
    keys = {role: create_key(database_url, f"some <b>{role}</b>", role).secret for role in roles}
    # Keys become known in the order in which they were created.
    newest = {"Authorization": f"Bearer {keys['ingest']}"}
    eventually(lambda: server.http.get("/v1/caller", headers=newest).status_code == 403)
    dashboard = look_at(server.url, holds_token=False)
    # The browser logs every refused request.
    dashboard.expected_complaint = "status of 40[139]"
    return KeyedShop(dashboard, database_url, keys["read"], keys["admin"], keys["ingest"])


def test_a_read_key_is_stored_until_the_tab_is_closed(keyed: KeyedShop) -> None:
    keyed.go()
    expect(keyed.dialog).to_have_count(1)
    expect(keyed.dialog).to_contain_text("a request needs a valid API key, but this one has none")
    keyed.enter(keyed.read)
    keyed.dashboard.settle()
    expect(keyed.dialog).to_have_count(0)
    expect(keyed.page.locator(".key")).to_contain_text("read key some <b>read</b>")
    expect(keyed.page.locator("#model-version")).to_have_text(keyed.current())
    keyed.page.reload()
    keyed.dashboard.settle()
    expect(keyed.page.locator("#model-version")).to_have_text(keyed.current())
    assert keyed.read in keyed.stored()


def test_an_unsuitable_key_is_refused_with_the_reason(keyed: KeyedShop) -> None:
    keyed.go()
    refusal = keyed.dialog.get_by_role("alert")
    keyed.enter(UNKNOWN_KEY)
    expect(refusal).to_contain_text("this key is not valid")
    keyed.enter(keyed.ingest)
    expect(refusal).to_contain_text("but this one has 'ingest'")
    keyed.enter("ключ")
    expect(refusal).to_contain_text("could not be checked")
    assert keyed.stored() == '[{},{},"",null]'
    keyed.dialog.get_by_label("API key").press("Escape")
    expect(keyed.dialog).to_have_count(0)
    expect(keyed.page.get_by_role("alert").first).to_contain_text("needs a valid API key")


def test_a_key_can_be_entered_from_the_banner(keyed: KeyedShop) -> None:
    keyed.go()
    keyed.dialog.get_by_role("button", name="Cancel").click()
    change = keyed.page.get_by_role("button", name="Enter a key")
    change.click()
    keyed.dialog.get_by_label("API key").press("Escape")
    expect(change).to_be_focused()
    change.press("Enter")
    keyed.enter(keyed.read)
    keyed.dashboard.settle()
    expect(keyed.page.locator("#model-version")).to_have_text(keyed.current())
    expect(keyed.page.locator("#problem")).to_be_hidden()


def test_changes_need_an_admin_key_that_is_not_stored(keyed: KeyedShop) -> None:
    page = keyed.page
    keyed.go()
    keyed.enter(keyed.read)
    keyed.dashboard.settle()
    before = keyed.current()
    activate = page.get_by_role("button", name="Activate").first
    activate.click()
    confirm = page.get_by_role("dialog", name="Activate this version?")
    agree = confirm.get_by_role("button", name="Activate")
    agree.click()
    expect(keyed.dialog).to_contain_text("this needs a key with the role 'admin'")

    keyed.dialog.get_by_label("API key").press("Escape")
    expect(keyed.dialog).to_have_count(0)
    expect(confirm.get_by_role("alert")).to_contain_text("this one has 'read'")
    expect(agree).to_be_focused()
    assert keyed.current() == before

    agree.press("Enter")
    keyed.enter(keyed.read)
    expect(keyed.dialog.get_by_role("alert")).to_contain_text("enter one with the role admin")
    keyed.enter(keyed.admin)
    expect(page.locator("#done")).to_contain_text(f"in place of {before}")
    keyed.dashboard.settle()
    assert keyed.current() != before
    expect(page.locator("table.trail tbody tr").first).to_contain_text("some <b>admin</b>")
    expect(page.locator(".key")).to_contain_text("admin key some <b>admin</b>")
    assert keyed.admin not in keyed.stored()

    page.reload()
    keyed.dashboard.settle()
    expect(page.locator(".key")).to_contain_text("read key")
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(keyed.dialog).to_contain_text("this needs a key with the role 'admin'")


def test_a_forgotten_key_is_dropped(keyed: KeyedShop) -> None:
    page = keyed.page
    keyed.go()
    keyed.enter(keyed.admin)
    keyed.dashboard.settle()
    assert keyed.admin not in keyed.stored()
    page.get_by_role("button", name="Forget key").click()
    expect(page.get_by_role("button", name="Enter a key")).to_be_focused()
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(keyed.dialog).to_contain_text("this one has none")
    # A read key is not enough, and the next prompt says so.
    keyed.enter(keyed.read)
    expect(keyed.dialog).to_contain_text("this needs a key with the role 'admin'")
    keyed.enter(keyed.admin)
    expect(page.locator("#done")).to_contain_text("is current now")


def test_a_revoked_key_is_dropped(keyed: KeyedShop) -> None:
    keyed.go()
    keyed.enter(keyed.read)
    keyed.dashboard.settle()
    revoke_key(keyed.database_url, keyed.read.split("_")[1])
    headers = {"Authorization": f"Bearer {keyed.read}"}
    url = f"{keyed.dashboard.service}/v1/caller"
    eventually(lambda: httpx.get(url, headers=headers).status_code == 401)
    keyed.page.get_by_role("button", name="Refresh").click()
    expect(keyed.dialog).to_contain_text("this key is not valid")
    assert keyed.read not in keyed.stored()
    keyed.enter(keyed.admin)
    keyed.dashboard.settle()


def test_a_late_refusal_uses_the_key_entered_meanwhile(keyed: KeyedShop) -> None:
    held: list[Callable[[], None]] = []

    def delay_the_first(route: Route) -> None:
        # Continued once a key was entered for the other requests.
        if held:
            route.continue_()
        else:
            held.append(route.continue_)

    keyed.page.route("**/v1/models/changes**", delay_the_first)
    keyed.go()
    keyed.enter(keyed.read)
    expect(keyed.dialog).to_have_count(0)
    held[0]()
    keyed.dashboard.settle()
    expect(keyed.dialog).to_have_count(0)
    headers = {"Authorization": f"Bearer {keyed.read}"}
    answer = httpx.get(f"{keyed.dashboard.service}/v1/models/changes", headers=headers)
    changes = answer.raise_for_status().json()["changes"]
    assert len(changes) >= 2
    expect(keyed.page.locator("table.trail tbody tr")).to_have_count(len(changes))


def test_a_late_refusal_does_not_prompt_after_cancelling(keyed: KeyedShop) -> None:
    held: list[Callable[[], None]] = []
    path = "**/v1/models/changes**"
    keyed.page.route(path, lambda route: held.append(route.continue_))
    with keyed.page.expect_request(path):
        keyed.go()
    keyed.dialog.get_by_role("button", name="Cancel").click()
    with keyed.page.expect_response(path) as refusal:
        held[0]()
    assert refusal.value.status == 401
    keyed.page.wait_for_timeout(500)
    expect(keyed.page.get_by_role("alert").first).to_contain_text("needs a valid API key")
    expect(keyed.dialog).to_have_count(0)
    keyed.page.unroute(path)
    keyed.page.get_by_role("button", name="Refresh").click()
    expect(keyed.dialog).to_have_count(1)
