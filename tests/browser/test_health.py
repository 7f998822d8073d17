"""The Operations page shows the values of the service's own metrics."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from app.auth.key_cache import generate_key
from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.browser.health_view import (
    INTERVAL_SECONDS,
    POINT_INTERVALS,
    VIEW,
    Look,
    MetricsRecorder,
    OpenShop,
    near,
    newest,
    parse_instant,
    pause_once,
    quantile,
    rate,
    seconds_between,
    send_traffic,
    sum_samples,
    wait_for,
)
from tests.browser.world import HOSTILE_TITLE
from tests.deployment.proxy import store_key
from tests.processes import LOCAL_TOKEN, Server, eventually

Busy = tuple[Dashboard, MetricsRecorder]


@pytest.fixture(scope="module")
def busy(browser: Browser, module_shop: Server) -> Iterator[Busy]:
    """A page that was open while the service had traffic, paused, with what it received."""
    with watched_dashboard(browser, module_shop.url) as dashboard:
        recorder = MetricsRecorder(dashboard.page)
        dashboard.open(f"#interval={INTERVAL_SECONDS}", view=VIEW)
        before = sum_samples(recorder.responses[0], "kairos_events_ingested_total")
        send_traffic(module_shop.url)
        pause_once(
            recorder,
            dashboard,
            lambda response: (
                len(recorder.responses) > POINT_INTERVALS
                and sum_samples(response, "kairos_events_ingested_total") >= before + 16
            ),
        )
        yield dashboard, recorder


def test_rates_quantiles_and_shares_are_those_of_the_metrics(busy: Busy) -> None:
    dashboard, recorder = busy
    span = recorder.span
    client = {"route": r"/v1/(?!metrics$).*"}
    assert newest(dashboard, "requests") == [near(rate(span, "http_requests_total", **client))]
    recommendation = {"method": "POST", "route": "/v1/recommendations"}
    assert newest(dashboard, "latency") == [
        near(1_000 * quantile(span, level, "http_request_duration_seconds", **recommendation))
        for level in (0.99, 0.95, 0.5)
    ]
    missed = rate(span, "http_requests_total", status="404", **client)
    share = missed / rate(span, "http_requests_total", **client)
    assert share > 0
    assert newest(dashboard, "failures") == [0, 0, 0, near(100 * share)]
    all_rate = rate(span, "kairos_recommendations_total")
    unknown = rate(span, "kairos_recommendations_total", fallback="no_history")
    assert unknown == near(all_rate / 5)
    assert newest(dashboard, "fallbacks") == [near(20), 0, near(20)]
    accepted, duplicates, rejected = newest(dashboard, "events")
    assert accepted == duplicates == near(8 / seconds_between(*span))
    assert rejected == 0
    assert newest(dashboard, "lag") == [
        near(quantile(span, level, "kairos_event_lag_seconds")) for level in (0.5, 0.95)
    ]
    stages = newest(dashboard, "stages")
    for stage, drawn in zip(("history", "filter", "encode", "search"), stages, strict=False):
        count = rate(span, "kairos_stage_duration_seconds_count", stage=stage)
        mean = rate(span, "kairos_stage_duration_seconds_sum", stage=stage) / count
        assert drawn == near(1_000 * mean)


def test_panels_have_a_large_value_a_status_and_a_table(busy: Busy) -> None:
    dashboard, _ = busy
    page = dashboard.page
    expect(page.locator("#newest-fallbacks")).to_have_text("20.0 %")
    expect(page.locator("#state-fallbacks")).to_have_text("watch")
    # Eight events of 5,000 seconds ago: above the alert's hour.
    expect(page.locator("#state-lag")).to_have_text("bad")
    expect(page.locator("#state-failures")).to_have_text("ok")
    expect(page.locator("section:has(#state-lag)")).to_contain_text("bad above 1 h")
    expect(page.locator("#operations")).to_contain_text("POST /v1/recommendations")
    panel = page.locator("section:has(#newest-fallbacks)")
    panel.get_by_text("The same as a table").click()
    expect(panel.locator("tbody tr").first).to_contain_text("20.0 %")
    assert panel.locator("tbody tr").count() == len(dashboard.traces("chart-fallbacks")[0]["x"])


def test_the_first_values_are_since_the_start(look_at: Look, module_shop: Server) -> None:
    send_traffic(module_shop.url)
    dashboard = look_at(module_shop.url)
    recorder, page = MetricsRecorder(dashboard.page), dashboard.page
    dashboard.open("#interval=60", view=VIEW)
    (first,) = recorder.responses
    expect(page.locator("#polled")).to_contain_text("rates since start")
    expect(page.locator("#newest-fallbacks")).to_have_text("20.0 %")
    accepted = sum_samples(first, "kairos_events_ingested_total", result="accepted")
    age = (parse_instant(first["at"]) - parse_instant(first["started_at"])).total_seconds()
    shown = float(str(page.locator("#newest-events").text_content()).split()[0])
    assert shown == pytest.approx(accepted / age, abs=0.006)
    # Limits hold for the last minute, not for all time.
    expect(page.locator("#state-lag")).to_be_hidden()


def test_the_cards_show_what_the_api_returns(shop_dashboard: Dashboard) -> None:
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
    items = sum_samples(shop_dashboard.api("/v1/metrics"), "kairos_index_items")
    expect(page.locator("#model")).to_contain_text(f"{items:,.0f}")
    expect(page.locator("#ready")).to_contain_text("ready")
    expect(page.locator("#state-ready")).to_have_text("ok")


def execute(server: Server, statement: str, *values: str) -> list[tuple[str, ...]]:
    """Run SQL on the shop's database, beside the service."""
    with closing(sqlite3.connect(server.log.parent / "kairos.db", timeout=10)) as database:
        rows = database.execute(statement, values).fetchall()
        database.commit()
    return rows


