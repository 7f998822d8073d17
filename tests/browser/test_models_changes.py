"""Changing what is served on the models page, and how refusals are shown."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import OpenShop
from tests.browser.dashboard import Dashboard
from tests.processes import Server

VIEW = "models.html"
HOSTILE_REASON = "<img src=x onerror=\"document.body.dataset.hacked='yes'\"> & <b>more</b>"


@pytest.fixture
def own(module_shop: Server, look_at: Callable[[str], Dashboard]) -> Iterator[Dashboard]:
    """A shop that a test may change through the loopback address; what serves is restored."""
    dashboard = look_at(module_shop.url)
    before = current(dashboard)
    yield dashboard
    module_shop.http.put("/v1/models/traffic", json={}).raise_for_status()
    if current(dashboard) != before:
        dashboard.api(f"/v1/models/{before}/activate", {})


@pytest.fixture
def manifest(own: Dashboard, module_shop: Server) -> Iterator[Path]:
    """The manifest of that shop's newest version, which is restored."""
    path = bundles_of(module_shop) / versions(own)[0] / "manifest.json"
    content = path.read_bytes()
    yield path
    path.write_bytes(content)


@pytest.fixture
def pristine_server(open_shop: OpenShop) -> Server:
    """A shop of the test's own: no version was opened or rolled back before."""
    return open_shop()


@pytest.fixture
def pristine(pristine_server: Server, look_at: Callable[[str], Dashboard]) -> Dashboard:
    """The dashboard of `pristine_server`."""
    return look_at(pristine_server.url)


def bundles_of(server: Server) -> Path:
    """The bundle store of a shop."""
    return server.log.parent / "bundles"


def versions(dashboard: Dashboard) -> list[str]:
    """The self-modulating version, the current one, the one before it."""
    return [str(model["version"]) for model in dashboard.api("/v1/models")["models"]]


def current(dashboard: Dashboard) -> str:
    models = dashboard.api("/v1/models")["models"]
    (version,) = [
        model["version"] for model in models if model["is_current"] and model["is_serving"]
    ]
    return str(version)


def newest_change(dashboard: Dashboard) -> dict[str, Any]:
    return dict(dashboard.api("/v1/models/changes")["changes"][0])


def dialog_of(dashboard: Dashboard, button: str | re.Pattern[str]) -> Locator:
    """The dialog that a button opens."""
    dashboard.page.get_by_role("button", name=button).click()
    return dashboard.page.get_by_role("dialog")


def test_a_version_is_activated_by_keyboard_alone(own: Dashboard) -> None:
    page = own.open(view=VIEW).page
    other, before, _ = versions(own)
    page.get_by_role("button", name=f"Activate {other}").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{other} becomes current in place of {before}.")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type(HOSTILE_REASON)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator("#done")).to_have_text(
        f"Done: {other} is current now, in place of {before}."
    )
    own.settle()
    assert current(own) == other
    change = newest_change(own)
    assert (change["change"], change["version"], change["previous_version"]) == (
        "activate",
        other,
        before,
    )
    assert change["reason"] == HOSTILE_REASON
    expect(page.locator("table.trail tbody tr").first).to_contain_text(HOSTILE_REASON)
    assert page.locator("img").count() == 0
    assert page.evaluate("document.body.dataset.hacked") is None
    expect(page.locator(f'tr[data-version="{other}"] .role')).to_have_text("current")
    expect(page.locator("#model-version")).to_have_text(other)
    # The button is gone, so the focus is where the version is.
    expect(page.locator(f'tr[data-version="{other}"] a')).to_be_focused()
    expect(page.get_by_role("status")).to_contain_text(f"{other} is current now")


def test_escape_changes_nothing_and_returns_to_the_button(own: Dashboard) -> None:
    page = own.open(view=VIEW).page
    before, recorded = current(own), newest_change(own)
    dialog = dialog_of(own, "Roll back")
    dialog.get_by_label("Reason").press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Roll back")).to_be_focused()
    assert current(own) == before
    assert newest_change(own) == recorded


def test_rollbacks_go_where_the_dialog_says_until_refused(pristine: Dashboard) -> None:
    own = pristine
    own.expected_complaint = "status of 409"
    page = own.open(view=VIEW).page
    _, now, before = versions(own)
    dialog = dialog_of(own, "Roll back")
    expect(dialog).to_contain_text(f"{before} becomes current in place of {now}.")
    dialog.get_by_role("button", name="Roll back").click()
    expect(page.locator("#done")).to_contain_text(f"{before} is current now, in place of {now}.")
    own.settle()
    assert current(own) == before
    assert newest_change(own)["change"] == "rollback"
    dialog = dialog_of(own, "Roll back")
    expect(dialog).to_contain_text("is not known, or there is none: the service may refuse")
    dialog.get_by_role("button", name="Roll back").click()
    expect(dialog.get_by_role("alert")).to_contain_text("activate a version by its name")
    dialog.get_by_role("button", name="Cancel").click()
    assert current(own) == before


