"""The Kernels page draws the kernels, rhythms and intensities that the API returns."""

import json
import math
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.browser.odd_models import GROUPS, HOSTILE, USER, OddVersions
from tests.processes import LOCAL_TOKEN

VIEW = "kernels.html"
DAY = 24 * 3_600_000

Trace = dict[str, Any]


@pytest.fixture(scope="module")
def default_view(browser: Browser, odd_service: tuple[str, OddVersions]) -> Iterator[Dashboard]:
    """The page of the version that serves, `OddVersions.moved`; tests only look at it."""
    with watched_dashboard(browser, odd_service[0]) as dashboard:
        yield dashboard.open(view=VIEW)


@pytest.fixture(scope="module")
def modulated_view(browser: Browser, odd_service: tuple[str, OddVersions]) -> Iterator[Dashboard]:
    """The page of the version with intensities; tests only look at it."""
    url, versions = odd_service
    with watched_dashboard(browser, url) as dashboard:
        yield dashboard.open(f"#version={versions.modulated}", view=VIEW)


def kernel(dashboard: Dashboard, version: str) -> dict[str, Any]:
    """A version's first kernel in the API."""
    first: dict[str, Any] = dashboard.api(f"/v1/models/{version}")["kernels"][0]
    return first


def drawn(dashboard: Dashboard, chart: str, name: str) -> Trace:
    (trace,) = [trace for trace in dashboard.traces(chart) if trace["name"] == name]
    return trace


def logs(days: list[float]) -> list[float]:
    """The positions of intervals on the axis: the logarithms of their milliseconds."""
    return [math.log10(one * DAY) for one in days]


def periods(rhythms: list[dict[str, float]]) -> list[float]:
    return [rhythm["period_days"] for rhythm in rhythms]


def mean_between(psi: dict[str, Any], start: float, end: float, *, is_first: bool = False) -> float:
    """The mean of a kernel between two intervals, by its rhythms."""
    values = psi["initial_psi" if is_first else "psi"]
    rhythms = psi["initial_spectrum" if is_first else "spectrum"]
    mean = float(values[0]) - sum(rhythm["power"] for rhythm in rhythms)
    for rhythm in rhythms:
        frequency = 2 * math.pi / rhythm["period_days"]
        difference = math.sin(frequency * end) - math.sin(frequency * start)
        mean += rhythm["power"] * difference / (frequency * (end - start))
    return float(mean)


def test_psi_is_drawn_with_the_values_of_the_api(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view=VIEW)
    models = shop_dashboard.api("/v1/models")["models"]
    (version,) = [model["version"] for model in models if model["is_serving"]]
    expected = kernel(shop_dashboard, version)
    points = drawn(shop_dashboard, "psi-first", "values")
    assert points["y"] == expected["psi"]
    assert points["x"] == pytest.approx(logs(expected["interval_days"]))


def test_the_sum_of_the_rhythms_is_psi_at_every_point(
    default_view: Dashboard, odd_versions: OddVersions
) -> None:
    expected = kernel(default_view, odd_versions.moved)
    computed = default_view.page.evaluate(
        """async (kernel) => {
            const module = new URL("kernels/kernel_charts.js", document.baseURI);
            const {toFormula, evaluatePsi} = await import(module);
            const formula = toFormula(kernel);
            return kernel.interval_days.map((days) => evaluatePsi(formula, days));
        }""",
        expected,
    )
    assert computed == pytest.approx(expected["psi"], abs=1e-5)


