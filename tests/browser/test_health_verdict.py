"""The Operations page is quiet while all is well, and shows first what needs attention."""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from app.auth.key_cache import generate_key
from tests.browser.dashboard import Dashboard
from tests.browser.health_view import VIEW, Look, OpenShop, concerns, send_traffic, wait_for
from tests.deployment.proxy import store_key
from tests.processes import LOCAL_TOKEN, Server, eventually

SCREEN = {"width": 1440, "height": 900}
ALL_WELL = "All is well."


def verdict(page: Page) -> Locator:
    return page.locator("#verdict")


def forward(page: Page) -> list[str]:
    """The headings of what came forward."""
    return [text.strip() for text in page.locator("#forward h2").all_text_contents()]


def fail(route: Route) -> None:
    route.fulfill(status=500, json={"detail": "the disk is full"})


@pytest.fixture
def quiet(shop_dashboard: Dashboard) -> Iterator[Dashboard]:
    """The page of a service without traffic, after two polls."""
    shop_dashboard.page.set_viewport_size(SCREEN)
    shop_dashboard.open("#interval=1", view=VIEW)
    expect(verdict(shop_dashboard.page)).to_have_text(ALL_WELL)
    yield shop_dashboard
    shop_dashboard.page.set_viewport_size({"width": 1280, "height": 900})


def test_all_well_is_one_sentence_and_one_screen(quiet: Dashboard) -> None:
    page = quiet.page
    assert quiet.api("/health/ready")["status"] == "ready"
    assert page.locator("h1").text_content() == "Operations"
    assert forward(page) == []
    height, width = page.evaluate(
        "[document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
    )
    assert (height, width) == (SCREEN["height"], SCREEN["width"])
    assert page.locator("details[open]").count() == 0
    shown = [text.strip() for text in page.locator("#view h2:visible").all_text_contents()]
    cards = ["Ready", "Model", "Retraining", "Newest change"]
    figures = ["Requests", "Recommendation latency", "Error responses"]
    assert shown == [*cards, *figures, "All rates"]


def test_a_card_says_in_two_lines_what_the_api_returns(quiet: Dashboard) -> None:
    page = quiet.page
    (run,) = quiet.api("/v1/training-runs?limit=1")["runs"]
    (change,) = quiet.api("/v1/models/changes?limit=1")["changes"]
    (served,) = [one for one in quiet.api("/v1/models")["models"] if one["is_serving"]]
    expect(page.locator("#run-summary")).to_contain_text(run["result"])
    expect(page.locator("#run-summary")).to_contain_text(run["reason"])
    expect(page.locator("#change-summary")).to_contain_text(f"by {change['actor']}")
    expect(page.locator("#change-summary")).to_contain_text(change["version"])
    expect(page.locator("#model-summary")).to_contain_text(served["version"])
    expect(page.locator("#ready-summary")).to_contain_text("The service answers requests.")
    expect(page.locator("#run")).to_be_hidden()
    page.locator("#card-run summary").click()
    expect(page.locator("#run")).to_contain_text(run["run_id"])
    expect(page.locator("#run-note")).to_contain_text("KairosRetrainingFailed")


def test_all_rates_hold_every_other_panel(quiet: Dashboard) -> None:
    page = quiet.page
    page.locator("#all-rates > summary").click()
    inside = page.locator("#all-rates h2:visible").all_text_contents()
    assert inside == [
        *("All rates", "Shed requests", "Wait for an inference thread", "Latency by stage"),
        *("Fallback responses", "Events received", "Age of events on arrival"),
        *("Overlap with the shadow", "By operation"),
    ]
    limits = page.locator("#all-rates").text_content() or ""
    for alert in ("KairosShedding", "KairosFallbackJump", "KairosEventsLate"):
        assert f"({alert})" in limits


def test_charts_stay_within_cards_that_become_narrower(quiet: Dashboard) -> None:
    page = quiet.page
    page.set_viewport_size({"width": 1800, "height": 900})
    expect(page.locator("#chart-requests .main-svg").first).to_be_visible()
    page.set_viewport_size(SCREEN)
    wait_for(page, lambda: charts_fit(page), within_seconds=10)


