"""Checks of every page of the dashboard."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from app.dashboard.pages import render_pages
from tests.browser.dashboard import Dashboard

STATIC = Path(__file__).parents[2] / "app" / "dashboard" / "static"
RENDERED = dict(render_pages(STATIC.parent))
PAGES = sorted(RENDERED)


@pytest.mark.parametrize("view", PAGES)
def test_a_page_names_itself_and_the_model(shop_dashboard: Dashboard, view: str) -> None:
    page = shop_dashboard.page
    _open_at_width(shop_dashboard, view, 1600)
    assert re.fullmatch(r".+ – Kairos", page.title())
    expect(page.locator("nav[aria-label=Views] [aria-current]")).to_have_count(1)
    assert page.locator("nav.tabs [aria-current=page]").count() == page.locator("nav.tabs").count()
    expect(page.locator("h1")).to_have_count(1)
    models = shop_dashboard.api("/v1/models")["models"]
    (served,) = [model["version"] for model in models if model["is_serving"]]
    expect(page.locator("#model-version")).to_have_text(served)
    _open_at_width(shop_dashboard, view, 390)


def _open_at_width(dashboard: Dashboard, view: str, width: int) -> None:
    """Load a page at a viewport width, and assert that it has no horizontal overflow."""
    dashboard.page.set_viewport_size({"width": width, "height": 900})
    dashboard.page.goto("about:blank")
    dashboard.open(view=view)
    assert dashboard.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("view", PAGES)
def test_a_page_loads_few_files_of_few_bytes(dashboard: Dashboard, view: str) -> None:
    dashboard.open(view=view)
    folder = f"{dashboard.service}/dashboard/"
    files = {url.removeprefix(folder) for url in dashboard.requested if url.startswith(folder)}
    (own,) = re.findall(r'<script type="module" src="([^"]+)">', RENDERED[view])
    scripts = {file for file in files if file.endswith(".js")}
    # With its modules one by one, a page had up to 28.
    needs_plotly = view not in {"index.html", "customers.html"}
    assert scripts == {own, *(["vendor/plotly-basic.min.js"] if needs_plotly else [])}
    assert len(files) <= 8
    # The complete build of plotly.js alone has 4.8 MB.
    assert sum(len(httpx.get(f"{folder}{script}").content) for script in scripts) < 1_400_000


@pytest.mark.parametrize("view", PAGES)
def test_a_page_has_no_inline_script_or_style(view: str) -> None:
    text = RENDERED[view]
    assert not re.search(r"<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:", text)


@pytest.mark.parametrize(
    "script",
    sorted(set(STATIC.rglob("*.js")) - set(STATIC.glob("vendor/**/*.js"))),
    ids=lambda path: path.name,
)
def test_modules_are_type_checked_and_parse_no_html(script: Path) -> None:
    assert script.read_text().startswith("// @ts-check\n")
    parsing = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not re.search(parsing, script.read_text())


def test_injected_scripts_do_not_run_or_send_requests(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "Content Security Policy"
    dashboard.open(view="items.html")
    refused = dashboard.page.evaluate(
        """async () => {
            const refused = [];
            document.addEventListener("securitypolicyviolation", (event) =>
                refused.push(event.effectiveDirective));
            const act = "document.body.dataset.hacked = 'yes'";
            const script = document.createElement("script");
            script.textContent = act;
            const button = document.createElement("button");
            button.setAttribute("onclick", act);
            document.body.append(script, button);
            button.click();
            await fetch("https://elsewhere.invalid/").catch(() => {});
            await new Promise((resolve) => setTimeout(resolve, 200));
            return refused;
        }"""
    )
    assert set(refused) == {"script-src-elem", "script-src-attr", "connect-src"}
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_the_plotting_library_is_revalidated(service: str) -> None:
    library = f"{service}/dashboard/vendor/plotly-basic.min.js"
    first = httpx.get(library)
    again = httpx.get(library, headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
