"""Keys in the dashboard: asked for where they are needed, kept no longer than they should be."""

from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from app.auth.key_cache import Role
from app.keys.issuing import create_key, revoke_key
from tests.browser.conftest import OpenShop
from tests.browser.dashboard import Dashboard
from tests.processes import eventually

VIEW = "models.html"
UNHEARD_OF = "kairos_0000000000000000_" + "A" * 43


@dataclass(frozen=True)
class KeyedShop:
    """A shop where keys were made, so that even this machine needs one."""

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
        """What asks for a key."""
        return self.page.get_by_role("dialog", name="key is needed")

    def go(self) -> None:
        """Open the models view, whatever it asks for."""
        self.page.goto(f"{self.dashboard.service}/dashboard/{VIEW}")

    def enter(self, key: str) -> None:
        self.dialog.get_by_label("API key").fill(key)
        self.dialog.get_by_role("button", name="Use key").click()

    def current(self) -> str:
        """The current version, as somebody with a key sees it."""
        headers = {"Authorization": f"Bearer {self.read}"}
        answer = httpx.get(f"{self.dashboard.service}/v1/models", headers=headers)
        models = answer.raise_for_status().json()["models"]
        return str(next(model["version"] for model in models if model["is_current"]))

    def kept(self) -> str:
        """Everything the browser keeps for this site."""
        return str(
            self.page.evaluate(
                "JSON.stringify([sessionStorage, localStorage, document.cookie, history.state])"
            )
        )


@pytest.fixture
def keyed(open_shop: OpenShop, look_at: Callable[[str], Dashboard]) -> KeyedShop:
    server = open_shop()
    database_url = f"sqlite:///{server.log.parent / 'kairos.db'}"
    roles: tuple[Role, ...] = ("read", "admin", "ingest")
    keys = {role: create_key(database_url, f"some <b>{role}</b>", role).secret for role in roles}
    # Keys become known in the order in which they were made.
    newest = {"Authorization": f"Bearer {keys['ingest']}"}
    eventually(lambda: server.http.get("/v1/caller", headers=newest).status_code == 403)
    dashboard = look_at(server.url)
    # The browser itself notes every refusal.
    dashboard.expected_complaint = "status of 40[139]"
    return KeyedShop(dashboard, database_url, keys["read"], keys["admin"], keys["ingest"])


def test_a_read_key_is_asked_for_once_and_kept_while_the_tab_is_open(keyed: KeyedShop) -> None:
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
    assert keyed.read in keyed.kept()


def test_a_key_that_will_not_do_is_refused_in_words(keyed: KeyedShop) -> None:
    keyed.go()
    refusal = keyed.dialog.get_by_role("alert")
    keyed.enter(UNHEARD_OF)
    expect(refusal).to_contain_text("this key is not valid")
    keyed.enter(keyed.ingest)
    expect(refusal).to_contain_text("but this one has 'ingest'")
    keyed.enter("ключ")
    expect(refusal).to_contain_text("could not be checked")
    assert keyed.kept() == '[{},{},"",null]'
    keyed.dialog.get_by_label("API key").press("Escape")
    expect(keyed.dialog).to_have_count(0)
    expect(keyed.page.get_by_role("alert").first).to_contain_text("needs a valid API key")


def test_whoever_was_turned_away_comes_in_with_a_key_from_the_banner(keyed: KeyedShop) -> None:
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


def test_an_admin_key_is_asked_for_where_something_changes_and_kept_nowhere(
    keyed: KeyedShop,
) -> None:
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
    assert keyed.admin not in keyed.kept()

    page.reload()
    keyed.dashboard.settle()
    expect(page.locator(".key")).to_contain_text("read key")
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(keyed.dialog).to_contain_text("this needs a key with the role 'admin'")


def test_a_key_that_is_forgotten_is_gone(keyed: KeyedShop) -> None:
    page = keyed.page
    keyed.go()
    keyed.enter(keyed.admin)
    keyed.dashboard.settle()
    assert keyed.admin not in keyed.kept()
    page.get_by_role("button", name="Forget key").click()
    expect(page.get_by_role("button", name="Enter a key")).to_be_focused()
    page.get_by_role("button", name="Roll back").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(keyed.dialog).to_contain_text("this one has none")
    # A key that only reads does not get there, and the next question says so.
    keyed.enter(keyed.read)
    expect(keyed.dialog).to_contain_text("this needs a key with the role 'admin'")
    keyed.enter(keyed.admin)
    expect(page.locator("#done")).to_contain_text("is current now")


def test_a_key_that_was_revoked_is_let_go_of(keyed: KeyedShop) -> None:
    keyed.go()
    keyed.enter(keyed.read)
    keyed.dashboard.settle()
    revoke_key(keyed.database_url, keyed.read.split("_")[1])
    headers = {"Authorization": f"Bearer {keyed.read}"}
    url = f"{keyed.dashboard.service}/v1/caller"
    eventually(lambda: httpx.get(url, headers=headers).status_code == 401)
    keyed.page.get_by_role("button", name="Refresh").click()
    expect(keyed.dialog).to_contain_text("this key is not valid")
    assert keyed.read not in keyed.kept()
    keyed.enter(keyed.admin)
    keyed.dashboard.settle()


def test_a_refusal_that_arrives_late_finds_the_key_that_came_meanwhile(keyed: KeyedShop) -> None:
    held: list[Callable[[], None]] = []

    def hold_back_the_first(route: Route) -> None:
        # Released once the reader has entered a key for the other requests.
        if held:
            route.continue_()
        else:
            held.append(route.continue_)

    keyed.page.route("**/v1/models/changes**", hold_back_the_first)
    keyed.go()
    keyed.enter(keyed.read)
    expect(keyed.dialog).to_have_count(0)
    held[0]()
    keyed.dashboard.settle()
    expect(keyed.dialog).to_have_count(0)
    expect(keyed.page.locator("table.trail tbody tr")).to_have_count(2)


def test_whoever_said_no_is_not_asked_again_by_a_refusal_that_arrives_late(
    keyed: KeyedShop,
) -> None:
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
