"""The kernel view: what is drawn is what the API tells of kernels, rhythms and intensities."""

import math
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.odd_models import GROUPS, HOSTILE, USER, OddVersions

VIEW = "kernels.html"
DAY = 24 * 3_600_000

Trace = dict[str, Any]


def kernel(dashboard: Dashboard, version: str) -> dict[str, Any]:
    """What the API tells of a version's first kernel."""
    told: dict[str, Any] = dashboard.api(f"/v1/models/{version}")["kernels"][0]
    return told


def drawn(dashboard: Dashboard, chart: str, name: str) -> Trace:
    (trace,) = [trace for trace in dashboard.traces(chart) if trace["name"] == name]
    return trace


def logs(days: list[float]) -> list[float]:
    """Where intervals stand on the axis: the logarithms of their milliseconds."""
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
        turned = math.sin(frequency * end) - math.sin(frequency * start)
        mean += rhythm["power"] * turned / (frequency * (end - start))
    return float(mean)


def test_psi_is_drawn_as_the_api_tells_it(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view=VIEW)
    models = shop_dashboard.api("/v1/models")["models"]
    (version,) = [model["version"] for model in models if model["is_serving"]]
    told = kernel(shop_dashboard, version)
    points = drawn(shop_dashboard, "psi-first", "told")
    assert points["y"] == told["psi"]
    assert points["x"] == pytest.approx(logs(told["interval_days"]))


