"""Edits of a history: the page shows the service's responses before and after."""

import re
from dataclasses import replace
from datetime import datetime

import pytest
from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.what_if_view import (
    MONTH,
    add_event,
    assert_drawn,
    change_action,
    changed,
    edit_log,
    heaviest_event,
    open_customer,
    recommended,
    row_of,
    scores_by_item,
    stored,
    weights_on_display,
    without,
)


def test_without_edits_both_sides_are_the_service_response(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    assert_drawn(shop_dashboard, query, query)
    expect(shop_dashboard.page.locator("#top-summary")).to_have_text(
        "10 kept the rank. No score changed."
    )


def test_removing_an_event_shortens_the_history_after(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    index, heaviest = heaviest_event(shop_dashboard, query)
    shop_dashboard.page.get_by_label("Order").select_option("weight")
    first = shop_dashboard.page.locator("#events tr").first
    expect(first).to_contain_text(heaviest["title"])
    first.get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, without(query, index))
    before, after = (scores_by_item(shop_dashboard, trace) for trace in (1, 2))
    assert before != pytest.approx(after, abs=1e-3)
    expect(row_of(shop_dashboard, heaviest)).to_contain_text("removed")
    expect(edit_log(shop_dashboard)).to_contain_text(f"Removed {heaviest['title']}")


def show_all_events(dashboard: Dashboard) -> None:
    more = dashboard.page.locator("#more-events")
    if more.is_visible():
        more.click()


def test_a_whole_basket_can_be_left_out(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    last = query.history[-1]["timestamp"]
    rest = tuple(event for event in query.history if event["timestamp"] != last)
    size = len(query.history) - len(rest)
    assert size > 1
    # Without it, the model reads older events, further down the list.
    show_all_events(shop_dashboard)
    button = shop_dashboard.page.get_by_role("button", name=f"Leave out basket of {size}").first
    button.click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, replace(query, history=rest))
    expect(edit_log(shop_dashboard)).to_contain_text(f"({size} events)")
    assert "edits=basket." in shop_dashboard.page.url
    link = shop_dashboard.page.url
    shop_dashboard.page.goto("about:blank")
    shop_dashboard.open(link[link.index("#") :], view="what_if.html")
    show_all_events(shop_dashboard)
    assert_drawn(shop_dashboard, query, replace(query, history=rest))
    shop_dashboard.page.get_by_role("button", name="Put back").first.click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, query)


