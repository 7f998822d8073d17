"""The models page, only read: versions, one in detail, two side by side."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from model.clock import to_datetime
from tests.browser.conftest import OpenShop
from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.browser.shop import CUSTOMER
from tests.processes import eventually

VIEW = "models.html"
METRIC = "ndcg@10"


@pytest.fixture(scope="module")
def shared_dashboard(browser: Browser, shop: str) -> Iterator[Dashboard]:
    """One page for the tests that only read: see `Dashboard.show`."""
    with watched_dashboard(browser, shop) as dashboard:
        yield dashboard


@pytest.fixture
def versions(shared_dashboard: Dashboard) -> list[dict[str, Any]]:
    """The published versions: the self-modulating one, the current one, and the one before it."""
    models: list[dict[str, Any]] = shared_dashboard.api("/v1/models")["models"]
    assert [model["is_current"] for model in models] == [False, True, False]
    return models


def described(dashboard: Dashboard, version: str) -> dict[str, Any]:
    return dict(dashboard.api(f"/v1/models/{version}"))


def cells(dashboard: Dashboard, selector: str) -> list[str]:
    return [text.strip() for text in dashboard.page.locator(f"{selector} td").all_inner_texts()]


def test_every_version_has_a_row_with_its_metrics(
    shared_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    shared_dashboard.show(VIEW)
    rows = shared_dashboard.page.locator("table.versions tbody tr")
    assert [row.get_attribute("data-version") for row in rows.all()] == [
        model["version"] for model in versions
    ]
    for model in versions:
        metrics = described(shared_dashboard, model["version"])["manifest"]["metrics"]
        names = (
            METRIC,
            f"{METRIC}_withheld",
            f"popular_all_time_{METRIC}",
            f"popular_last_week_{METRIC}",
            f"last_item_markov_{METRIC}",
        )
        shown = cells(shared_dashboard, f'tr[data-version="{model["version"]}"]')
        assert shown[3:8] == [f"{metrics[name]:.4f}" for name in names]
        assert shown[8] == f"{metrics['questions']:.0f}"
        assert model["data_window"]["last_at"][:10] in shown[2]
        assert ("current" in shown[0]) == model["is_current"]
        assert ("Activate" in shown[9]) == (not model["is_current"])


def test_the_serving_version_is_shown_until_another_is_chosen(
    shop_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    page = shop_dashboard.open(view=VIEW).page
    expect(page.locator("#detail-name")).to_have_text(versions[1]["version"])
    page.locator(f'tr[data-version="{versions[2]["version"]}"] a').click()
    expect(page.locator("#detail-name")).to_have_text(versions[2]["version"])
    shop_dashboard.settle()
    expect(page.locator("tr[aria-current=true] a")).to_have_text(versions[2]["version"])
    page.go_back()
    expect(page.locator("#detail-name")).to_have_text(versions[1]["version"])


@pytest.mark.parametrize("metric", [METRIC, "mrr"])
def test_the_bars_are_the_metrics_of_the_manifest(
    shared_dashboard: Dashboard, versions: list[dict[str, Any]], metric: str
) -> None:
    page = shared_dashboard.show(VIEW).page
    page.locator("#metric").select_option(metric)
    shared_dashboard.settle()
    metrics = described(shared_dashboard, versions[1]["version"])["manifest"]["metrics"]
    references = [value for name, value in metrics.items() if name.endswith(f"_{metric}")]
    assert len(references) == (7 if metric == METRIC else 0)
    (bars,) = shared_dashboard.traces("metrics-chart")
    own = [metrics[metric], metrics[f"{metric}_withheld"]]
    assert bars["x"] == [*own, *sorted(references, reverse=True)]
    expect(page.locator("#metrics-summary")).to_contain_text(f"{metrics['questions']:.0f} test")


def test_live_popularity_has_a_bar_of_its_own(
    shop_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    current = versions[1]["version"]
    live = {f"{METRIC}_live": 0.4321, "mrr_live": 0.5432, "questions_live": 7.0}

    def add_live(route: Route) -> None:
        description = route.fetch().json()
        description["manifest"]["metrics"] |= live
        route.fulfill(json=description)

    page = shop_dashboard.page
    page.route(f"**/v1/models/{current}", add_live)
    shop_dashboard.open(view=VIEW)
    metrics = described(shop_dashboard, current)["manifest"]["metrics"]
    (bars,) = shop_dashboard.traces("metrics-chart")
    own = [metrics[METRIC], live[f"{METRIC}_live"], metrics[f"{METRIC}_withheld"]]
    assert bars["x"][:3] == own
    expect(page.locator("#metrics-chart")).to_contain_text("Live popularity")
    expect(page.locator("#metrics-chart")).to_contain_text("Counting, frozen")
    expect(page.locator("#metrics-chart")).to_contain_text("Counting, live")
    expect(page.locator("#metrics-summary")).to_contain_text("live popularity 0.4321")
    page.locator("#metrics-table summary").click()
    row = page.locator("#metrics-table tr", has_text=METRIC).first
    expect(row.locator("td").nth(2)).to_have_text("0.4321")
    options = page.locator("#metric option").all_inner_texts()
    assert METRIC in options
    assert not [name for name in options if name.endswith("_live")]


def test_training_is_drawn_by_epoch_with_the_best_one_marked(
    shared_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    page = shared_dashboard.show(VIEW).page
    detail = described(shared_dashboard, versions[1]["version"])
    loss, validation = shared_dashboard.traces("training-chart")
    assert loss["x"] == [epoch["epoch"] for epoch in detail["epochs"]]
    assert loss["y"] == [epoch["loss"] for epoch in detail["epochs"]]
    assert validation["y"] == [epoch["validation"][METRIC] for epoch in detail["epochs"]]
    best = detail["manifest"]["provenance"]["best_epoch"]
    marks = page.evaluate("document.getElementById('training-chart').layout.shapes.map(s => s.x0)")
    assert marks == [best]
    expect(page.locator("#training-summary")).to_contain_text(f"The weights of epoch {best}")


def test_an_older_bundle_explains_its_missing_charts(dashboard: Dashboard) -> None:
    page = dashboard.open(view=VIEW).page
    expect(page.locator("#training-summary")).to_contain_text("published without epochs")
    expect(page.locator("#training-chart")).to_be_hidden()
    expect(page.locator("#metrics-summary")).to_contain_text("holds no test metrics")
    expect(page.locator("#facts")).to_contain_text("published without index_recall")
    expect(page.locator("#comparison-summary")).to_contain_text("no other version to compare with")
    expect(page.locator("#trail-note")).to_have_text("No change is recorded yet.")
    expect(page.locator("#runs-note")).to_contain_text("No retraining has run yet")


def test_data_windows_share_one_time_axis(
    shared_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    shared_dashboard.show(VIEW)
    (bars,) = shared_dashboard.traces("windows-chart")
    windows = [
        described(shared_dashboard, model["version"])["manifest"]["data_window"]
        for model in versions
    ]
    # Instants are microseconds in the manifest, milliseconds in the picture.
    assert bars["base"] == [window["first_at"] // 1000 for window in windows]
    assert bars["x"] == [(window["last_at"] - window["first_at"]) / 1000 for window in windows]
    last = to_datetime(windows[1]["last_at"])
    expect(shared_dashboard.page.locator("#windows-summary")).to_contain_text(
        f"{last:%Y-%m-%d %H:%M:%S}"
    )


def test_the_facts_are_those_of_the_bundle(
    shared_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    page = shared_dashboard.show(VIEW).page
    detail = described(shared_dashboard, versions[1]["version"])
    facts = page.locator("#facts")
    counts = detail["manifest"]["counts"]
    expect(facts).to_contain_text(f"{counts['events']:,} events of {counts['users']:,} customers")
    expect(facts).to_contain_text(f"{detail['index_recall'] * 100:.1f} % of the exact ten")
    expect(facts).to_contain_text(f"within {detail['p95_seconds'] * 1000:.1f} ms")
    expect(facts).to_contain_text("measured where it was trained")
    assert (
        json.loads(page.locator("#recipe").text_content() or "")
        == (detail["manifest"]["provenance"]["recipe"])
    )
    files = page.locator("#files tr td:last-child").all_text_contents()
    assert files == list(detail["manifest"]["files"].values())


def test_a_run_that_measured_both_versions_comes_first(
    shared_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    page = shared_dashboard.show(VIEW).page
    run = shared_dashboard.api("/v1/training-runs")["runs"][0]
    assert (run["candidate"], run["champion"]) == (versions[1]["version"], versions[2]["version"])
    expect(page.locator("#compare")).to_have_value(run["champion"])
    expect(page.locator("#comparison-summary")).to_contain_text(
        f"Measured on the same {run['questions']} questions of the same window by the "
        f"retraining run {run['run_id']}"
    )
    rows = page.locator("#comparison table").first.locator("tbody tr").all()
    shown = [row.locator("td").all_inner_texts() for row in rows]
    (given,) = [row for row in shown if row[:2] == [METRIC, "with elapsed time"]]
    candidate, champion = (run["metrics"][who][METRIC] for who in ("challenger", "champion"))
    difference = f"{candidate - champion:+.4f}".replace("-", "−")
    assert given[2:5] == [f"{candidate:.4f}", f"{champion:.4f}", difference]
    for check in run["decision"]["checks"]:
        expect(page.locator("#comparison .checks")).to_contain_text(check["sentence"])
    expect(page.locator("#comparison")).to_contain_text(
        "Their test windows differ, so these values are not comparable."
    )


def test_versions_with_different_tests_are_not_comparable(
    shop_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    one, other = versions[0]["version"], versions[2]["version"]
    page = shop_dashboard.open(f"#version={one}&compare={other}", view=VIEW).page
    expect(page.locator("#comparison-summary")).to_have_text(
        "No retraining run measured these two on the same questions: their test windows differ, "
        "so they are not comparable."
    )
    mine, theirs = (
        described(shop_dashboard, version)["manifest"]["metrics"][METRIC]
        for version in (one, other)
    )
    row = page.locator("#comparison tr", has_text=METRIC).first
    expect(row).to_contain_text(f"{mine:.4f}")
    expect(row).to_contain_text(f"{theirs:.4f}")


def test_versions_with_the_same_test_are_probably_comparable(
    shop_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    one, other = versions[0]["version"], versions[1]["version"]
    page = shop_dashboard.open(f"#version={one}&compare={other}", view=VIEW).page
    expect(page.locator("#comparison-summary")).to_contain_text(
        "so the questions were probably the same"
    )


def test_runs_show_their_decision_when_opened_by_keyboard(shared_dashboard: Dashboard) -> None:
    page = shared_dashboard.show(VIEW).page
    runs = shared_dashboard.api("/v1/training-runs")["runs"]
    items = page.locator("#runs > li")
    expect(items).to_have_count(len(runs))
    for item, run in zip(items.all(), runs, strict=True):
        expect(item).to_contain_text(run["result"])
        expect(item).to_contain_text(run["reason"])
        expect(item.locator("table")).to_be_hidden()
        item.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(item.locator("table")).to_contain_text(run["decision"]["checks"][-1]["sentence"])
        expect(item).to_contain_text(run["candidate"])


def test_the_audit_trail_is_that_of_the_api(shared_dashboard: Dashboard) -> None:
    page = shared_dashboard.show(VIEW).page
    rows = page.locator("table.trail tbody tr").all()
    changes = shared_dashboard.api("/v1/models/changes")["changes"]
    assert len(changes) == 2
    for row, change in zip(rows, changes, strict=True):
        shown = row.locator("td").all_inner_texts()
        assert shown[0] == change["at"][:19].replace("T", " ")
        assert shown[1:] == [
            change["actor"],
            change["change"],
            change["previous_version"] or "none",
            change["version"],
            change["reason"],
        ]


def test_clicks_are_drawn_with_their_interval(
    open_shop: OpenShop, look_at: Callable[[str], Dashboard]
) -> None:
    server = open_shop()
    shown = [
        server.http.post("/v1/recommendations", json={"user_id": CUSTOMER, "n": 3}).json()
        for _ in range(8)
    ]
    clicked = [
        {
            "user_id": CUSTOMER,
            "item_id": answer["items"][0]["item_id"],
            "action": "purchase",
            "timestamp": answer["query_time"],
            "event_id": f"click-{index}",
            "recommendation_id": answer["recommendation_id"],
        }
        for index, answer in enumerate(shown[:2])
    ]
    assert server.http.post("/v1/events", json={"events": clicked}).json()["accepted"] == 2
    dashboard = look_at(server.url)
    (now,) = [
        model["version"] for model in dashboard.api("/v1/models")["models"] if model["is_current"]
    ]
    # Impressions are written in batches.
    eventually(lambda: described(dashboard, now)["clicks"]["shown"] == len(shown))
    dashboard.open(view=VIEW)
    (bars,) = dashboard.traces("clicks-chart")
    clicks = [
        described(dashboard, model["version"])["clicks"]
        for model in dashboard.api("/v1/models")["models"]
    ]
    assert [one["shown"] for one in clicks] == [0, 8, 0]
    assert bars["x"] == [0, clicks[1]["rate"], 0]
    # Wilson's bounds are the shares 1.96 standard errors away from the observed one.
    for bound in (
        bars["x"][1] + bars["error_x"]["array"][1],
        bars["x"][1] - bars["error_x"]["arrayminus"][1],
    ):
        assert abs(2 / 8 - bound) / (bound * (1 - bound) / 8) ** 0.5 == pytest.approx(
            1.96, abs=1e-3
        )
    notes = dashboard.page.evaluate(
        "document.getElementById('clicks-chart').layout.annotations.map(({y, text}) => [y, text])"
    )
    assert notes == [[0, "no recommendations recorded"], [2, "no recommendations recorded"]]


def test_a_link_restores_both_versions_and_the_metric(
    shop_dashboard: Dashboard, versions: list[dict[str, Any]]
) -> None:
    page = shop_dashboard.open(view=VIEW).page
    page.locator("#version").select_option(versions[0]["version"])
    page.locator("#compare").select_option(versions[2]["version"])
    page.locator("#metric").select_option("hit_rate@10")
    shop_dashboard.settle()
    drawn, link = shop_dashboard.traces("metrics-chart"), page.url
    page.goto("about:blank")
    shop_dashboard.open(link[link.index("#") :], view=VIEW)
    expect(page.locator("#version")).to_have_value(versions[0]["version"])
    expect(page.locator("#compare")).to_have_value(versions[2]["version"])
    expect(page.locator("#metric")).to_have_value("hit_rate@10")
    assert shop_dashboard.traces("metrics-chart")[0]["x"] == drawn[0]["x"]


def test_a_link_to_a_missing_version_is_explained(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open("#version=<b>gone</b>", view=VIEW).page
    expect(page.locator("#versions-note")).to_have_text(
        "<b>gone</b> is not published here; another one is shown."
    )


def test_every_chart_has_a_summary_and_a_table(shared_dashboard: Dashboard) -> None:
    page = shared_dashboard.show(VIEW).page
    for chart in ("metrics", "training", "windows", "clicks"):
        picture = page.locator(f"#{chart}-chart")
        expect(picture).to_have_attribute("role", "img")
        expect(picture).to_have_accessible_name(re.compile(r"\w+ .+\."))
        page.locator(f"#{chart}-table summary").click()
        expect(page.locator(f"#{chart}-table tbody tr").first).to_be_visible()