@contextmanager
def altered_runs(server: Server, assignments: str, *values: str) -> Iterator[None]:
    """Change all training runs; restores them."""
    columns = "run_id, result, reason, report"
    before = execute(server, f"SELECT {columns} FROM training_runs")
    execute(server, f"UPDATE training_runs SET {assignments}", *values)
    try:
        yield
    finally:
        for run_id, *rest in before:
            restored = "result = ?, reason = ?, report = ?"
            execute(server, f"UPDATE training_runs SET {restored} WHERE run_id = ?", *rest, run_id)


def test_a_failed_run_is_bad_and_its_reason_stays_text(look_at: Look, module_shop: Server) -> None:
    with altered_runs(module_shop, "result = 'failed', reason = ?", HOSTILE_TITLE):
        dashboard = look_at(module_shop.url).open(view=VIEW)
        expect(dashboard.page.locator("#run-result")).to_have_text("failed")
        expect(dashboard.page.locator("#state-run")).to_have_text("bad")
        expect(dashboard.page.locator("#run")).to_contain_text(HOSTILE_TITLE)
        assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_a_failed_check_is_shown_as_the_gate_states_it(look_at: Look, module_shop: Server) -> None:
    change = "json_set(report, '$.decision.checks[2].passed', json('false'))"
    with altered_runs(module_shop, f"result = 'kept', report = {change}"):
        (run,) = module_shop.http.get("/v1/training-runs?limit=1").json()["runs"]
        (failed,) = [check for check in run["decision"]["checks"] if not check["passed"]]
        dashboard = look_at(module_shop.url).open(view=VIEW)
        expect(dashboard.page.locator("#run .checks li")).to_have_text(
            f"{failed['name']}: {failed['sentence']}"
        )
        expect(dashboard.page.locator("#state-run")).to_have_text("ok")


def test_without_a_model_the_page_says_what_is_missing(
    look_at: Look, empty_service: Server
) -> None:
    dashboard = look_at(empty_service.url)
    dashboard.expected_complaint = "503"
    dashboard.open("#interval=1", view=VIEW)
    readiness = empty_service.http.get("/health/ready").json()
    ready = dashboard.page.locator("#ready")
    expect(ready).to_contain_text("not ready")
    expect(ready).to_contain_text(readiness["model"])
    expect(dashboard.page.locator("#state-ready")).to_have_text("bad")
    expect(dashboard.page.locator("#model")).to_contain_text("no model is open")
    expect(dashboard.page.locator("#run")).to_contain_text("none yet")
    dashboard.page.get_by_role("button", name="Pause").click()


def test_a_database_failure_is_shown_and_its_end_too(look_at: Look, module_shop: Server) -> None:
    execute(module_shop, "ALTER TABLE alembic_version RENAME TO away")
    execute(module_shop, "ALTER TABLE training_runs RENAME TO runs_away")
    dashboard = look_at(module_shop.url)
    dashboard.expected_complaint = "503"
    try:
        dashboard.open("#interval=1", view=VIEW)
        readiness = module_shop.http.get("/health/ready").json()
        assert readiness["database"] != "ok"
        page = dashboard.page
        expect(page.locator("#ready")).to_contain_text(readiness["database"])
        expect(page.locator("#run")).to_contain_text("not known")
        # What needs no database is shown all the same.
        expect(page.locator("#model")).to_contain_text(
            page.locator("#model-version").text_content() or ""
        )
    finally:
        execute(module_shop, "ALTER TABLE away RENAME TO alembic_version")
        execute(module_shop, "ALTER TABLE runs_away RENAME TO training_runs")
    expect(page.locator("#state-ready")).to_have_text("ok")
    expect(page.locator("#run-result")).to_have_text("promoted")