def test_an_added_event_joins_only_the_history_after(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    item = shop_dashboard.api("/v1/items?q=lunch%20bag&limit=1")["items"][0]
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    added = {"item_id": item["item_id"], "timestamp": "2011-11-30T08:15:00Z", "action": "purchase"}
    after = replace(query, history=(*query.history, added))
    assert_drawn(shop_dashboard, query, after)
    row = row_of(shop_dashboard, added | {"title": item["title"]})
    expect(row).to_contain_text("added")
    expect(row.locator(".before")).to_have_text("–")
    (weight,) = [
        event["weight"]
        for event in recommended(shop_dashboard, after)["attention"]["events"]
        if event["timestamp"] == added["timestamp"]
    ]
    assert weight > 0
    bars = shop_dashboard.traces("weights")
    assert bars[0]["x"][0] == 0
    assert bars[1]["x"][0] == pytest.approx(weight, abs=1e-5)


def test_an_event_moved_by_a_month_changes_the_weights(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    index, heaviest = heaviest_event(shop_dashboard, query)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Edit").click()
    editor = shop_dashboard.page.get_by_role("group", name="Edit ")
    editor.get_by_role("button", name="−30 d").click()
    shop_dashboard.settle()
    at = datetime.fromisoformat(heaviest["timestamp"]) - MONTH
    moved = changed(query, index, timestamp=at.isoformat().replace("+00:00", "Z"))
    assert_drawn(shop_dashboard, query, moved)
    assert weights_on_display(shop_dashboard, 0) != weights_on_display(shop_dashboard, 1)
    expect(editor.get_by_label("When (UTC)")).to_have_value(re.compile(at.isoformat()[:16]))
    expect(edit_log(shop_dashboard)).to_contain_text("by −30\u00a0d")
    editor.get_by_role("button", name="+30 d").click()
    shop_dashboard.settle()
    expect(edit_log(shop_dashboard)).to_have_count(0)


def test_the_instant_field_moves_an_event(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    index, heaviest = heaviest_event(shop_dashboard, query)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Edit").click()
    editor = shop_dashboard.page.get_by_role("group", name="Edit ")
    editor.get_by_label("When (UTC)").fill("2011-11-29T10:30:00")
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, changed(query, index, timestamp="2011-11-29T10:30:00Z"))


def test_an_unread_action_changes_no_score_and_is_explained(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    index, heaviest = heaviest_event(shop_dashboard, query)
    change_action(shop_dashboard, heaviest, "view")
    assert_drawn(shop_dashboard, query, changed(query, index, action="view"))
    assert scores_by_item(shop_dashboard, 1) == scores_by_item(shop_dashboard, 2)
    expect(shop_dashboard.page.locator("#top-summary")).to_contain_text("No score changed.")
    version = shop_dashboard.api("/v1/models")["models"][0]["version"]
    assert shop_dashboard.api(f"/v1/models/{version}")["manifest"]["recommender"]["actions"] == []
    expect(edit_log(shop_dashboard)).to_contain_text(
        "this model does not read actions: no score can change"
    )
    field = shop_dashboard.page.get_by_role("group", name="Edit ").get_by_label("Action")
    field.fill("")
    field.press("Tab")
    shop_dashboard.settle()
    row = row_of(shop_dashboard, heaviest)
    expect(row.locator(".action ins")).to_have_text("no action")
    expect(row.locator(".after")).to_contain_text("%")


def test_an_ignored_action_removes_the_event_from_the_input(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    index, heaviest = heaviest_event(shop_dashboard, query)
    change_action(shop_dashboard, heaviest, "cancel")
    assert_drawn(shop_dashboard, query, changed(query, index, action="cancel"))
    assert scores_by_item(shop_dashboard, 1) != pytest.approx(
        scores_by_item(shop_dashboard, 2), abs=1e-3
    )
    expect(row_of(shop_dashboard, heaviest).locator(".after")).to_have_text("action not read")
    expect(edit_log(shop_dashboard)).to_contain_text(
        "this model leaves out events with the action “cancel”: it is not read now"
    )


def test_the_query_time_moves_only_for_the_history_after(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    steps = shop_dashboard.page.locator("#query-time-steps")
    for _ in range(2):
        steps.get_by_role("button", name="−30 d").click()
    shop_dashboard.settle()
    earlier = "2011-10-02T12:00:00Z"
    assert_drawn(shop_dashboard, query, stored(shop_dashboard, at=earlier))
    expect(edit_log(shop_dashboard)).to_contain_text("Moved the point in time by −60\u00a0d")
    last = query.history[-1]
    assert last["timestamp"] > earlier
    first = shop_dashboard.page.locator("#events tr").first
    expect(first.locator(".after")).not_to_contain_text("%")


def test_undo_and_reset_restore_the_history(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    index, heaviest = heaviest_event(shop_dashboard, query)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Remove").click()
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    expect(edit_log(shop_dashboard)).to_have_count(2)
    shop_dashboard.page.get_by_role("button", name="Undo: Added").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, without(query, index))
    expect(shop_dashboard.page.get_by_role("button", name="Undo: Removed")).to_be_focused()
    shop_dashboard.page.get_by_role("button", name="Reset").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, query)
    expect(edit_log(shop_dashboard)).to_have_count(0)
    assert "edits" not in shop_dashboard.page.url


def test_a_removed_event_is_put_back_in_its_row(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    button = shop_dashboard.page.locator("#events tr").first.locator("[data-do=remove]")
    button.press("Enter")
    shop_dashboard.settle()
    expect(button).to_be_focused()
    expect(button).to_have_text("Put back")
    button.press("Enter")
    shop_dashboard.settle()
    expect(edit_log(shop_dashboard)).to_have_count(0)
