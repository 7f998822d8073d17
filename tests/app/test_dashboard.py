"""The dashboard's files and titles; what its pages do is for tests/browser."""

import pytest

from tests.app.client import Client


def test_the_page_may_load_and_run_nothing_but_its_own_files(client: Client) -> None:
    page = client.get("/dashboard/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["main.js", "style.css", "plotly.min.js", "icon.svg"])
def test_every_file_comes_with_the_same_guard(client: Client, path: str) -> None:
    file = client.get(f"/dashboard/{path}")
    assert file.status_code == 200
    assert "content-security-policy" in file.headers
    assert file.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["missing.js", "..%2frouter.py", "%2e%2e/router.py"])
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.get(f"/dashboard/{path}").status_code == 404


def test_titles_are_those_of_the_served_catalogue(client: Client) -> None:
    answer = client.post("/dashboard/titles", {"item_ids": ["i3", "nobody's", "i5"]})
    assert answer.json() == {"titles": {"i3": "Item 3", "i5": "Item 5"}}


def test_titles_are_asked_for_as_many_items_as_a_history_holds(client: Client) -> None:
    ids = [f"i{number}" for number in range(1001)]
    assert client.post("/dashboard/titles", {"item_ids": ids[:1000]}).status_code == 200
    refusal = client.post("/dashboard/titles", {"item_ids": ids})
    assert refusal.status_code == 422
    assert refusal.json()["code"] == "validation_failed"