def test_a_service_that_stops_is_shown_and_polled_again(look_at: Look, open_shop: OpenShop) -> None:
    server = open_shop()
    dashboard = look_at(server.url)
    dashboard.expected_complaint = "ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET"
    dashboard.open("#interval=1", view=VIEW)
    server.process.kill()
    page = dashboard.page
    expect(page.locator("#problem")).to_contain_text("cannot be reached", timeout=20_000)
    expect(page.locator("#state-ready")).to_have_text("bad")
    polls = len(metrics_requests(dashboard))
    wait_for(page, lambda: len(metrics_requests(dashboard)) > polls)


def metrics_requests(dashboard: Dashboard) -> list[str]:
    return [url for url in dashboard.requested if url.endswith("/v1/metrics")]


def sends_nothing(dashboard: Dashboard, *, for_seconds: float = 3) -> bool:
    # Requests in flight may end, and the banner looks once for a training, 1.5 s after the load.
    dashboard.page.wait_for_timeout(2_000)
    before = len(dashboard.requested)
    dashboard.page.wait_for_timeout(for_seconds * 1_000)
    return len(dashboard.requested) == before


def test_pause_stops_polling_and_resume_polls_at_once(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=1", view=VIEW)
    page = shop_dashboard.page
    page.get_by_role("button", name="Pause").click()
    assert sends_nothing(shop_dashboard)
    before = len(metrics_requests(shop_dashboard))
    page.get_by_role("button", name="Resume").click()
    wait_for(page, lambda: len(metrics_requests(shop_dashboard)) > before + 1)


def set_visibility(page: Page, *, visible: bool) -> None:
    """Do as the browser does when the user opens another tab, or returns."""
    page.evaluate(
        """(state) => {
            const property = { value: state, configurable: true };
            Object.defineProperty(document, "visibilityState", property);
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        "visible" if visible else "hidden",
    )


def test_a_hidden_page_does_not_poll(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=1", view=VIEW)
    page = shop_dashboard.page
    set_visibility(page, visible=False)
    assert sends_nothing(shop_dashboard)
    before = len(metrics_requests(shop_dashboard))
    set_visibility(page, visible=True)
    wait_for(page, lambda: len(metrics_requests(shop_dashboard)) > before + 1)


def test_the_link_keeps_the_interval(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open("#interval=7", view=VIEW)
    page = shop_dashboard.page
    expect(page.get_by_label("Poll every")).to_have_value("7")
    page.get_by_label("Poll every").select_option("1 s")
    assert page.url.endswith("#interval=1")
    before = len(metrics_requests(shop_dashboard))
    wait_for(page, lambda: len(metrics_requests(shop_dashboard)) > before + 1, within_seconds=6)
    page.get_by_label("Poll every").select_option("5 s")
    assert "interval" not in page.url
    page.evaluate('location.hash = "#interval=30"')
    expect(page.get_by_label("Poll every")).to_have_value("30")


@pytest.fixture
def locked(open_shop: OpenShop) -> tuple[str, str]:
    """The URL of a service that requires a key, and a key."""
    server = open_shop()
    key_id, key = generate_key()
    store_key(f"sqlite:///{server.log.parent / 'kairos.db'}", key_id, key)
    # Without a token, it is refused before the process knows of the key, too.
    eventually(lambda: httpx.get(f"{server.url}/v1/metrics", auth=LOCAL_TOKEN).status_code == 401)
    return server.url, key


def test_readiness_needs_no_key_and_metrics_need_one(
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
    # The page prompts for a key once, not with every poll.
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert sends_nothing(dashboard)
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    dialog.get_by_label("API key").fill(key)
    dialog.get_by_role("button", name="Use key").click()
    dashboard.settle()
    expect(page.locator("#polled")).to_contain_text("1 process polled")
    expect(page.locator("#run-result")).to_have_text("promoted")


def test_a_key_that_ends_within_a_poll_is_prompted_for_once(
    shop_dashboard: Dashboard,
) -> None:
    shop_dashboard.expected_complaint = "401"
    page = shop_dashboard.page
    for path in ("training-runs", "models/changes"):
        page.route(
            re.compile(f"/v1/{path}"),
            lambda route: route.fulfill(status=401, json={"detail": "this key is not valid"}),
        )
    page.goto(f"{shop_dashboard.service}/dashboard/{VIEW}#interval=1")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert sends_nothing(shop_dashboard)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#run")).to_contain_text("this key is not valid")