def charts_fit(page: Page) -> bool:
    fits: bool = page.evaluate(
        """() => {
            const right = (node) => node.getBoundingClientRect().right;
            const charts = [...document.querySelectorAll("#figures .main-svg")];
            return charts.every((chart) => right(chart) <= right(chart.closest("section")));
        }"""
    )
    return fits


def test_before_rates_nothing_is_said_to_be_well(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.page
    shop_dashboard.open("#interval=60", view=VIEW)
    expect(page.locator("#polled")).to_contain_text("since start")
    expect(verdict(page)).to_contain_text("Nothing needs attention so far; rates follow")


def test_bad_panels_come_forward_and_the_verdict_links_them(
    look_at: Look, module_shop: Server
) -> None:
    dashboard = look_at(module_shop.url).open("#interval=1", view=VIEW)
    page = dashboard.page
    expect(page.locator("#polled")).to_contain_text("in the last")
    # A fifth of fallbacks, and events of 5,000 seconds ago: beyond half a limit, and a whole one.
    send_traffic(module_shop.url)
    expect(page.locator("#forward #state-lag")).to_have_text("bad")
    expect(page.locator("#forward #state-fallbacks")).to_have_text("watch")
    page.get_by_role("button", name="Pause").click()
    expect(verdict(page)).to_contain_text("Polling is paused")
    names = concerns(page)
    assert names[0] == ("Age of events on arrival", "bad")
    assert ("Fallback responses", "watch") in names
    assert [name for name, _ in names] == forward(page)
    things = "thing needs" if len(names) == 1 else "things need"
    expect(verdict(page)).to_contain_text(f"{len(names)} {things} attention: ")
    # Nothing else has a state that is not ok, and what came forward is shown in full.
    badges = page.locator("main .state.watch, main .state.bad, main .state.unknown")
    assert badges.count() == len(names)
    expect(page.locator("#forward #newest-lag")).to_be_visible()
    expect(page.locator("#card-lag").get_by_text("bad above 1 h")).to_be_visible()
    assert page.locator("#all-rates").get_attribute("open") is None
    address = page.url
    verdict(page).get_by_role("link", name="Fallback responses").press("Enter")
    expect(page.locator("#card-fallbacks")).to_be_focused()
    assert page.url == address


@pytest.mark.parametrize(
    ("path", "name", "card"),
    [
        ("training-runs", "Retraining", "#card-run"),
        ("models/changes", "Newest change", "#card-change"),
    ],
)
def test_a_failing_endpoint_needs_attention_until_it_responds(
    quiet: Dashboard, path: str, name: str, card: str
) -> None:
    page = quiet.page
    quiet.expected_complaint = "status of 500"
    page.route(re.compile(f"/v1/{path}"), fail)
    page.reload()
    expect(verdict(page)).to_have_text(f"1 thing needs attention: {name} (unknown).")
    shown = page.locator(f"#forward {card}")
    expect(shown).to_contain_text(f"v1/{path} failed: the disk is full")
    expect(shown.locator("details")).to_have_attribute("open", "")
    page.unroute_all()
    expect(verdict(page)).to_have_text(ALL_WELL)
    expect(page.locator(f".facts {card} details")).not_to_have_attribute("open", "")


def test_metrics_that_fail_are_never_all_well(quiet: Dashboard) -> None:
    page = quiet.page
    quiet.expected_complaint = "status of 500"
    page.route("**/v1/metrics", fail)
    expect(verdict(page)).to_have_text("1 thing needs attention: Rates (unknown).")
    expect(page.locator("#problem")).to_contain_text("v1/metrics failed: the disk is full.")
    # From the start: what does not depend on the metrics is shown.
    page.reload()
    expect(verdict(page)).to_have_text("1 thing needs attention: Rates (unknown).")
    expect(page.locator("#run-result")).to_have_text("promoted")
    expect(page.locator("#model-summary")).to_have_text("Not known without the metrics.")
    page.unroute_all()
    expect(verdict(page)).to_have_text(ALL_WELL)
    expect(page.locator("#problem")).to_be_hidden()


def test_a_response_that_cannot_be_read_is_a_failure(quiet: Dashboard) -> None:
    page = quiet.page
    quiet.expected_complaint = "TypeError"
    page.route("**/v1/metrics", lambda route: route.fulfill(json={}))
    page.route("**/health/ready", lambda route: route.fulfill(json={}))
    wait_for(page, lambda: concerns(page) == [("Ready", "bad"), ("Rates", "unknown")])
    expect(page.locator("#card-ready")).to_contain_text("health/ready failed: status 200")
    page.unroute_all()
    expect(verdict(page)).to_have_text(ALL_WELL)


def test_a_service_that_hangs_is_not_well(quiet: Dashboard) -> None:
    page = quiet.page
    page.route(re.compile("/v1/metrics|/health/ready"), lambda _: None)
    wait_for(page, lambda: concerns(page) == [("Ready", "bad"), ("Rates", "unknown")])
    expect(page.locator("#problem")).to_contain_text("cannot be reached")
    page.unroute_all()
    expect(verdict(page)).to_have_text(ALL_WELL)


def test_a_fault_of_a_ready_service_is_watched(quiet: Dashboard) -> None:
    ready = quiet.api("/health/ready")
    fault = "impressions: failed in each of the last runs; see the service's log"
    quiet.page.route("**/health/ready", lambda route: route.fulfill(json=ready | {"tasks": fault}))
    expect(verdict(quiet.page)).to_have_text("1 thing needs attention: Ready (watch).")
    expect(quiet.page.locator("#ready-summary")).to_contain_text(f"tasks ({fault})")


def test_a_card_in_use_stays_until_it_is_left(quiet: Dashboard) -> None:
    page = quiet.page
    quiet.expected_complaint = "status of 500"
    page.route("**/v1/training-runs*", fail)
    page.reload()
    expect(page.locator("#forward #card-run")).to_be_visible()
    summary = page.locator("#card-run summary")
    summary.focus()
    page.unroute_all()
    expect(verdict(page)).to_have_text(ALL_WELL)
    page.wait_for_timeout(1_500)
    assert forward(page) == ["Retraining"]
    summary.blur()
    expect(page.locator(".facts #card-run")).to_be_visible()


def test_what_a_key_may_not_read_is_said_once(shop_dashboard: Dashboard) -> None:
    shop_dashboard.expected_complaint = "status of 403"
    page = shop_dashboard.page
    why = "this needs a key with the role 'read' or 'admin'"
    page.route(
        "**/v1/training-runs*", lambda route: route.fulfill(status=403, json={"detail": why})
    )
    page.goto(f"{shop_dashboard.service}/dashboard/{VIEW}#interval=1")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(verdict(page)).to_have_text(
        "Nothing that is known needs attention. Not for this key: Retraining."
    )
    expect(page.locator(".facts #run-summary")).to_contain_text(why)
    page.wait_for_timeout(2_500)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_without_a_key_that_may_read_readiness_is_known(look_at: Look, open_shop: OpenShop) -> None:
    server = open_shop()
    key_id, key = generate_key()
    store_key(f"sqlite:///{server.log.parent / 'kairos.db'}", key_id, key, role="ingest")
    eventually(lambda: httpx.get(f"{server.url}/v1/metrics", auth=LOCAL_TOKEN).status_code == 401)
    dashboard = look_at(server.url, holds_token=False)
    dashboard.expected_complaint = "status of 40[13]"
    page = dashboard.page
    page.goto(f"{server.url}/dashboard/{VIEW}#interval=1")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use key").click()
    expect(dialog.locator("#key-refused")).to_contain_text("'ingest'")
    dialog.get_by_role("button", name="Cancel").click()
    expect(verdict(page)).to_contain_text(
        "Nothing that is known needs attention. Everything but Ready needs a key that may read it."
    )
    expect(page.locator("#problem")).to_contain_text("v1/metrics needs a key that may read it")
    expect(page.locator("#state-ready")).to_have_text("ok")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_a_narrow_screen_needs_no_sideways_scrolling(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.page
    page.set_viewport_size({"width": 390, "height": 844})
    shop_dashboard.open("#interval=1", view=VIEW)
    expect(verdict(page)).to_have_text(ALL_WELL)
    page.locator("#all-rates > summary").click()
    for summary in page.locator(".facts summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.set_viewport_size({"width": 1280, "height": 900})
