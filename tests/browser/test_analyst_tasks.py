"""An analyst's tasks on one screen, each within three actions and without scrolling."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser import shop as demo
from tests.browser.dashboard import Dashboard
from tests.processes import Server

MOST_ACTIONS = 3
NOW = "2011-12-08T12:00:00Z"
MAY = "2011-05-15T12:00:00Z"
METRIC = "ndcg@10"


class Analyst:
    """Someone at a screen of 1,440 x 900, whose actions are counted.

    Attributes:
        actions: clicks, choices and entries so far.
    """

    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard
        self.page = dashboard.page
        self.actions = 0

    def click(self, target: Locator) -> None:
        self._act(target)
        target.click()

    def choose(self, target: Locator, value: str) -> None:
        self._act(target)
        target.select_option(value)
        self.dashboard.settle()

    def enter(self, target: Locator, text: str) -> None:
        self._act(target)
        target.fill(text)
        target.press("Enter")
        self.dashboard.settle()

    def read(self, target: Locator) -> str:
        """The text of something that is on the screen."""
        self._see(target)
        return target.inner_text()

    def _act(self, target: Locator) -> None:
        self._see(target)
        self.actions += 1

    def _see(self, target: Locator) -> None:
        expect(target).to_be_visible()
        box = target.bounding_box()
        assert box is not None
        assert box["y"] >= 0, target
        assert box["y"] + box["height"] <= 900, f"{target} needs scrolling: {box}"
        assert self.page.evaluate("scrollX + scrollY") == 0


@contextmanager
def analyst_at(browser: Browser, service: str, view: str) -> Iterator[Analyst]:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, accept_downloads=True, reduced_motion="reduce"
    )
    dashboard = Dashboard(context.new_page(), service)
    dashboard.open(view=view)
    yield Analyst(dashboard)
    dashboard.assert_clean()
    context.close()


@pytest.fixture
def at_customer(browser: Browser, shop: str) -> Iterator[Analyst]:
    """At the page of a customer, with the point in time of today."""
    view = f"customers.html#user={demo.CUSTOMER}&query_time={NOW}"
    with analyst_at(browser, shop, view) as analyst:
        yield analyst
        assert analyst.actions <= MOST_ACTIONS


@pytest.fixture
def at_items(browser: Browser, shop: str) -> Iterator[Analyst]:
    """At another page, which the answer is not on."""
    with analyst_at(browser, shop, "items.html") as analyst:
        yield analyst
        assert analyst.actions <= MOST_ACTIONS


def recommend(analyst: Analyst, at: str, **fields: Any) -> dict[str, Any]:
    body = {"user_id": demo.CUSTOMER, "query_time": at, "exclude_seen": False, "shown": False}
    answer: dict[str, Any] = analyst.dashboard.api("/v1/recommendations", body | fields)
    return answer


def test_what_was_recommended_in_may_and_what_now(at_customer: Analyst) -> None:
    page = at_customer.page
    at_customer.choose(page.locator("#compare"), "time")
    at_customer.enter(page.locator("#query-time-field"), MAY.removesuffix("Z"))
    then, now = (
        [item["item_id"] for item in recommend(at_customer, at)["items"]] for at in (MAY, NOW)
    )
    for rank, item_id in enumerate(then, 1):
        row = page.locator(f"#top-items li[data-item='{item_id}']")
        assert at_customer.read(row).split()[0] == str(rank)
    lost = page.locator("#top-items li.lost")
    gone = [item_id for item_id in now if item_id not in then]
    expect(lost).to_have_count(len(gone))
    assert {row.get_attribute("data-item") for row in lost.all()} == set(gone)
    for row in lost.all():
        at_customer.read(row)
    assert f"{len(set(then) - set(now))} item" in at_customer.read(page.locator("#ranking-summary"))
    assert at_customer.actions == 2


def test_why_an_item_is_first(at_customer: Analyst) -> None:
    why = at_customer.page.locator("#why-content")
    first = recommend(at_customer, NOW, explain="reasons")["items"][0]
    assert at_customer.read(at_customer.page.locator("#why-heading")) == "Why this item is number 1"
    assert at_customer.read(why.locator(".reason")) == first["reasons"]["sentence"]
    for row in why.locator(".contributions tr").all():
        at_customer.read(row)
    assert at_customer.actions == 0


def test_which_purchase_matters_most(at_customer: Analyst) -> None:
    """By attention at once; by what the score loses without it after one click."""
    events = recommend(at_customer, NOW, explain="attention")["attention"]["events"]
    weights: dict[str, list[float]] = {}
    for event in events:
        weights.setdefault(event["timestamp"], []).append(event["weight"])
    even = sum(event["weight"] for event in events) / len(events)
    most = max(weights, key=lambda at: sum(weights[at]) - even * len(weights[at]))
    summary = at_customer.read(at_customer.page.locator("#baskets-summary"))
    assert f"{100 * sum(weights[most]):.1f} % of its attention" in summary
    assert at_customer.actions == 0
    button = at_customer.page.get_by_role("button", name="Test by leaving out baskets")
    at_customer.click(button)
    item_id = at_customer.dashboard.top_items[0]
    tested = {"explain": "occlusion", "occlusion_unit": "basket", "explain_item_id": item_id}
    left_out = recommend(at_customer, NOW, **tested)["attention"]["left_out"]
    largest = max(abs(basket["occlusion"]) for basket in left_out)
    effect = at_customer.read(at_customer.page.locator(".effects td.number").first)
    assert abs(float(effect.replace("−", "-"))) == pytest.approx(largest, abs=0.006)


def test_which_customers_change_most(at_items: Analyst) -> None:
    at_items.click(at_items.page.get_by_role("link", name="Overview"))
    at_items.dashboard.settle()
    users = at_items.dashboard.api("/v1/overview/changes?n=10")["users"]
    rows = at_items.page.locator("#changing tbody tr")
    expect(rows).to_have_count(len(users))
    for row, user in zip(rows.all(), users, strict=True):
        assert at_items.read(row).split()[0] == user["user_id"]
    assert at_items.actions == 1


def test_whether_the_last_new_version_is_better(at_items: Analyst) -> None:
    at_items.click(at_items.page.get_by_role("link", name="Overview"))
    at_items.dashboard.settle()
    run = at_items.dashboard.api("/v1/training-runs")["runs"][0]
    new, before = (run["metrics"][ranker][METRIC] for ranker in ("challenger", "champion"))
    (bound,) = [
        check["value"] for check in run["decision"]["checks"] if check["name"] == "champion"
    ]
    card = at_items.read(at_items.page.locator("#challenger"))
    assert "No challenger serves." in card
    assert f"{new:.4f} against {before:.4f}" in card
    if new <= before:
        assert "No, it is not better." in card
    else:
        assert ("Yes, it is better." if bound > 0 else "that may be chance") in card
    assert f"on the same {run['questions']} questions" in card


def test_whether_the_challenger_is_better(browser: Browser, module_shop: Server) -> None:
    models = module_shop.http.get("/v1/models").json()["models"]
    current, other = models[1]["version"], models[2]["version"]
    traffic = {"challenger": other, "share": 0.25}
    module_shop.http.put("/v1/models/traffic", json=traffic).raise_for_status()
    try:
        with analyst_at(browser, module_shop.url, "items.html") as analyst:
            analyst.click(analyst.page.get_by_role("link", name="Overview"))
            analyst.dashboard.settle()
            run = analyst.dashboard.api("/v1/training-runs")["runs"][0]
            assert (run["candidate"], run["champion"]) == (current, other)
            # The challenger is the version that the run measured as its champion.
            challenger, champion = (
                run["metrics"][ranker][METRIC] for ranker in ("champion", "challenger")
            )
            card = analyst.read(analyst.page.locator("#challenger"))
            assert f"{other} serves 25.0 % of the customers." in card
            assert f"{challenger:.4f} against {champion:.4f}" in card
            assert ("not better" in card) == (challenger <= champion)
            # Nothing was recommended by either of them yet.
            assert "too few recommendations" in card
            assert analyst.actions == 1
            analyst.click(analyst.page.locator("#challenger a").first)
            expect(analyst.page.locator("#compare")).to_have_value(current)
    finally:
        module_shop.http.put("/v1/models/traffic", json={}).raise_for_status()


def test_export_of_the_picture(at_customer: Analyst, tmp_path: Path) -> None:
    menu = at_customer.page.locator("#baskets .take-away")
    at_customer.click(menu.locator("summary"))
    with at_customer.page.expect_download() as download:
        at_customer.click(menu.get_by_role("button", name="Picture (PNG)"))
    picture = tmp_path / "picture.png"
    download.value.save_as(picture)
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert at_customer.actions == 2