def test_the_rhythms_add_up_to_what_the_api_tells_at_every_point(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    told = kernel(odd_dashboard, odd_versions.moved)
    again = odd_dashboard.page.evaluate(
        """async (kernel) => {
            const module = new URL("kernels/rhythms.js", document.baseURI);
            const {formulaOf, psiAt} = await import(module);
            const formula = formulaOf(kernel);
            return kernel.interval_days.map((days) => psiAt(formula, days));
        }""",
        told,
    )
    assert again == pytest.approx(told["psi"], abs=1e-5)


def test_rhythms_that_do_not_add_up_to_psi_are_not_drawn_as_if_they_did(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    told = kernel(odd_dashboard, odd_versions.moved)
    formulas = odd_dashboard.page.evaluate(
        """async ({kernel, others}) => {
            const module = new URL("kernels/rhythms.js", document.baseURI);
            const {formulaOf} = await import(module);
            return others.map((other) => formulaOf({...kernel, ...other}));
        }""",
        {
            "kernel": told,
            "others": [
                {"psi": [value + 0.01 * (place % 2) for place, value in enumerate(told["psi"])]},
                {"is_stationary": False},
                {"spectrum": None},
            ],
        },
    )
    assert formulas == [None, None, None]


@pytest.mark.parametrize(("window", "unit", "length"), [("day", 24, 1), ("week", 1, 7)])
def test_on_a_linear_axis_the_line_is_the_mean_of_what_the_rhythms_add_up_to(
    odd_dashboard: Dashboard, odd_versions: OddVersions, window: str, unit: int, length: int
) -> None:
    odd_dashboard.open(f"#scale=linear&window={window}", view=VIEW)
    told = kernel(odd_dashboard, odd_versions.moved)
    line = drawn(odd_dashboard, "psi-first", "psi")
    count = len(line["x"])
    step = length / count
    assert line["x"] == pytest.approx([(place + 0.5) * step * unit for place in range(count)])
    means = [mean_between(told, place * step, (place + 1) * step) for place in range(count)]
    assert line["y"] == pytest.approx(means, abs=1e-5)
    inside = [
        psi for days, psi in zip(told["interval_days"], told["psi"], strict=True) if days <= length
    ]
    assert drawn(odd_dashboard, "psi-first", "told")["y"] == inside


def test_the_band_holds_the_line(odd_dashboard: Dashboard) -> None:
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
    told = kernel(odd_dashboard, odd_versions.moved)
    line = drawn(odd_dashboard, "psi-first", "before training")
    assert line["line"]["dash"] == "dash"
    step = 60 / len(line["x"])
    means = [
        mean_between(told, place * step, (place + 1) * step, is_first=True)
        for place in range(len(line["x"]))
    ]
    assert line["y"] == pytest.approx(means, abs=1e-4)


def test_shares_of_rhythms_sum_to_one_at_their_periods(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    told = kernel(odd_dashboard, odd_versions.moved)["spectrum"]
    shares = drawn(odd_dashboard, "spectrum-first", "share")
    assert sum(shares["y"]) == pytest.approx(1)
    power = sum(rhythm["power"] for rhythm in told)
    assert shares["y"] == pytest.approx([rhythm["power"] / power for rhythm in told])
    assert shares["x"] == pytest.approx(logs(periods(told)))


def test_lines_lead_from_the_periods_before_training_to_those_after(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    told = kernel(odd_dashboard, odd_versions.moved)
    before, after = (sorted(periods(told[part])) for part in ("initial_spectrum", "spectrum"))
    moved = drawn(odd_dashboard, "spectrum-first", "moved")["x"]
    assert moved[0::3] == pytest.approx(logs(before))
    assert moved[1::3] == pytest.approx(logs(after))
    odd_dashboard.page.locator("#spectrum-first-table summary").click()
    ratios = odd_dashboard.page.locator("#spectrum-first-table tbody td:nth-child(3)")
    # The table is made once it is opened.
    expect(ratios).to_have_count(len(after))
    assert [float(text) for text in ratios.all_inner_texts()] == pytest.approx(
        [end / start for start, end in zip(before, after, strict=True)], abs=1e-4
    )


def test_a_kernel_that_is_not_stationary_is_drawn_without_rhythms_and_says_so(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.nonstationary}", view=VIEW)
    told = kernel(odd_dashboard, odd_versions.nonstationary)
    assert drawn(odd_dashboard, "psi-first", "psi")["y"] == told["psi"]
    assert "range" not in {trace["name"] for trace in odd_dashboard.traces("psi-first")}
    expect(odd_dashboard.page.locator("#psi-first-caption")).to_contain_text("not stationary")
    expect(odd_dashboard.page.locator("#spectrum-first")).to_be_hidden()
    expect(odd_dashboard.page.locator("#spectrum-first-caption")).to_contain_text("no spectrum")


def test_a_version_that_does_not_tell_its_first_kernels_says_why(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.modulated}", view=VIEW)
    missing = odd_dashboard.api(f"/v1/models/{odd_versions.modulated}")["missing"]
    (why,) = [entry["why"] for entry in missing if entry["part"] == "initial_kernels"]
    expect(odd_dashboard.page.locator("#first-kernel")).to_contain_text(why)
    assert "before training" not in {trace["name"] for trace in odd_dashboard.traces("psi-first")}


def test_a_model_without_a_time_encoding_says_why(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.counting}", view=VIEW)
    missing = odd_dashboard.api(f"/v1/models/{odd_versions.counting}")["missing"]
    (why,) = [entry["why"] for entry in missing if entry["part"] == "kernels"]
    expect(odd_dashboard.page.locator("#first-kernel")).to_contain_text(why)
    expect(odd_dashboard.page.locator("#psi-first")).to_be_hidden()


def test_a_second_version_stands_beside_the_first_on_the_same_scales(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    expect(odd_dashboard.page.locator("#second-kernel")).to_be_hidden()
    odd_dashboard.by_label("Compare with").select_option(odd_versions.modulated)
    odd_dashboard.settle()
    told = kernel(odd_dashboard, odd_versions.modulated)
    assert drawn(odd_dashboard, "psi-second", "told")["y"] == told["psi"]
    for chart in ("psi", "spectrum"):
        ranges = odd_dashboard.page.evaluate(
            """(chart) => ["first", "second"].map((name) => {
                const {xaxis, yaxis} = document.getElementById(`${chart}-${name}`).layout;
                return [...xaxis.range, ...yaxis.range];
            })""",
            chart,
        )
        assert ranges[0] == ranges[1]


def test_intensities_are_those_of_the_api_at_the_same_instants(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#version={odd_versions.modulated}", view=VIEW)
    traces = odd_dashboard.traces("intensity-plot")
    assert len(traces) == len(GROUPS) + 1
    body = {
        "user_id": USER,
        "model_version": odd_versions.modulated,
        "query_times": [at / 1000 for at in traces[0]["x"]],
    }
    answer = odd_dashboard.api("/v1/attention", body)
    assert answer["groups"] == list(GROUPS)
    for group, trace in enumerate(traces[: len(GROUPS)]):
        told = [instant["intensities"][group] for instant in answer["instants"]]
        assert trace["y"] == pytest.approx(told)
        assert len(set(told)) > 50
    # Two of the six events are of the same instant.
    assert traces[-1]["name"] == "events"
    assert len(traces[-1]["x"]) == 5


def test_groups_are_chosen_and_stay_text_whatever_their_names_hold(
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


def test_where_a_version_has_no_intensities_the_page_finds_one_that_has(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    expect(odd_dashboard.page.locator("#intensities")).to_be_hidden()
    expect(odd_dashboard.page.locator("#no-intensities")).to_contain_text("This version does not")
    odd_dashboard.page.get_by_role("button", name="Which versions do?").click()
    offers = odd_dashboard.page.locator("#modulated button")
    expect(offers).to_have_text([odd_versions.modulated])
    offers.click()
    expect(odd_dashboard.page.locator("#intensities")).to_be_visible()
    expect(odd_dashboard.page.locator("#version")).to_have_value(odd_versions.modulated)


def test_a_link_brings_back_what_was_shown(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
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
