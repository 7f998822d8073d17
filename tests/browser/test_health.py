"""The health view: what is drawn is what the service's own metrics say."""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from app.auth.key_cache import new_key
from tests.browser.dashboard import Dashboard
from tests.browser.health_view import (
    VIEW,
    Heard,
    Look,
    OpenShop,
    counted,
    instant,
    near,
    newest,
    pause_once,
    quantile,
    rate,
    seconds_between,
    send_traffic,
    wait_for,
)
from tests.browser.world import HOSTILE_TITLE
from tests.deployment.proxy import keep_key
from tests.processes import Server, eventually, processes


@pytest.fixture
def shop_url(open_shop: OpenShop) -> str:
    return open_shop().url


def test_rates_times_and_shares_are_those_of_the_metrics(look_at: Look, shop_url: str) -> None:
    dashboard = look_at(shop_url)
    heard = Heard(dashboard.page)
    dashboard.open("#interval=1", view=VIEW)
    send_traffic(shop_url)
    pause_once(heard, dashboard, lambda said: counted(said, "kairos_events_ingested_total") >= 16)
    span = heard.span
    work = {"route": r"/v1/(?!metrics$).*"}
    assert newest(dashboard, "requests") == [near(rate(span, "http_requests_total", **work))]
    asked = {"method": "POST", "route": "/v1/recommendations"}
    assert newest(dashboard, "latency") == [
        near(1_000 * quantile(span, place, "http_request_duration_seconds", **asked))
        for place in (0.99, 0.95, 0.5)
    ]
    missed = rate(span, "http_requests_total", status="404", **work)
    share = missed / rate(span, "http_requests_total", **work)
    assert share > 0
    assert newest(dashboard, "failures") == [0, 0, 0, near(100 * share)]
    answers = rate(span, "kairos_recommendations_total")
    unknown = rate(span, "kairos_recommendations_total", fallback="no_history")
    assert unknown == near(answers / 5)
    assert newest(dashboard, "fallbacks") == [near(20), 0, near(20)]
    accepted, duplicates, rejected = newest(dashboard, "events")
    assert accepted == duplicates == near(8 / seconds_between(*span))
    assert rejected == 0
    assert newest(dashboard, "lag") == [
        near(quantile(span, place, "kairos_event_lag_seconds")) for place in (0.5, 0.95)
    ]
    stages = newest(dashboard, "stages")
    for stage, drawn in zip(("history", "filter", "encode", "search"), stages, strict=False):
        count = rate(span, "kairos_stage_duration_seconds_count", stage=stage)
        mean = rate(span, "kairos_stage_duration_seconds_sum", stage=stage) / count
        assert drawn == near(1_000 * mean)


def test_figures_are_written_large_judged_in_a_word_and_told_as_a_table(
    look_at: Look, shop_url: str
) -> None:
    dashboard = look_at(shop_url)
    heard, page = Heard(dashboard.page), dashboard.page
    dashboard.open("#interval=1", view=VIEW)
    send_traffic(shop_url)
    pause_once(heard, dashboard, lambda said: counted(said, "kairos_events_ingested_total") >= 16)
    expect(page.locator("#newest-fallbacks")).to_have_text("20.0 %")
    expect(page.locator("#state-fallbacks")).to_have_text("watch")
    # Eight of 5,000 seconds ago: between ten minutes and the day's bound.
    expect(page.locator("#state-lag")).to_have_text("bad")
    expect(page.locator("#state-failures")).to_have_text("ok")
    expect(page.locator("section:has(#state-lag)")).to_contain_text("bad above 1 h")
    expect(page.locator("#operations")).to_contain_text("POST /v1/recommendations")
    panel = page.locator("section:has(#newest-fallbacks)")
    panel.get_by_text("The same as a table").click()
    expect(panel.locator("tbody tr").first).to_contain_text("20.0 %")
    assert panel.locator("tbody tr").count() == len(dashboard.traces("chart-fallbacks")[0]["x"])


def test_the_first_figures_are_of_all_since_the_start(look_at: Look, shop_url: str) -> None:
    send_traffic(shop_url)
    dashboard = look_at(shop_url)
    heard, page = Heard(dashboard.page), dashboard.page
    dashboard.open("#interval=60", view=VIEW)
    (first,) = heard.answers
    expect(page.locator("#heard")).to_contain_text("figures since start")
    expect(page.locator("#newest-fallbacks")).to_have_text("20.0 %")
    accepted = counted(first, "kairos_events_ingested_total", result="accepted")
    age = (instant(first["at"]) - instant(first["started_at"])).total_seconds()
    shown = float(str(page.locator("#newest-events").text_content()).split()[0])
    assert shown == pytest.approx(accepted / age, abs=0.006)
    # Nothing of long ago is judged by a limit for now.
    expect(page.locator("#state-lag")).to_be_hidden()


