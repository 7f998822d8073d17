"""The population view: what is drawn is what the API tells of attention profiles."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.odd_models import ACTIONS, CATEGORIES, HOSTILE, OddVersions
from tests.processes import eventually, processes

VIEW = "population.html"
VIEWS = ("observed", "predicted")
ALL = "all histories"
MOST = 8


def place_of(days: float) -> float:
    """Where an interval stands on the axis: the logarithm of its milliseconds."""
    return math.log10(days * 24 * 3_600_000)


def points(
    dashboard: Dashboard, version: str, view: str, name: str, by: str = "action"
) -> list[dict[str, Any]]:
    """What the API tells of a curve: that of an action or category, or "" of all histories."""
    profile = dashboard.api(f"/v1/models/{version}")["attention_profile"]
    wanted = (view, name, by if name else "all")
    return [point for point in profile if (point["view"], point["name"], point["by"]) == wanted]


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


def assert_drawn(trace: dict[str, Any], told: list[dict[str, Any]]) -> None:
    assert len(told) > 0
    assert trace["y"] == pytest.approx([point["mean"] for point in told])
    assert trace["x"] == pytest.approx([place_of(point["interval_days"]) for point in told])


@pytest.mark.parametrize("view", VIEWS)
def test_a_trained_models_curves_are_those_of_the_api(shop_dashboard: Dashboard, view: str) -> None:
    shop_dashboard.open("#by=category", view=VIEW)
    version = served(shop_dashboard)
    drawn = curves(shop_dashboard, view)
    assert len(drawn) > 3
    for name, trace in drawn.items():
        told = points(shop_dashboard, version, view, "" if name == ALL else name, "category")
        assert_drawn(trace, told)


@pytest.mark.parametrize("view", VIEWS)
def test_actions_have_curves_of_their_own(
    odd_dashboard: Dashboard, odd_versions: OddVersions, view: str
) -> None:
    odd_dashboard.open(view=VIEW)
    drawn = curves(odd_dashboard, view)
    assert list(drawn) == [ALL, "view", HOSTILE.replace("<", "&lt;").replace(">", "&gt;")]
    for trace, name in zip(drawn.values(), ("", *ACTIONS), strict=True):
        assert_drawn(trace, points(odd_dashboard, odd_versions.moved, view, name))


@pytest.mark.parametrize("kind", ["sem", "sd"])
def test_bands_are_as_computed_and_leave_no_share_below_0_or_above_1(
    odd_dashboard: Dashboard, odd_versions: OddVersions, kind: str
) -> None:
    odd_dashboard.open(f'#band={kind}&names=[""]', view=VIEW)
    told = points(odd_dashboard, odd_versions.moved, "observed", "")
    spread = [point["sd"] / (math.sqrt(point["count"]) if kind == "sem" else 1) for point in told]
    high = [min(1, point["mean"] + by) for point, by in zip(told, spread, strict=True)]
    low = [max(0, point["mean"] - by) for point, by in zip(told, spread, strict=True)]
    (band,) = bands(odd_dashboard)
    assert band["y"] == pytest.approx([*high, *reversed(low)])
    assert min(low) == 0
    assert (max(high) == 1) == (kind == "sd")


def test_weights_that_are_no_shares_may_exceed_1(
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
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open('#names=[""]', view=VIEW)
    told = points(odd_dashboard, odd_versions.moved, "observed", "")
    drawn = odd_dashboard.traces("observed-plot")
    (counts,) = [trace for trace in drawn if trace["name"] == "histories"]
    assert counts["y"] == [point["count"] for point in told] == [40, 40, 40, 4]
    symbols = curves(odd_dashboard)[ALL]["marker"]["symbol"]
    assert symbols == ["circle", "circle", "circle", "circle-open"]
    expect(odd_dashboard.page.locator("#band-note")).to_contain_text("fewer than 10 histories")


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
        told = points(odd_dashboard, odd_versions.moved, view, "category h", "category")
        assert_drawn(drawn["category h"], told)


def test_at_most_eight_curves_are_drawn_at_once_and_look_different(
    odd_dashboard: Dashboard,
) -> None:
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


def test_choosing_a_curve_leaves_the_keyboard_where_it_is(odd_dashboard: Dashboard) -> None:
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


def test_a_second_version_is_drawn_dashed_and_without_bands(shop_dashboard: Dashboard) -> None:
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
        assert_drawn(dashed[ALL], points(shop_dashboard, others[0], view, ""))
    assert len(bands(shop_dashboard)) == without
    expect(shop_dashboard.page.locator("#band-note")).to_contain_text("other version is dashed")


def test_a_version_without_a_profile_says_why(
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


def test_a_compared_version_without_a_profile_leaves_the_first_alone(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    odd_dashboard.open(f"#compare={odd_versions.nonstationary}", view=VIEW)
    expect(odd_dashboard.page.locator("#legend-note")).to_contain_text(odd_versions.nonstationary)
    assert len(curves(odd_dashboard)) == 3


def test_names_stay_text_whatever_they_hold(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open("#by=category", view=VIEW)
    expect(odd_dashboard.page.locator("#legend")).to_contain_text(HOSTILE)
    odd_dashboard.page.locator("#observed-table summary").click()
    expect(odd_dashboard.page.locator("#observed-table table")).to_contain_text(HOSTILE)
    for point in odd_dashboard.page.locator("#observed-plot .point").all():
        box = point.bounding_box()
        assert box is not None
        odd_dashboard.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        # plotly.js looks at the pointer every now and then, not at each of its moves.
        odd_dashboard.page.wait_for_timeout(150)
        if odd_dashboard.page.locator("#observed-plot + .tip", has_text=HOSTILE).is_visible():
            break
    tip = odd_dashboard.page.locator("#observed-plot + .tip")
    expect(tip).to_contain_text(HOSTILE)
    expect(tip).to_contain_text("standard deviation 60.0 %")
    assert odd_dashboard.page.locator("img").count() == 0
    assert odd_dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_the_table_holds_every_point(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open('#names=["view"]', view=VIEW)
    odd_dashboard.page.locator("#observed-table summary").click()
    rows = odd_dashboard.page.locator("#observed-table tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.last).to_have_text("view300 d1.9 %30.0 %60.0 %4")


def test_a_link_brings_back_what_was_shown(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
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


def test_going_back_returns_to_the_version_before(
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
def test_where_nothing_is_published_the_page_says_how_to_get_a_version(
    look_at: Callable[[str], Dashboard], tmp_path: Path, view: str
) -> None:
    with processes(tmp_path, tmp_path / "bundles") as start:
        server = start(wait=False)
        eventually(lambda: server.process.poll() is None and _answers(server.url))
        dashboard = look_at(server.url).open(view=view)
        expect(dashboard.page.locator("main")).to_contain_text("No version is published yet")


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/live").is_success
    except httpx.TransportError:
        return False
