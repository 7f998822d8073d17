"""The Population page draws the attention profiles that the API returns."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.dashboard import Dashboard, watched_dashboard
from tests.browser.odd_models import ACTIONS, CATEGORIES, HOSTILE, OddVersions
from tests.processes import Server

VIEW = "population.html"
VIEWS = ("observed", "predicted")
ALL = "all histories"
MOST = 8


@pytest.fixture(scope="module")
def default_view(browser: Browser, odd_service: tuple[str, OddVersions]) -> Iterator[Dashboard]:
    """The page of the version that serves, `OddVersions.moved`; tests only look at it."""
    with watched_dashboard(browser, odd_service[0]) as dashboard:
        yield dashboard.open(view=VIEW)


@pytest.fixture(scope="module")
def shop_categories(browser: Browser, shop: str) -> Iterator[Dashboard]:
    """The page of a trained model, by category; tests only look at it."""
    with watched_dashboard(browser, shop) as dashboard:
        yield dashboard.open("#by=category", view=VIEW)


@pytest.fixture(scope="module")
def all_histories(browser: Browser, odd_service: tuple[str, OddVersions]) -> Iterator[Dashboard]:
    """The page with the curve of all histories alone; tests choose its bands."""
    with watched_dashboard(browser, odd_service[0]) as dashboard:
        yield dashboard.open('#names=[""]', view=VIEW)


def position(days: float) -> float:
    """The position of an interval on the axis: the logarithm of its milliseconds."""
    return math.log10(days * 24 * 3_600_000)


def points(
    dashboard: Dashboard, version: str, view: str, name: str, by: str = "action"
) -> list[dict[str, Any]]:
    """A curve in the API: of an action or category, or with the name "" of all histories."""
    profile = dashboard.api(f"/v1/models/{version}")["attention_profile"]
    key = (view, name, by if name else "all")
    return [point for point in profile if (point["view"], point["name"], point["by"]) == key]


def curves(dashboard: Dashboard, view: str = "observed") -> dict[str, dict[str, Any]]:
    """The drawn curves of the first version by their names."""
    return {
        trace["name"]: trace
        for trace in dashboard.traces(f"{view}-plot")
        if trace["mode"] == "lines+markers" and trace["line"]["dash"] == "solid"
    }


def bands(dashboard: Dashboard, view: str = "observed") -> list[dict[str, Any]]:
    return [trace for trace in dashboard.traces(f"{view}-plot") if trace["name"] == "band"]


def served(dashboard: Dashboard) -> str:
    models = dashboard.api("/v1/models")["models"]
    (version,) = [model["version"] for model in models if model["is_serving"]]
    return str(version)


def assert_drawn(trace: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    assert len(expected) > 0
    assert trace["y"] == pytest.approx([point["mean"] for point in expected])
    assert trace["x"] == pytest.approx([position(point["interval_days"]) for point in expected])


@pytest.mark.parametrize("view", VIEWS)
def test_curves_of_a_trained_model_are_those_of_the_api(
    shop_categories: Dashboard, view: str
) -> None:
    version = served(shop_categories)
    drawn = curves(shop_categories, view)
    assert len(drawn) > 3
    for name, trace in drawn.items():
        expected = points(shop_categories, version, view, "" if name == ALL else name, "category")
        assert_drawn(trace, expected)


@pytest.mark.parametrize("view", VIEWS)
def test_actions_have_curves_of_their_own(
    default_view: Dashboard, odd_versions: OddVersions, view: str
) -> None:
    drawn = curves(default_view, view)
    assert list(drawn) == [ALL, "view", HOSTILE.replace("<", "&lt;").replace(">", "&gt;")]
    for trace, name in zip(drawn.values(), ("", *ACTIONS), strict=True):
        assert_drawn(trace, points(default_view, odd_versions.moved, view, name))


@pytest.mark.parametrize("kind", ["sem", "sd"])
def test_bands_show_the_spread_between_0_and_1(
    all_histories: Dashboard, odd_versions: OddVersions, kind: str
) -> None:
    all_histories.by_label("Bands").select_option(kind)
    all_histories.settle()
    curve = points(all_histories, odd_versions.moved, "observed", "")
    spread = [point["sd"] / (math.sqrt(point["count"]) if kind == "sem" else 1) for point in curve]
    high = [min(1, point["mean"] + by) for point, by in zip(curve, spread, strict=True)]
    low = [max(0, point["mean"] - by) for point, by in zip(curve, spread, strict=True)]
    (band,) = bands(all_histories)
    assert band["y"] == pytest.approx([*high, *reversed(low)])
    assert min(low) == 0
    assert (max(high) == 1) == (kind == "sd")


def test_bands_of_unnormalised_weights_may_exceed_1(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f'#version={odd_versions.modulated}&band=sd&names=[""]', view=VIEW)
    (band,) = bands(odd_dashboard)
    assert max(band["y"]) == pytest.approx(0.9 + 0.6)
    assert min(band["y"]) == 0


def test_bands_can_be_left_out(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open(view=VIEW)
    expect(odd_dashboard.page.locator("#band-note")).to_contain_text("standard error of the mean")
    assert len(bands(odd_dashboard)) == 3
    odd_dashboard.by_label("Bands").select_option("none")
    odd_dashboard.settle()
    assert bands(odd_dashboard) == []
    expect(odd_dashboard.page.locator("#band-note")).not_to_contain_text("Bands")


def test_counts_are_drawn_and_few_histories_stand_out(
    all_histories: Dashboard, odd_versions: OddVersions
) -> None:
    expected = points(all_histories, odd_versions.moved, "observed", "")
    drawn = all_histories.traces("observed-plot")
    (counts,) = [trace for trace in drawn if trace["name"] == "histories"]
    assert counts["y"] == [point["count"] for point in expected] == [40, 40, 40, 4]
    symbols = curves(all_histories)[ALL]["marker"]["symbol"]
    assert symbols == ["circle", "circle", "circle", "circle-open"]
    expect(all_histories.page.locator("#band-note")).to_contain_text("fewer than 10 histories")


def test_choosing_categories_changes_what_is_drawn(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    odd_dashboard.page.locator(".segments span", has_text="category").click()
    odd_dashboard.settle()
    assert len(curves(odd_dashboard)) == 5
    assert "category h" not in curves(odd_dashboard)
    odd_dashboard.page.locator("#legend").get_by_label("category h").check()
    odd_dashboard.page.locator("#legend").get_by_label(ALL).uncheck()
    odd_dashboard.settle()
    for view in VIEWS:
        drawn = curves(odd_dashboard, view)
        assert ALL not in drawn
        expected = points(odd_dashboard, odd_versions.moved, view, "category h", "category")
        assert_drawn(drawn["category h"], expected)


def test_at_most_eight_curves_are_drawn_and_differ(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open("#by=category", view=VIEW)
    boxes = odd_dashboard.page.locator("#legend input[type=checkbox]")
    expect(boxes).to_have_count(1 + len(CATEGORIES))
    odd_dashboard.page.locator("#legend").get_by_label("category k").check()
    for letter in "ij":
        odd_dashboard.page.locator("#legend").get_by_label(f"category {letter}").check()
    odd_dashboard.settle()
    expect(odd_dashboard.page.locator("#legend input:disabled")).to_have_count(
        1 + len(CATEGORIES) - MOST
    )
    expect(odd_dashboard.page.locator("#legend")).to_contain_text("At most 8 at once")
    drawn = curves(odd_dashboard).values()
    styles = {(trace["line"]["color"], trace["marker"]["symbol"][0]) for trace in drawn}
    assert len(styles) == len(drawn) == MOST


def test_choosing_a_curve_keeps_the_keyboard_focus(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open("#by=category", view=VIEW)
    odd_dashboard.by_label("Find among the curves").fill("category h")
    box = odd_dashboard.page.locator("#legend").get_by_label("category h")
    box.focus()
    box.press("Space")
    odd_dashboard.settle()
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    expect(odd_dashboard.page.locator("#legend li:visible")).to_have_count(1)
    assert "category h" in curves(odd_dashboard)


def test_curves_are_found_by_part_of_their_name(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open("#by=category", view=VIEW)
    odd_dashboard.by_label("Find among the curves").fill("GORY J")
    expect(odd_dashboard.page.locator("#legend li:visible")).to_have_count(1)
    expect(odd_dashboard.page.locator("#legend li:visible")).to_contain_text("category j")


def test_a_second_version_is_dashed_without_bands(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view=VIEW)
    version = served(shop_dashboard)
    others = [
        model["version"]
        for model in shop_dashboard.api("/v1/models")["models"]
        if model["version"] != version
    ]
    without = len(bands(shop_dashboard))
    shop_dashboard.by_label("Compare with").select_option(others[0])
    shop_dashboard.settle()
    for view in VIEWS:
        dashed = {
            trace["name"]: trace
            for trace in shop_dashboard.traces(f"{view}-plot")
            if trace["mode"] == "lines+markers" and trace["line"]["dash"] == "dash"
        }
        name = f"{ALL}, {others[0]}"
        assert_drawn(dashed[name], points(shop_dashboard, others[0], view, ""))
    assert len(bands(shop_dashboard)) == without
    expect(shop_dashboard.page.locator("#band-note")).to_contain_text("other version is dashed")


def test_without_a_profile_the_page_says_why(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    version = odd_versions.counting
    odd_dashboard.open(f"#version={version}", view=VIEW)
    missing = odd_dashboard.api(f"/v1/models/{version}")["missing"]
    (why,) = [entry["why"] for entry in missing if entry["part"] == "attention_profile"]
    note = odd_dashboard.page.locator("#legend-note")
    expect(note).to_contain_text(f"{version} has no attention profile: {why}")
    expect(note).to_contain_text("profile_histories")
    expect(odd_dashboard.page.locator("#pictures")).to_be_hidden()


def test_comparing_with_no_profile_keeps_the_first_curves(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#compare={odd_versions.nonstationary}", view=VIEW)
    expect(odd_dashboard.page.locator("#legend-note")).to_contain_text(odd_versions.nonstationary)
    assert len(curves(odd_dashboard)) == 3


def test_names_stay_text(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open("#by=category", view=VIEW)
    expect(odd_dashboard.page.locator("#legend")).to_contain_text(HOSTILE)
    odd_dashboard.page.locator("#observed-table summary").click()
    expect(odd_dashboard.page.locator("#observed-table table")).to_contain_text(HOSTILE)
    for point in odd_dashboard.page.locator("#observed-plot .point").all():
        box = point.bounding_box()
        assert box is not None
        odd_dashboard.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        # plotly.js handles pointer moves at intervals.
        odd_dashboard.page.wait_for_timeout(150)
        if odd_dashboard.page.locator("#observed-plot + .tip", has_text=HOSTILE).is_visible():
            break
    tip = odd_dashboard.page.locator("#observed-plot + .tip")
    expect(tip).to_contain_text(HOSTILE)
    expect(tip).to_contain_text("standard deviation 60.0 %")
    assert odd_dashboard.page.locator("img").count() == 0
    assert odd_dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_the_table_has_every_point(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open('#names=["view"]', view=VIEW)
    odd_dashboard.page.locator("#observed-table summary").click()
    rows = odd_dashboard.page.locator("#observed-table tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.last).to_have_text("view300 d1.9 %30.0 %60.0 %4")


def test_a_link_restores_the_page(odd_dashboard: Dashboard, odd_versions: OddVersions) -> None:
    odd_dashboard.open("#by=category&band=sd", view=VIEW)
    odd_dashboard.by_label("Compare with").select_option(odd_versions.modulated)
    odd_dashboard.page.locator("#legend").get_by_label("category j").check()
    odd_dashboard.settle()
    drawn = odd_dashboard.traces("predicted-plot")
    link = odd_dashboard.page.url
    odd_dashboard.page.goto("about:blank")
    odd_dashboard.open(link[link.index("#") :], view=VIEW)
    assert odd_dashboard.traces("predicted-plot") == drawn
    expect(odd_dashboard.by_label("Bands")).to_have_value("sd")
    expect(odd_dashboard.by_label("Compare with")).to_have_value(odd_versions.modulated)


def test_back_returns_to_the_previous_version(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(view=VIEW)
    select = odd_dashboard.page.locator("#version")
    select.select_option(odd_versions.counting)
    odd_dashboard.settle()
    expect(odd_dashboard.page.locator("#pictures")).to_be_hidden()
    odd_dashboard.page.go_back()
    expect(select).to_have_value(odd_versions.moved)
    expect(odd_dashboard.page.locator("#pictures")).to_be_visible()


@pytest.mark.parametrize("view", [VIEW, "kernels.html"])
def test_without_a_version_the_page_says_how_to_get_one(
    look_at: Callable[[str], Dashboard], empty_service: Server, view: str
) -> None:
    dashboard = look_at(empty_service.url).open(view=view)
    expect(dashboard.page.locator("main")).to_contain_text("No version is published yet")