def test_what_is_said_in_words_is_what_the_api_says(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view=VIEW)
    page = shop_dashboard.page
    (run,) = shop_dashboard.api("/v1/training-runs?limit=1")["runs"]
    (change,) = shop_dashboard.api("/v1/models/changes?limit=1")["changes"]
    (served,) = [one for one in shop_dashboard.api("/v1/models")["models"] if one["is_serving"]]
    expect(page.locator("#run")).to_contain_text(run["run_id"])
    expect(page.locator("#run-result")).to_have_text(run["result"])
    expect(page.locator("#run")).to_contain_text(run["reason"])
    expect(page.locator("#change")).to_contain_text(change["version"])
    expect(page.locator("#change")).to_contain_text(change["reason"])
    expect(page.locator("#model")).to_contain_text(served["version"])
    items = counted(shop_dashboard.api("/v1/metrics"), "kairos_index_items")
    expect(page.locator("#model")).to_contain_text(f"{items:,.0f}")
    expect(page.locator("#ready")).to_contain_text("ready")
    expect(page.locator("#state-ready")).to_have_text("ok")


def alter(server: Server, statement: str, *values: str) -> None:
    """Change the shop's database behind the service's back."""
    with closing(sqlite3.connect(server.log.parent / "kairos.db", timeout=10)) as database:
        database.execute(statement, values)
        database.commit()


def test_a_run_that_failed_is_bad_and_its_words_stay_words(
    look_at: Look, open_shop: OpenShop
) -> None:
    server = open_shop()
    alter(server, "UPDATE training_runs SET result = 'failed', reason = ?", HOSTILE_TITLE)
    dashboard = look_at(server.url).open(view=VIEW)
    expect(dashboard.page.locator("#run-result")).to_have_text("failed")
    expect(dashboard.page.locator("#state-run")).to_have_text("bad")
    expect(dashboard.page.locator("#run")).to_contain_text(HOSTILE_TITLE)
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_a_check_that_failed_is_told_in_the_gates_words(look_at: Look, open_shop: OpenShop) -> None:
    server = open_shop()
    change = "json_set(report, '$.decision.checks[2].passed', json('false'))"
    alter(server, f"UPDATE training_runs SET result = 'kept', report = {change}")
    (run,) = server.http.get("/v1/training-runs?limit=1").json()["runs"]
    (failed,) = [check for check in run["decision"]["checks"] if not check["passed"]]
    dashboard = look_at(server.url).open(view=VIEW)
    expect(dashboard.page.locator("#run .checks li")).to_have_text(
        f"{failed['name']}: {failed['sentence']}"
    )
    expect(dashboard.page.locator("#state-run")).to_have_text("ok")


def test_a_service_without_a_model_says_what_is_missing(
    look_at: Look, chromium: str, tmp_path: Path
) -> None:
    with processes(tmp_path, tmp_path / "bundles") as start:
        server = start(wait=False)
        eventually(lambda: is_live(server))
        dashboard = look_at(server.url)
        dashboard.expected_complaint = "503"
        dashboard.open("#interval=1", view=VIEW)
        said = server.http.get("/health/ready").json()
        ready = dashboard.page.locator("#ready")
        expect(ready).to_contain_text("not ready")
        expect(ready).to_contain_text(said["model"])
        expect(dashboard.page.locator("#state-ready")).to_have_text("bad")
        expect(dashboard.page.locator("#model")).to_contain_text("no model is open")
        expect(dashboard.page.locator("#run")).to_contain_text("none yet")
        dashboard.page.get_by_role("button", name="Pause").click()


def is_live(server: Server) -> bool:
    try:
        return server.http.get("/health/live").is_success
    except httpx.TransportError:
        return False


