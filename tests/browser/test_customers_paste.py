"""Pasted histories on the Customers page."""

import json
from typing import Any

from playwright.sync_api import expect

from tests.browser import world
from tests.browser.dashboard import Dashboard

HISTORY: list[dict[str, Any]] = [
    {"item_id": "sku-03", "timestamp": "2025-02-03T10:00:00+01:00", "action": "view"},
    {"item_id": "sku-00", "timestamp": 1736326800, "action": "purchase"},
    {"item_id": "sku-05", "timestamp": "2025-02-20T08:00:00Z", "action": "purchase"},
]


def open_dialog(dashboard: Dashboard) -> None:
    options = dashboard.page.locator("#options details")
    if options.get_attribute("open") is None:
        options.locator("summary").click()
    dashboard.page.get_by_role("button", name="Paste a history").click()


def count_posts(dashboard: Dashboard) -> int:
    return sum(
        url.endswith(("/v1/attention", "/v1/recommendations")) for url in dashboard.requested
    )


def paste(dashboard: Dashboard, text: str) -> None:
    """Open the dialog, paste and submit."""
    open_dialog(dashboard)
    dashboard.by_label("History as JSON").fill(text)
    dashboard.page.get_by_role("button", name="Show it").click()


def test_a_pasted_history_is_sent_with_each_request(dashboard: Dashboard) -> None:
    dashboard.open(view="customers.html")
    sent = []
    dashboard.page.on("request", lambda request: sent.append(request.post_data))
    paste(dashboard, json.dumps(HISTORY))
    expect(dashboard.page.locator("#user-name")).to_have_text("a pasted history")
    dashboard.settle()
    bodies = [json.loads(body) for body in sent if body]
    assert bodies
    assert all(body["history"] == HISTORY and "user_id" not in body for body in bodies)
    # A week after the last event.
    assert dashboard.query_time == "2025-02-27T08:00:00Z"
    body = {"history": HISTORY, "query_time": dashboard.query_time, "explain": "attention"}
    events = dashboard.api("/v1/recommendations", body)["attention"]["events"]
    assert dashboard.shares == [f"{event['weight'] * 100:.1f} %" for event in events]
    expect(dashboard.page.locator("#paste-note")).to_contain_text(
        "The link to this page contains it."
    )
    assert dashboard.api("/v1/users/a%20pasted%20history")["events"] == []


def test_a_link_restores_a_small_pasted_history(dashboard: Dashboard) -> None:
    dashboard.open(view="customers.html")
    paste(dashboard, json.dumps(HISTORY))
    expect(dashboard.page.locator("#user-name")).to_have_text("a pasted history")
    dashboard.settle()
    shares, items, link = dashboard.shares, dashboard.top_items, dashboard.page.url
    dashboard.page.goto("about:blank")
    dashboard.open(link[link.index("#") :], view="customers.html")
    expect(dashboard.page.locator("#user-name")).to_have_text("a pasted history")
    assert (dashboard.shares, dashboard.top_items) == (shares, items)


def test_a_pasted_request_body_sets_the_controls(dashboard: Dashboard) -> None:
    dashboard.open(view="customers.html")
    body = {
        "history": HISTORY,
        "query_time": "2025-02-10T00:00:30Z",
        "n": 5,
        "exclude_seen": False,
        "diversity": 0.5,
    }
    paste(dashboard, json.dumps(body))
    expect(dashboard.page.locator("#user-name")).to_have_text("a pasted history")
    dashboard.settle()
    expected = dashboard.api("/v1/recommendations", {**body, "diversity": 0})
    assert dashboard.top_items == [item["item_id"] for item in expected["items"]]
    assert len(dashboard.top_items) == 5
    expect(dashboard.page.locator("#exclude-seen")).not_to_be_checked()
    expect(dashboard.page.locator("#query-time-field")).to_have_value("2025-02-10T00:00:30")
    expect(dashboard.page.locator("#paste-note")).to_contain_text("does not support it: diversity.")


def test_back_restores_a_long_history_that_is_not_linked(dashboard: Dashboard) -> None:
    long = [
        {"item_id": world.ITEM_IDS[index % 14], "timestamp": 1736326800 + index * 86400}
        for index in range(51)
    ]
    dashboard.open(view="customers.html")
    paste(dashboard, json.dumps(long))
    expect(dashboard.page.locator("#paste-note")).to_contain_text("does not contain it")
    dashboard.settle()
    assert "history" not in dashboard.page.url
    assert len([share for share in dashboard.shares if share != "–"]) == 50
    search = dashboard.page.get_by_role("combobox", name="Customer")
    search.fill(world.BASKETS)
    search.press("Enter")
    expect(dashboard.page.locator("#user-name")).to_have_text(world.BASKETS)
    dashboard.settle()
    dashboard.page.go_back()
    expect(dashboard.page.locator("#user-name")).to_have_text("a pasted history")
    dashboard.settle()
    assert len([share for share in dashboard.shares if share != "–"]) == 50


REFUSED = [
    ("[{", "a history is JSON, but"),
    ("7", "begin with [ or {"),
    ("[]", "a history has at least one event"),
    ('{"user_id": "u"}', "events in the field history"),
    ('{"history": [{"item_id": "a", "timestamp": 0}], "merge": true}', "merge is true"),
    ('["a"]', 'event 1 is "a"'),
    ('[{"item_id": "a", "timestamp": 0}, {"timestamp": 0}]', "that of event 2 is missing"),
    ('[{"item_id": "a", "timestamp": "2025-01-01"}]', 'that of event 1 is "2025-01-01"'),
    ('[{"item_id": "a", "timestamp": 1e300}]', "of the years 1 to 9999, but that of event 1"),
    ('[{"item_id": "a", "timestamp": 1e12}]', "that of event 1 is 1000000000000"),
    ('[{"item_id": "a", "timestamp": 0, "action": 3}]', "an action is a text or left out"),
    ('[{"item_id": "a", "timestamp": 0, "at": 0}]', 'event 1 has "at"; leave it out'),
]


def test_an_invalid_history_is_refused_with_rule_and_remedy(dashboard: Dashboard) -> None:
    dashboard.open(view="customers.html")
    before = count_posts(dashboard)
    open_dialog(dashboard)
    for text, message in REFUSED:
        dashboard.by_label("History as JSON").fill(text)
        dashboard.page.get_by_role("button", name="Show it").click()
        expect(dashboard.page.locator("#pasted-refused")).to_contain_text(message)
    assert count_posts(dashboard) == before
    dashboard.page.get_by_role("button", name="Cancel").click()
    expect(dashboard.page.locator("#paste-dialog")).to_be_hidden()


def test_the_message_of_a_refused_history_is_shown(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 422"
    dashboard.open(view="customers.html")
    paste(dashboard, json.dumps([{"item_id": "a" * 257, "timestamp": 0}]))
    expect(dashboard.page.get_by_role("alert").first).to_contain_text("at most 256 characters")