def test_a_kernel_without_a_constant_is_drawn_by_its_values(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    version = odd_versions.moved

    def drop_constant(route: Route) -> None:
        description = httpx.get(route.request.url, timeout=60, auth=LOCAL_TOKEN).json()
        description["kernels"][0]["constant"] = None
        route.fulfill(body=json.dumps(description), content_type="application/json")

    odd_dashboard.page.route(f"**/v1/models/{version}", drop_constant)
    odd_dashboard.open(view=VIEW)
    expected = kernel(odd_dashboard, version)
    assert drawn(odd_dashboard, "psi-first", "psi")["y"] == expected["psi"]
    assert "range" not in {trace["name"] for trace in odd_dashboard.traces("psi-first")}
    expect(odd_dashboard.page.locator("#psi-first-caption")).to_contain_text(
        "rhythms do not reproduce it"
    )


@pytest.mark.parametrize(("window", "unit", "length"), [("day", 24, 1), ("week", 1, 7)])
def test_a_linear_axis_shows_the_mean_of_every_pixel(
    odd_dashboard: Dashboard, odd_versions: OddVersions, window: str, unit: int, length: int
) -> None:
    odd_dashboard.open(f"#scale=linear&window={window}", view=VIEW)
    expected = kernel(odd_dashboard, odd_versions.moved)
    line = drawn(odd_dashboard, "psi-first", "psi")
    count = len(line["x"])
    step = length / count
    assert line["x"] == pytest.approx([(index + 0.5) * step * unit for index in range(count)])
    means = [mean_between(expected, index * step, (index + 1) * step) for index in range(count)]
    assert line["y"] == pytest.approx(means, abs=1e-5)
    inside = [
        psi
        for days, psi in zip(expected["interval_days"], expected["psi"], strict=True)
        if days <= length
    ]
    assert drawn(odd_dashboard, "psi-first", "values")["y"] == inside


def test_the_line_is_within_the_band(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open("#scale=linear&window=year", view=VIEW)
    line = drawn(odd_dashboard, "psi-first", "psi")["y"]
    band = drawn(odd_dashboard, "psi-first", "range")["y"]
    high, low = band[: len(line)], list(reversed(band[len(line) :]))
    assert all(below <= mean <= above for below, mean, above in zip(low, line, high, strict=True))
    assert max(above - below for below, above in zip(low, high, strict=True)) > 0.1


def test_psi_before_training_is_drawn_dashed(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open("#scale=linear&window=60d", view=VIEW)
    expected = kernel(odd_dashboard, odd_versions.moved)
    line = drawn(odd_dashboard, "psi-first", "before training")
    assert line["line"]["dash"] == "dash"
    step = 60 / len(line["x"])
    means = [
        mean_between(expected, index * step, (index + 1) * step, is_first=True)
        for index in range(len(line["x"]))
    ]
    assert line["y"] == pytest.approx(means, abs=1e-4)


def test_shares_of_rhythms_sum_to_one_at_their_periods(
    default_view: Dashboard, odd_versions: OddVersions
) -> None:
    rhythms = kernel(default_view, odd_versions.moved)["spectrum"]
    shares = drawn(default_view, "spectrum-first", "share")
    assert sum(shares["y"]) == pytest.approx(1)
    power = sum(rhythm["power"] for rhythm in rhythms)
    assert shares["y"] == pytest.approx([rhythm["power"] / power for rhythm in rhythms])
    assert shares["x"] == pytest.approx(logs(periods(rhythms)))


def test_lines_join_periods_before_and_after_training(
    default_view: Dashboard, odd_versions: OddVersions
) -> None:
    expected = kernel(default_view, odd_versions.moved)
    before, after = (sorted(periods(expected[part])) for part in ("initial_spectrum", "spectrum"))
    moved = drawn(default_view, "spectrum-first", "moved")["x"]
    assert moved[0::3] == pytest.approx(logs(before))
    assert moved[1::3] == pytest.approx(logs(after))
    default_view.page.locator("#spectrum-first-table summary").click()
    ratios = default_view.page.locator("#spectrum-first-table tbody td:nth-child(3)")
    # The table is built when it is opened.
    expect(ratios).to_have_count(len(after))
    assert [float(text) for text in ratios.all_inner_texts()] == pytest.approx(
        [end / start for start, end in zip(before, after, strict=True)], abs=1e-4
    )


def test_a_kernel_that_is_not_stationary_has_no_rhythms(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.nonstationary}", view=VIEW)
    expected = kernel(odd_dashboard, odd_versions.nonstationary)
    assert drawn(odd_dashboard, "psi-first", "psi")["y"] == expected["psi"]
    assert "range" not in {trace["name"] for trace in odd_dashboard.traces("psi-first")}
    expect(odd_dashboard.page.locator("#psi-first-caption")).to_contain_text("not stationary")
    expect(odd_dashboard.page.locator("#spectrum-first")).to_be_hidden()
    expect(odd_dashboard.page.locator("#spectrum-first-caption")).to_contain_text("no spectrum")


def test_without_initial_kernels_the_page_says_why(
    modulated_view: Dashboard, odd_versions: OddVersions
) -> None:
    missing = modulated_view.api(f"/v1/models/{odd_versions.modulated}")["missing"]
    (why,) = [entry["why"] for entry in missing if entry["part"] == "initial_kernels"]
    expect(modulated_view.page.locator("#first-kernel")).to_contain_text(why)
    assert "before training" not in {trace["name"] for trace in modulated_view.traces("psi-first")}


def test_without_a_time_encoding_the_page_says_why(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.counting}", view=VIEW)
    missing = odd_dashboard.api(f"/v1/models/{odd_versions.counting}")["missing"]
    (why,) = [entry["why"] for entry in missing if entry["part"] == "kernels"]
    expect(odd_dashboard.page.locator("#first-kernel")).to_contain_text(why)
    expect(odd_dashboard.page.locator("#psi-first")).to_be_hidden()


def test_two_versions_are_drawn_on_the_same_scales(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    expect(odd_dashboard.page.locator("#second-kernel")).to_be_hidden()
    odd_dashboard.by_label("Compare with").select_option(odd_versions.modulated)
    odd_dashboard.settle()
    expected = kernel(odd_dashboard, odd_versions.modulated)
    assert drawn(odd_dashboard, "psi-second", "values")["y"] == expected["psi"]
    for chart in ("psi", "spectrum"):
        ranges = odd_dashboard.page.evaluate(
            """(chart) => ["first", "second"].map((name) => {
                const {xaxis, yaxis} = document.getElementById(`${chart}-${name}`).layout;
                return [...xaxis.range, ...yaxis.range];
            })""",
            chart,
        )
        assert ranges[0] == ranges[1]


def test_intensities_are_those_of_the_api(
    modulated_view: Dashboard, odd_versions: OddVersions
) -> None:
    traces = modulated_view.traces("intensity-plot")
    assert len(traces) == len(GROUPS) + 1
    body = {
        "user_id": USER,
        "model_version": odd_versions.modulated,
        "query_times": [at / 1000 for at in traces[0]["x"]],
    }
    response = modulated_view.api("/v1/attention", body)
    assert response["groups"] == list(GROUPS)
    for group, trace in enumerate(traces[: len(GROUPS)]):
        expected = [instant["intensities"][group] for instant in response["instants"]]
        assert trace["y"] == pytest.approx(expected)
        assert len(set(expected)) > 50
    # Two of the six events are of the same instant.
    assert traces[-1]["name"] == "events"
    assert len(traces[-1]["x"]) == 5


def test_groups_are_chosen_and_their_names_stay_text(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.modulated}", view=VIEW)
    legend = odd_dashboard.page.locator("#intensity-legend")
    expect(legend).to_contain_text(HOSTILE)
    legend.get_by_label("bags").uncheck()
    odd_dashboard.settle()
    names = [trace["name"] for trace in odd_dashboard.traces("intensity-plot")]
    assert names == [HOSTILE.replace("<", "&lt;").replace(">", "&gt;"), "candles", "events"]
    assert odd_dashboard.page.locator("img").count() == 0
    assert odd_dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_the_page_finds_versions_with_intensities(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    expect(odd_dashboard.page.locator("#intensities")).to_be_hidden()
    expect(odd_dashboard.page.locator("#no-intensities")).to_contain_text("This version does not")
    odd_dashboard.page.get_by_role("button", name="Find versions with intensities").click()
    offers = odd_dashboard.page.locator("#modulated button")
    expect(offers).to_have_text([odd_versions.modulated])
    offers.click()
    expect(odd_dashboard.page.locator("#intensities")).to_be_visible()
    expect(odd_dashboard.page.locator("#version")).to_have_value(odd_versions.modulated)


def test_a_link_restores_the_page(odd_dashboard: Dashboard, odd_versions: OddVersions) -> None:
    odd_dashboard.open(view=VIEW)
    odd_dashboard.page.locator("#version").select_option(odd_versions.modulated)
    odd_dashboard.settle()
    odd_dashboard.by_label("Compare with").select_option(odd_versions.moved)
    odd_dashboard.page.locator(".segments span", has_text="linear").click()
    odd_dashboard.page.locator("#window").select_option("60d")
    odd_dashboard.settle()
    odd_dashboard.page.locator(f"#user-list button[value={USER}]").click()
    odd_dashboard.settle()
    charts = ("psi-first", "psi-second", "intensity-plot")
    shown = [odd_dashboard.traces(chart) for chart in charts]
    link = odd_dashboard.page.url
    assert f"user={USER}" in link
    odd_dashboard.page.goto("about:blank")
    odd_dashboard.open(link[link.index("#") :], view=VIEW)
    assert [odd_dashboard.traces(chart) for chart in charts] == shown
    expect(odd_dashboard.page.locator("#window")).to_have_value("60d")
