"""The page of `kairos inspect --html`, opened as a file: light and dark, narrow and wide."""

from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.training.inspection.event_tables import draw_events
from training.inspection.html import render_html
from training.inspection.profile import profile_events
from training.inspection.recommendation import recommend_recipe


@pytest.fixture
def report(tmp_path: Path) -> Path:
    profile = profile_events(draw_events(days=400))
    file = tmp_path / "report.html"
    file.write_text(render_html(profile, recommend_recipe(profile), "events.csv"), "utf-8")
    return file


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_report_is_accessible_and_stays_within_its_page(
    page: Page, report: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert [fault["id"] for fault in Axe().run(page).response["violations"]] == []
    assert requests == [report.as_uri()]