def test_a_database_that_is_away_is_told_and_its_return_too(
    look_at: Look, open_shop: OpenShop
) -> None:
    server = open_shop()
    alter(server, "ALTER TABLE alembic_version RENAME TO away")
    alter(server, "ALTER TABLE training_runs RENAME TO runs_away")
    dashboard = look_at(server.url)
    dashboard.expected_complaint = "503"
    dashboard.open("#interval=1", view=VIEW)
    said = server.http.get("/health/ready").json()
    assert said["database"] != "ok"
    page = dashboard.page
    expect(page.locator("#ready")).to_contain_text(said["database"])
    expect(page.locator("#run")).to_contain_text("not known")
    # What does not need the database is told all the same.
    expect(page.locator("#model")).to_contain_text(
        page.locator("#model-version").text_content() or ""
    )
    alter(server, "ALTER TABLE away RENAME TO alembic_version")
    alter(server, "ALTER TABLE runs_away RENAME TO training_runs")
    expect(page.locator("#state-ready")).to_have_text("ok")
    expect(page.locator("#run-result")).to_have_text("promoted")


def test_a_service_that_goes_away_is_told_and_asked_again(
    look_at: Look, open_shop: OpenShop
) -> None:
    server = open_shop()
    dashboard = look_at(server.url)
    dashboard.expected_complaint = "ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET"
    dashboard.open("#interval=1", view=VIEW)
    server.process.kill()
    page = dashboard.page
    expect(page.locator("#problem")).to_contain_text("cannot be reached", timeout=20_000)
    expect(page.locator("#state-ready")).to_have_text("bad")
    asked = len(metrics_asked(dashboard))
    wait_for(page, lambda: len(metrics_asked(dashboard)) > asked)


def metrics_asked(dashboard: Dashboard) -> list[str]:
    return [url for url in dashboard.requested if url.endswith("/v1/metrics")]


def stays_quiet(dashboard: Dashboard, *, for_seconds: float = 3) -> bool:
    # What was under way may end.
    dashboard.page.wait_for_timeout(1_000)
    before = len(dashboard.requested)
    dashboard.page.wait_for_timeout(for_seconds * 1_000)
    return len(dashboard.requested) == before


def test_pause_stops_asking_and_going_on_asks_at_once(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=1", view=VIEW)
    page = shop_dashboard.page
    page.get_by_role("button", name="Pause").click()
    assert stays_quiet(shop_dashboard)
    before = len(metrics_asked(shop_dashboard))
    page.get_by_role("button", name="Go on").click()
    wait_for(page, lambda: len(metrics_asked(shop_dashboard)) > before + 1)


def show_page(page: Page, *, visible: bool) -> None:
    """As when the reader turns to another tab, or back."""
    page.evaluate(
        """(state) => {
            const told = { value: state, configurable: true };
            Object.defineProperty(document, "visibilityState", told);
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        "visible" if visible else "hidden",
    )


def test_a_hidden_page_asks_nothing_until_it_is_seen_again(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=1", view=VIEW)
    page = shop_dashboard.page
    show_page(page, visible=False)
    assert stays_quiet(shop_dashboard)
    before = len(metrics_asked(shop_dashboard))
    show_page(page, visible=True)
    wait_for(page, lambda: len(metrics_asked(shop_dashboard)) > before + 1)


def test_the_interval_is_kept_in_the_link(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=7", view=VIEW)
    page = shop_dashboard.page
    expect(page.get_by_label("Ask every")).to_have_value("7")
    page.get_by_label("Ask every").select_option("1 s")
    assert page.url.endswith("#interval=1")
    before = len(metrics_asked(shop_dashboard))
    wait_for(page, lambda: len(metrics_asked(shop_dashboard)) > before + 1, within_seconds=6)
    page.get_by_label("Ask every").select_option("5 s")
    assert "interval" not in page.url
    page.evaluate('location.hash = "#interval=30"')
    expect(page.get_by_label("Ask every")).to_have_value("30")


@pytest.fixture
def locked(open_shop: OpenShop) -> tuple[str, str]:
    """A service that asks for a key, and a key."""
    server = open_shop()
    key_id, key = new_key()
    keep_key(f"sqlite:///{server.log.parent / 'kairos.db'}", key_id, key)
    eventually(lambda: httpx.get(f"{server.url}/v1/metrics").status_code == 401)
    return server.url, key


def test_readiness_needs_no_key_and_figures_come_with_one(
    look_at: Look, locked: tuple[str, str]
) -> None:
    url, key = locked
    dashboard = look_at(url)
    dashboard.expected_complaint = "401"
    page = dashboard.page
    page.goto(f"{url}/dashboard/{VIEW}#interval=1")
    expect(page.locator("#ready")).to_contain_text("ready")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    # A key is asked for once, not with every poll.
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    assert stays_quiet(dashboard)
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use key").click()
    dashboard.settle()
    expect(page.locator("#heard")).to_contain_text("1 process heard")
    expect(page.locator("#run-result")).to_have_text("promoted")
