"""The dashboard's files; what its pages do is for tests/browser."""

import pytest

from tests.app.client import Client


def test_the_page_may_load_and_run_nothing_but_its_own_files(client: Client) -> None:
    page = client.get("/dashboard/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["users/main.js", "shell/style.css", "plotly.min.js", "items.html"])
def test_every_file_comes_with_the_same_guard(client: Client, path: str) -> None:
    file = client.get(f"/dashboard/{path}")
    assert file.status_code == 200
    assert "content-security-policy" in file.headers
    assert file.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["missing.js", "..%2frouter.py", "%2e%2e/router.py"])
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.get(f"/dashboard/{path}").status_code == 404
