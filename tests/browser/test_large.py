"""Ten thousand events of one user, fifty versions, and many items: what is shown is true."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import large_world
from tests.browser.dashboard import Dashboard
from tests.browser.items_view import drawn_points
from tests.browser.large_world import EVENTS, USER, Large
from tests.processes import processes

READ = 50
"""Events that the model reads, the latest."""
MOST_ROWS = 500
"""Rows of a table behind a chart."""
FEW = 2000
"""Items: more than one request ranks, though not many."""


@contextmanager
def large_service(directory: Path, *, items: int, versions: int) -> Iterator[Large]:
    large_world.publish(directory / "bundles", items=items, versions=versions)
    with processes(directory, directory / "bundles") as start:
        server = start(wait=True)
        large_world.store_items(server, items)
        large_world.store_events(server, items)
        yield Large(server, items, versions)


@pytest.fixture(scope="module")
def large(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    """Fifty versions, and a user with ten thousand events; few items."""
    with large_service(tmp_path_factory.mktemp("large"), items=FEW, versions=50) as large:
        yield large


@pytest.fixture(scope="module")
def huge(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    """A hundred thousand items, and the same user."""
    with large_service(tmp_path_factory.mktemp("huge"), items=100_000, versions=2) as huge:
        yield huge


# Ten thousand events of one user


def test_customers_says_how_many_events_are_read(
    large: Large, look_at: Callable[[str], Dashboard]
) -> None:
    dashboard = look_at(large.server.url).open(f"#user={USER}", view="customers.html")
    _expect_long_history(dashboard)


def _expect_long_history(dashboard: Dashboard) -> None:
    """The card of baskets says how many of how many events are read, and its rows are those."""
    summary = dashboard.page.locator("#baskets-summary")
    expect(summary).to_contain_text(f"reads {READ} events, the latest it can read, of 10,000")
    (shown,) = re.findall(r"and ([\d,]+) at any point of this axis", summary.inner_text())
    assert int(shown.replace(",", "")) < EVENTS
    # The table begins with the events that are read.
    shares = [row[3] for row in dashboard.table("baskets-table")]
    assert [share != "–" for share in shares] == [True] * READ + [False] * (MOST_ROWS - READ)
    expect(dashboard.page.locator("#baskets-table")).to_contain_text(
        f"The first {MOST_ROWS} of {shown} rows."
    )
    expect(dashboard.page.locator("#top-items li")).to_have_count(10)


def test_what_if_says_how_many_events_are_used(
    large: Large, look_at: Callable[[str], Dashboard]
) -> None:
    page = look_at(large.server.url).open(f"#user={USER}", view="what_if.html").page
    _expect_newest_events(page)


def _expect_newest_events(page: Page) -> None:
    expect(page.locator("#history-note")).to_contain_text("newest 1,000 of 10,000 stored events")
    expect(page.locator("#inputs-before")).to_contain_text(f"{READ} of 1,000 events read")
    expect(page.locator("#compared-items .is-score")).to_have_text([re.compile(r"\d")] * 10)
    listed = page.locator(f"#user-list [value={USER}]")
    expect(listed).to_contain_text("1,000 events or more")


# Fifty versions


def test_the_versions_are_listed_and_few_described(
    large: Large, look_at: Callable[[str], Dashboard]
) -> None:
    dashboard = look_at(large.server.url).open(view="models.html")
    page = dashboard.page
    expect(page.locator("#versions tbody tr")).to_have_count(large.versions)
    expect(page.locator("#version option")).to_have_count(large.versions)
    described = {url for url in dashboard.requested if "/v1/models/20" in url}
    assert len(described) == 10
    # The versions, the traffic, the changes, and the runs, which the banner requests as well.
    requested = [url for url in dashboard.requested if "/v1/" in url]
    assert len(requested) <= len(described) + 5
    expect(page.locator("#describe-rest")).to_have_text("Describe 40 older versions")
    oldest = page.locator("#version option").last.get_attribute("value")
    page.select_option("#version", oldest)
    dashboard.settle()
    expect(page.locator("#detail-name")).to_have_text(str(oldest))
    page.locator("#describe-rest").click()
    dashboard.settle()
    expect(page.locator("#describe-rest")).to_be_hidden()
    described = {url for url in dashboard.requested if "/v1/models/20" in url}
    assert len(described) == large.versions


@pytest.mark.parametrize("view", ["population.html", "kernels.html", "items.html", "what_if.html"])
def test_the_oldest_of_many_versions_can_be_chosen(
    large: Large, look_at: Callable[[str], Dashboard], view: str
) -> None:
    dashboard = look_at(large.server.url).open(view=view)
    options = dashboard.page.locator("#version option")
    expect(options).to_have_count(large.versions)
    oldest = str(options.last.get_attribute("value"))
    dashboard.page.select_option("#version", oldest)
    dashboard.settle()
    shown = dashboard.page.locator("main p, main h2, main figcaption").filter(has_text=oldest)
    assert view == "what_if.html" or shown.count() > 0
    expect(dashboard.page.locator("#model-version")).not_to_be_empty()
    requested = [url for url in dashboard.requested if "/v1/" in url]
    assert len(requested) < 20


def test_the_overview_names_the_version_of_many_that_serves(
    large: Large, look_at: Callable[[str], Dashboard]
) -> None:
    dashboard = look_at(large.server.url).open(view="index.html")
    models = dashboard.api("/v1/models")["models"]
    (served,) = [model["version"] for model in models if model["is_serving"]]
    expect(dashboard.page.locator("#serving .headline")).to_contain_text(served)
    expect(dashboard.page.locator("#changing-content tbody tr")).to_have_count(1)
    requested = [url for url in dashboard.requested if "/v1/" in url]
    assert len(requested) <= 6


# A hundred thousand items


@pytest.mark.slow
def test_the_last_of_many_items_is_found(huge: Large, look_at: Callable[[str], Dashboard]) -> None:
    dashboard = look_at(huge.server.url).open(view="items.html")
    page = dashboard.page
    last = f"Item {huge.items - 1}"
    page.get_by_label("Find an item").fill(last)
    found = page.get_by_role("option")
    expect(found.first).to_contain_text(last)
    found.first.click()
    dashboard.settle()
    expect(page.locator("#item-heading")).to_have_text(last)
    expect(page.locator("#similar-items tr")).to_have_count(10)
    expect(page.locator("#map-marked")).to_contain_text("is not among the items of this map")


@pytest.mark.slow
@pytest.mark.parametrize("shown", ["2,000", "10,000"])
def test_the_map_says_how_many_of_many_items_it_shows(
    huge: Large, look_at: Callable[[str], Dashboard], shown: str
) -> None:
    items = shown.replace(",", "")
    dashboard = look_at(huge.server.url).open(f"#items={items}", view="items.html")
    summary = dashboard.page.locator("#map-summary")
    expect(summary).to_contain_text(f"The {shown} of the 100,000 items of")
    assert sum(map(len, drawn_points(dashboard).values())) == int(items)
    expect(dashboard.page.locator("#popular-note")).to_have_text(
        f"The first 50 of the {shown} items on the map."
    )


@pytest.mark.slow
def test_a_long_history_of_many_items_is_shown(
    huge: Large, look_at: Callable[[str], Dashboard]
) -> None:
    dashboard = look_at(huge.server.url).open(f"#user={USER}", view="customers.html")
    _expect_long_history(dashboard)
    _expect_newest_events(dashboard.open(f"#user={USER}", view="what_if.html").page)
