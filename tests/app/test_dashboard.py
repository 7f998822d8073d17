"""The dashboard's files, and the headers they come with."""

import re
from pathlib import Path

import pytest

from app.dashboard import router
from tests.app.client import Client


def test_the_dashboard_is_where_its_address_says(client: Client) -> None:
    redirect = client.get("/dashboard")
    assert (redirect.status_code, redirect.headers["Location"]) == (307, "dashboard/")
    page = client.get("/dashboard/")
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    "path", ["/dashboard/", "/dashboard/index.html", "/dashboard/plotly.min.js"]
)
def test_a_page_may_run_nothing_but_our_own_files(client: Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_plotly_comes_from_the_installed_package(client: Client) -> None:
    script = client.get("/dashboard/plotly.min.js")
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert script.text.startswith("/**\n* plotly.js v")


@pytest.mark.parametrize(
    "path",
    ["nothing.js", "../router.py", "..%2Frouter.py", "%2e%2e/router.py", "//etc/passwd", "%00"],
)
def test_nothing_outside_the_dashboard_is_served(client: Client, path: str) -> None:
    response = client.get(f"/dashboard/{path}")
    assert response.status_code == 404
    assert response.headers["Content-Type"] == "application/problem+json"


def test_no_page_holds_inline_scripts_or_foreign_addresses() -> None:
    for page in (Path(router.__file__).parent / "static").rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style|\sstyle=", text), page
        assert not re.search(r"(src|href)=\"(https?:)?//", text), page