def test_a_broken_bundle_is_refused_with_the_service_problem(
    pristine: Dashboard, pristine_server: Server
) -> None:
    own = pristine
    own.expected_complaint = "status of 409"
    other, before, _ = versions(own)
    spoil(bundles_of(pristine_server) / other / "weights.safetensors")
    page = own.open(view=VIEW).page
    dialog = dialog_of(own, f"Activate {other}")
    dialog.get_by_role("button", name="Activate").click()
    expect(dialog.get_by_role("alert")).to_contain_text("weights.safetensors")
    refused = own.page.evaluate(
        """([version, token]) => fetch(`../v1/models/${version}/activate`, {
            method: "POST", body: "{}",
            headers: {"Content-Type": "application/json", Authorization: `Bearer ${token}`},
        }).then((response) => response.json())""",
        [other, pristine_server.token],
    )
    expect(dialog.get_by_role("alert")).to_have_text(refused["detail"])
    dialog.get_by_role("button", name="Cancel").click()
    assert current(own) == before
    assert newest_change(own)["change"] == "retrain"
    expect(page.locator("#done")).to_be_empty()


def test_a_broken_manifest_is_explained_and_not_selectable(own: Dashboard, manifest: Path) -> None:
    broken, *rest = versions(own)
    manifest.write_text("{}")
    page = own.open(view=VIEW).page
    row = page.locator(f'tr[data-version="{broken}"]')
    (refused,) = [
        model["refused"] for model in own.api("/v1/models")["models"] if model["version"] == broken
    ]
    expect(row).to_contain_text(f"Refused: {refused}")
    expect(row.get_by_role("button")).to_have_count(0)
    offered = page.locator("#version option").evaluate_all("all => all.map(one => one.value)")
    assert offered == rest


def test_traffic_is_set_and_ended(own: Dashboard) -> None:
    challenger, now, shadow = versions(own)
    page = own.open(view=VIEW).page
    dialog = dialog_of(own, "Set traffic")
    share = dialog.get_by_label("Share of the customers")
    expect(share).to_be_disabled()
    expect(dialog).to_contain_text("The current version serves all customers.")
    assert now not in dialog.get_by_label("Challenger").inner_text()
    dialog.get_by_label("Challenger").select_option(challenger)
    dialog.get_by_label("Shadow").select_option(shadow)
    share.press("PageUp")
    share.press("ArrowRight")
    percents = int(share.input_value())
    expect(dialog).to_contain_text(f"{challenger} serves {percents} % of the customers")
    expect(dialog).to_contain_text(f"{shadow} receives the same requests")
    dialog.get_by_label("Reason").fill("a try")
    dialog.get_by_role("button", name="Set traffic").click()
    expect(page.locator("#done")).to_contain_text("Done: challenger")
    own.settle()
    expected = {"challenger": challenger, "share": percents / 100, "shadow": shadow}
    assert percents > 1
    assert own.api("/v1/models/traffic") == expected
    change = newest_change(own)
    assert (change["change"], change["traffic"], change["reason"]) == ("traffic", expected, "a try")
    expect(page.locator(f'tr[data-version="{challenger}"]')).to_contain_text(
        f"challenger, {percents}.0 %"
    )
    expect(page.locator(f'tr[data-version="{shadow}"]')).to_contain_text("shadow")
    expect(page.locator("#serving")).to_contain_text(f"serves {percents}.0 % of the customers")

    dialog = dialog_of(own, "Set traffic")
    expect(dialog.get_by_label("Challenger")).to_have_value(challenger)
    expect(dialog.get_by_label("Share of the customers")).to_have_value(str(percents))
    dialog.get_by_label("Challenger").select_option("none")
    dialog.get_by_label("Shadow").select_option("none")
    dialog.get_by_role("button", name="Set traffic").click()
    expect(page.locator("#done")).to_have_text("Done: no challenger, no shadow.")
    assert own.api("/v1/models/traffic") == {"challenger": None, "share": 0, "shadow": None}


def test_a_refresh_shows_the_changes_of_others(own: Dashboard) -> None:
    page = own.open(view=VIEW).page
    other, before, _ = versions(own)
    own.api(f"/v1/models/{other}/activate", {"reason": "by somebody else"})
    expect(page.locator(f'tr[data-version="{before}"] .role')).to_have_text("current")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator(f'tr[data-version="{other}"] .role')).to_have_text("current")
    expect(page.locator("table.trail tbody tr").first).to_contain_text("by somebody else")
    expect(page.get_by_role("button", name="Refresh")).to_be_focused()


def spoil(file: Path) -> None:
    """Alter one byte, as a failing disk might."""
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
