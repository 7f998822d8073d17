"""Steps on the what-if page, and the service responses that it must show."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import shop
from tests.browser.dashboard import Dashboard

VIEW = "what_if.html"
AT = "2011-12-01T12:00:00.000Z"
CUSTOMER_AT = f"#user={shop.CUSTOMER}&query_time={AT}"
MONTH = timedelta(days=30)
PERCENTS = 0.00051
"""Tolerance of a weight: half of the table's last digit, and a little."""


@dataclass(frozen=True)
class HistoryQuery:
    """A history and the query time of its recommendations."""

    history: tuple[dict[str, str], ...]
    query_time: str = AT
    exclude_seen: bool = True
    model_version: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        return {
            "history": list(self.history),
            "query_time": self.query_time,
            "model_version": self.model_version,
        }


def stored(dashboard: Dashboard, user_id: str = shop.CUSTOMER, at: str = AT) -> HistoryQuery:
    """The stored history of a user up to an instant."""
    events = dashboard.api(f"/v1/users/{user_id}?limit=1000")["events"]
    sent = [{name: event[name] for name in ("item_id", "timestamp", "action")} for event in events]
    return HistoryQuery(tuple(event for event in reversed(sent) if event["timestamp"] <= at), at)


def recommended(dashboard: Dashboard, query: HistoryQuery) -> dict[str, Any]:
    body = query.body | {"explain": "attention", "exclude_seen": query.exclude_seen}
    return dict(dashboard.api("/v1/recommendations", body))


def without(query: HistoryQuery, index: int) -> HistoryQuery:
    return replace(query, history=query.history[:index] + query.history[index + 1 :])


def changed(query: HistoryQuery, index: int, **what: str) -> HistoryQuery:
    event = query.history[index] | what
    return replace(query, history=(*query.history[:index], event, *query.history[index + 1 :]))


def assert_drawn(dashboard: Dashboard, before: HistoryQuery, after: HistoryQuery) -> None:
    """Assert that ranks, scores and weights are those the service returns for both histories."""
    responses = [recommended(dashboard, query) for query in (before, after)]
    ranks = [
        {item["item_id"]: item["rank"] for item in response["items"]} for response in responses
    ]
    shown = list(dict.fromkeys([*ranks[1], *ranks[0]]))
    rows = dashboard.page.locator("#compared-items tr")
    assert [row.get_attribute("data-item") for row in rows.all()] == shown
    for side, name in enumerate(("was", "is")):
        drawn = dashboard.page.locator(f"#compared-items .{name}-rank").all_inner_texts()
        assert drawn == [str(ranks[side].get(item, "–")) for item in shown]
    scores = dashboard.traces("scores")
    for side, query in enumerate((before, after)):
        ranked = dashboard.api("/v1/rankings", query.body | {"item_ids": shown})["items"]
        expected = {item["item_id"]: item["score"] for item in ranked}
        assert scores[side + 1]["x"] == pytest.approx([expected[item] for item in shown], abs=1e-4)
        assert weights_on_display(dashboard, side) == pytest.approx(
            sorted(event["weight"] for event in responses[side]["attention"]["events"]),
            abs=PERCENTS,
        )


def weights_on_display(dashboard: Dashboard, side: int) -> list[float]:
    """The weights of one side in the table of events, smallest first."""
    cells = dashboard.page.locator(f"#events .{('before', 'after')[side]}").all_inner_texts()
    return sorted(float(text.removesuffix(" %")) / 100 for text in cells if text.endswith(" %"))


def scores_by_item(dashboard: Dashboard, trace: int) -> list[float]:
    return [float(score) for score in dashboard.traces("scores")[trace]["x"]]


def open_customer(dashboard: Dashboard, fragment: str = CUSTOMER_AT) -> Dashboard:
    """Open the customer's history, every event of it in the table."""
    dashboard.open(fragment, view=VIEW)
    more = dashboard.page.locator("#more-events")
    if more.is_visible():
        more.click()
    return dashboard


def row_of(dashboard: Dashboard, event: dict[str, Any]) -> Locator:
    instant = event["timestamp"].replace("T", " ").removesuffix("Z")
    rows = dashboard.page.locator("#events tr[data-key]")
    return rows.filter(has_text=event["title"] or event["item_id"]).filter(has_text=instant).first


def heaviest_event(dashboard: Dashboard, query: HistoryQuery) -> tuple[int, dict[str, Any]]:
    """The event with the largest weight, and its index in the history."""
    event = max(recommended(dashboard, query)["attention"]["events"], key=lambda e: e["weight"])
    names = ("item_id", "timestamp", "action")
    return query.history.index({name: event[name] for name in names}), event


def choose_item(dashboard: Dashboard, words: str, *, option: int = 0) -> None:
    field = dashboard.page.get_by_label("Item, by its title or id")
    field.fill(words)
    dashboard.page.locator("#add-item-options [role=option]").nth(option).click()


def add_event(dashboard: Dashboard, words: str, at: str, *, action: str = "purchase") -> None:
    choose_item(dashboard, words)
    dashboard.page.locator("#add-action").fill(action)
    dashboard.page.locator("#add-when").fill(at)
    dashboard.page.get_by_role("button", name="Add event").click()
    dashboard.settle()


def add_id(dashboard: Dashboard, item_id: str) -> None:
    """Add an event now, of an item that no title finds."""
    field = dashboard.page.locator("#add-item")
    field.fill(item_id)
    field.press("Enter")
    expect(dashboard.page.locator("#add-action")).to_be_focused()
    dashboard.page.get_by_role("button", name="Add event").click()
    dashboard.settle()


def edit_log(dashboard: Dashboard) -> Locator:
    return dashboard.page.locator("#edits li")


def change_action(dashboard: Dashboard, event: dict[str, Any], action: str) -> None:
    row_of(dashboard, event).get_by_role("button", name="Edit").click()
    field = dashboard.page.get_by_role("group", name="Edit ").get_by_label("Action")
    field.fill(action)
    field.press("Tab")
    dashboard.settle()
