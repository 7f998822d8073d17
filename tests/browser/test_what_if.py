"""What a person sees who edits a history: both answers, drawn as the service gives them."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, expect

from tests.browser import shop, world
from tests.browser.dashboard import Dashboard

VIEW = "what_if.html"
AT = "2011-12-01T12:00:00.000Z"
CUSTOMER_AT = f"#user={shop.CUSTOMER}&query_time={AT}"
MONTH = timedelta(days=30)
PERCENTS = 0.00051
"""Half of what the table rounds weights to, and a little."""


@dataclass(frozen=True)
class Question:
    """A history, and the instant it is asked about."""

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


def stored(dashboard: Dashboard, user_id: str = shop.CUSTOMER, at: str = AT) -> Question:
    """What is stored of a user up to an instant."""
    events = dashboard.api(f"/v1/users/{user_id}?limit=1000")["events"]
    told = [{name: event[name] for name in ("item_id", "timestamp", "action")} for event in events]
    return Question(tuple(event for event in reversed(told) if event["timestamp"] <= at), at)


def recommended(dashboard: Dashboard, asked: Question) -> dict[str, Any]:
    body = asked.body | {"explain": "attention", "exclude_seen": asked.exclude_seen}
    return dict(dashboard.api("/v1/recommendations", body))


def without(asked: Question, place: int) -> Question:
    return replace(asked, history=asked.history[:place] + asked.history[place + 1 :])


def changed(asked: Question, place: int, **what: str) -> Question:
    event = asked.history[place] | what
    return replace(asked, history=(*asked.history[:place], event, *asked.history[place + 1 :]))


def assert_drawn(dashboard: Dashboard, before: Question, after: Question) -> None:
    """Hold ranks, scores and weights on display against what the service says of both histories."""
    answers = [recommended(dashboard, asked) for asked in (before, after)]
    ranks = [{item["item_id"]: item["rank"] for item in answer["items"]} for answer in answers]
    shown = list(dict.fromkeys([*ranks[1], *ranks[0]]))
    rows = dashboard.page.locator("#compared-items tr")
    assert [row.get_attribute("data-item") for row in rows.all()] == shown
    for side, name in enumerate(("was", "is")):
        drawn = dashboard.page.locator(f"#compared-items .{name}-rank").all_inner_texts()
        assert drawn == [str(ranks[side].get(item, "–")) for item in shown]
    scores = dashboard.traces("scores")
    for side, asked in enumerate((before, after)):
        ranked = dashboard.api("/v1/rankings", asked.body | {"item_ids": shown})["items"]
        said = {item["item_id"]: item["score"] for item in ranked}
        assert scores[side + 1]["x"] == pytest.approx([said[item] for item in shown], abs=1e-4)
        assert weights_on_display(dashboard, side) == pytest.approx(
            sorted(event["weight"] for event in answers[side]["attention"]["events"]), abs=PERCENTS
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


def heaviest_event(dashboard: Dashboard, asked: Question) -> tuple[int, dict[str, Any]]:
    """The most weighted event of an answer, and its place in the history."""
    event = max(recommended(dashboard, asked)["attention"]["events"], key=lambda e: e["weight"])
    names = ("item_id", "timestamp", "action")
    return asked.history.index({name: event[name] for name in names}), event


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


def test_without_edits_both_sides_are_what_the_service_answers(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    assert_drawn(shop_dashboard, asked, asked)
    expect(shop_dashboard.page.locator("#top-summary")).to_have_text(
        "10 kept the rank. No score changed."
    )


def test_without_its_most_weighted_event_the_answer_is_that_of_the_shorter_history(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    shop_dashboard.page.get_by_label("Order").select_option("weight")
    first = shop_dashboard.page.locator("#events tr").first
    expect(first).to_contain_text(heaviest["title"])
    first.get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, asked, without(asked, place))
    before, after = (scores_by_item(shop_dashboard, trace) for trace in (1, 2))
    assert before != pytest.approx(after, abs=1e-3)
    expect(row_of(shop_dashboard, heaviest)).to_contain_text("removed")
    expect(edit_log(shop_dashboard)).to_contain_text(f"Removed {heaviest['title']}")


def test_an_added_event_joins_the_history_of_the_new_side_alone(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    item = shop_dashboard.api("/v1/items?q=lunch%20bag&limit=1")["items"][0]
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    added = {"item_id": item["item_id"], "timestamp": "2011-11-30T08:15:00Z", "action": "purchase"}
    after = replace(asked, history=(*asked.history, added))
    assert_drawn(shop_dashboard, asked, after)
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


def test_an_event_moved_by_a_month_is_weighted_otherwise(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Edit").click()
    editor = shop_dashboard.page.get_by_role("group", name="Edit ")
    editor.get_by_role("button", name="−30 d").click()
    shop_dashboard.settle()
    at = datetime.fromisoformat(heaviest["timestamp"]) - MONTH
    moved = changed(asked, place, timestamp=at.isoformat().replace("+00:00", "Z"))
    assert_drawn(shop_dashboard, asked, moved)
    assert weights_on_display(shop_dashboard, 0) != weights_on_display(shop_dashboard, 1)
    expect(editor.get_by_label("When (UTC)")).to_have_value(re.compile(at.isoformat()[:16]))
    expect(edit_log(shop_dashboard)).to_contain_text("by −30\u00a0d")
    editor.get_by_role("button", name="+30 d").click()
    shop_dashboard.settle()
    expect(edit_log(shop_dashboard)).to_have_count(0)


def test_an_event_is_moved_by_its_field_too(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Edit").click()
    editor = shop_dashboard.page.get_by_role("group", name="Edit ")
    editor.get_by_label("When (UTC)").fill("2011-11-29T10:30:00")
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, asked, changed(asked, place, timestamp="2011-11-29T10:30:00Z"))


def test_an_action_that_the_model_does_not_read_changes_no_score_and_the_page_says_why(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    change_action(shop_dashboard, heaviest, "view")
    assert_drawn(shop_dashboard, asked, changed(asked, place, action="view"))
    assert scores_by_item(shop_dashboard, 1) == scores_by_item(shop_dashboard, 2)
    expect(shop_dashboard.page.locator("#top-summary")).to_contain_text("No score changed.")
    version = shop_dashboard.api("/v1/models")["models"][0]["version"]
    assert shop_dashboard.api(f"/v1/models/{version}")["manifest"]["recommender"]["actions"] == []
    expect(edit_log(shop_dashboard)).to_contain_text(
        "this model does not read actions: no score can change"
    )


def test_an_action_that_the_model_leaves_out_takes_the_event_out_of_what_is_read(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    change_action(shop_dashboard, heaviest, "cancel")
    assert_drawn(shop_dashboard, asked, changed(asked, place, action="cancel"))
    assert scores_by_item(shop_dashboard, 1) != pytest.approx(
        scores_by_item(shop_dashboard, 2), abs=1e-3
    )
    expect(row_of(shop_dashboard, heaviest).locator(".after")).to_have_text("action not read")
    expect(edit_log(shop_dashboard)).to_contain_text(
        "this model leaves out events with the action “cancel”: it is not read now"
    )


def change_action(dashboard: Dashboard, event: dict[str, Any], action: str) -> None:
    row_of(dashboard, event).get_by_role("button", name="Edit").click()
    field = dashboard.page.get_by_role("group", name="Edit ").get_by_label("Action")
    field.fill(action)
    field.press("Tab")
    dashboard.settle()


def test_the_query_time_is_moved_for_the_new_side_alone(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    steps = shop_dashboard.page.locator("#query-time-steps")
    for _ in range(2):
        steps.get_by_role("button", name="−30 d").click()
    shop_dashboard.settle()
    earlier = "2011-10-02T12:00:00Z"
    assert_drawn(shop_dashboard, asked, stored(shop_dashboard, at=earlier))
    expect(edit_log(shop_dashboard)).to_contain_text("Moved the query time by −60\u00a0d")
    last = asked.history[-1]
    assert last["timestamp"] > earlier
    first = shop_dashboard.page.locator("#events tr").first
    expect(first.locator(".after")).not_to_contain_text("%")


def test_undoing_an_edit_and_resetting_bring_back_the_old(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Remove").click()
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    expect(edit_log(shop_dashboard)).to_have_count(2)
    shop_dashboard.page.get_by_role("button", name="Undo: Added").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, asked, without(asked, place))
    expect(shop_dashboard.page.get_by_role("button", name="Undo: Removed")).to_be_focused()
    shop_dashboard.page.get_by_role("button", name="Reset").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, asked, asked)
    expect(edit_log(shop_dashboard)).to_have_count(0)
    assert "edits" not in shop_dashboard.page.url


def test_a_removed_event_can_be_put_back_where_it_stands(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    button = shop_dashboard.page.locator("#events tr").first.locator("[data-do=remove]")
    button.press("Enter")
    shop_dashboard.settle()
    expect(button).to_be_focused()
    expect(button).to_have_text("Put back")
    button.press("Enter")
    shop_dashboard.settle()
    expect(edit_log(shop_dashboard)).to_have_count(0)


def test_a_link_brings_back_every_edit(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard, f"{CUSTOMER_AT}&n=5&exclude_seen=false")
    asked = replace(stored(shop_dashboard), exclude_seen=False)
    _, heaviest = heaviest_event(shop_dashboard, asked)
    change_action(shop_dashboard, heaviest, "re_turn.ed*")
    editor = shop_dashboard.page.get_by_role("group", name="Edit ")
    editor.get_by_role("button", name="−1 d").click()
    shop_dashboard.settle()
    shop_dashboard.page.locator("#events tr").first.get_by_role("button", name="Remove").click()
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    shop_dashboard.page.locator("#query-time-steps").get_by_role("button", name="+1 h").click()
    shop_dashboard.settle()
    edits = edit_log(shop_dashboard).all_inner_texts()
    assert len(edits) == 5
    scores = shop_dashboard.traces("scores")[2]["x"]
    link = shop_dashboard.page.url
    shop_dashboard.page.goto("about:blank")
    shop_dashboard.open(link[link.index("#") :], view=VIEW)
    assert edit_log(shop_dashboard).all_inner_texts() == edits
    assert shop_dashboard.traces("scores")[2]["x"] == scores
    expect(shop_dashboard.page.locator("#n")).to_have_value("5")
    expect(shop_dashboard.page.get_by_label("exclude seen items")).not_to_be_checked()
    assert shop_dashboard.page.url == link


def test_back_takes_one_edit_back_and_forward_makes_it_again(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    rows = shop_dashboard.page.locator("#events tr")
    for place in range(2):
        rows.nth(place).get_by_role("button", name="Remove").click()
        shop_dashboard.settle()
    after = scores_by_item(shop_dashboard, 2)
    shop_dashboard.page.go_back()
    expect(edit_log(shop_dashboard)).to_have_count(1)
    shop_dashboard.settle()
    shop_dashboard.page.go_back()
    expect(edit_log(shop_dashboard)).to_have_count(0)
    shop_dashboard.page.go_forward()
    shop_dashboard.page.go_forward()
    expect(edit_log(shop_dashboard)).to_have_count(2)
    shop_dashboard.settle()
    assert scores_by_item(shop_dashboard, 2) == after


def test_another_user_begins_without_edits_and_back_returns(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    shop_dashboard.page.locator("#events tr").first.get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    shop_dashboard.page.locator("#user-list button").first.click()
    name = shop_dashboard.page.locator("#history-name")
    expect(name).not_to_contain_text(shop.CUSTOMER)
    shop_dashboard.settle()
    expect(edit_log(shop_dashboard)).to_have_count(0)
    shop_dashboard.page.go_back()
    expect(name).to_contain_text(shop.CUSTOMER)
    expect(edit_log(shop_dashboard)).to_have_count(1)


def test_an_empty_history_begins_with_what_is_popular_and_takes_events(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    shop_dashboard.page.get_by_role("button", name="An empty history").click()
    expect(shop_dashboard.page.locator("#history-name")).to_have_text("an empty history")
    shop_dashboard.settle()
    expect(shop_dashboard.page.locator("#account-before")).to_contain_text("popular items only")
    expect(shop_dashboard.page.locator("#no-events")).to_be_visible()
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    item = shop_dashboard.api("/v1/items?q=lunch%20bag&limit=1")["items"][0]
    known = next(m for m in shop_dashboard.api("/v1/models")["models"] if m["is_serving"])
    at = known["data_window"]["last_at"]
    added = {"item_id": item["item_id"], "timestamp": "2011-11-30T08:15:00Z", "action": "purchase"}
    answer = recommended(shop_dashboard, Question((added,), at))
    best = shop_dashboard.page.locator("#compared-items tr").first
    assert best.get_attribute("data-item") == answer["items"][0]["item_id"]
    expect(shop_dashboard.page.locator("#no-scores")).to_be_visible()
    expect(best.locator(".difference")).to_have_text("–")
    assert weights_on_display(shop_dashboard, 1) == [1.0]


def test_another_version_is_asked_the_same(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    models = shop_dashboard.api("/v1/models")["models"]
    other = next(model["version"] for model in models if not model["is_serving"])
    shop_dashboard.page.locator("#version").select_option(other)
    shop_dashboard.settle()
    asked = replace(stored(shop_dashboard), model_version=other)
    place, heaviest = heaviest_event(shop_dashboard, asked)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, asked, without(asked, place))
    expect(shop_dashboard.page.locator("#model-version")).to_have_text(other)
    assert f"model_version={other}" in shop_dashboard.page.url


def test_seen_items_may_be_answered_and_an_added_one_leaves_for_having_been_seen(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    best = recommended(shop_dashboard, stored(shop_dashboard))["items"][0]
    add_event(shop_dashboard, best["title"], "2011-11-30T08:15:00")
    row = shop_dashboard.page.locator(f'#compared-items [data-item="{best["item_id"]}"]')
    expect(row.locator(".moved")).to_contain_text("left: seen now")
    shop_dashboard.page.get_by_label("exclude seen items").uncheck()
    shop_dashboard.settle()
    expect(row.locator(".moved")).not_to_contain_text("seen now")


def test_an_event_after_the_query_time_is_said_not_to_be_read(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    asked = stored(shop_dashboard)
    add_event(shop_dashboard, "lunch bag", "2011-12-02T08:15:00")
    expect(edit_log(shop_dashboard)).to_contain_text("lies after the query time: it is not read")
    assert_drawn(shop_dashboard, asked, asked)


def test_the_very_same_event_is_not_added_twice(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    for _ in range(2):
        add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    expect(shop_dashboard.page.get_by_role("alert").filter(has_text="very event")).to_be_visible()
    expect(edit_log(shop_dashboard)).to_have_count(1)


def test_looking_leaves_no_trace_on_the_service(shop_dashboard: Dashboard) -> None:
    asked: list[tuple[str, str]] = []
    shop_dashboard.page.on("request", lambda request: asked.append((request.method, request.url)))
    kept = shop_dashboard.api(f"/v1/users/{shop.CUSTOMER}?limit=1000")
    open_customer(shop_dashboard)
    shop_dashboard.page.locator("#events tr").first.get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    # A recommendation would be taken down as shown; what these two answer is kept nowhere.
    sent = {url.rpartition("/v1/")[2] for method, url in asked if method != "GET"}
    assert sent == {"attention", "rankings"}
    assert shop_dashboard.api(f"/v1/users/{shop.CUSTOMER}?limit=1000") == kept


def test_the_fifty_first_edit_is_refused_with_the_limit(shop_dashboard: Dashboard) -> None:
    asked = stored(shop_dashboard)
    edits = "*".join(
        f"add.{asked.history[0]['item_id']}.201111{day:02}T{hour:02}0000.view"
        for day in range(1, 11)
        for hour in range(5)
    )
    open_customer(shop_dashboard, f"{CUSTOMER_AT}&edits={edits}")
    expect(edit_log(shop_dashboard)).to_have_count(50)
    shop_dashboard.page.locator("#query-time-steps").get_by_role("button", name="+1 d").click()
    expect(shop_dashboard.page.locator("#edits-full")).to_contain_text("at most 50 edits")
    expect(edit_log(shop_dashboard)).to_have_count(50)


def test_a_history_is_edited_without_a_mouse(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    page = shop_dashboard.page
    page.locator("#add-item").focus()
    page.keyboard.type("lunch bag")
    # What was typed stands last: the list is the one for all of it.
    expect(page.locator("#add-item-options [role=option]").last).to_have_text("the id lunch bag")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#add-item")).to_have_attribute("aria-activedescendant", re.compile("-1$"))
    page.keyboard.press("Enter")
    expect(page.locator("#add-action")).to_be_focused()
    page.keyboard.press("Enter")
    shop_dashboard.settle()
    second = shop_dashboard.api("/v1/items?q=lunch%20bag&limit=2")["items"][1]
    expect(edit_log(shop_dashboard)).to_contain_text(f"Added {second['title']}")
    edit = page.locator("#events tr").nth(1).get_by_role("button", name="Edit")
    edit.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".editor input").first).to_be_focused()
    page.get_by_role("button", name="−1 d").last.focus()
    page.keyboard.press("Enter")
    shop_dashboard.settle()
    expect(page.get_by_role("button", name="−1 d").last).to_be_focused()
    expect(edit_log(shop_dashboard).nth(1)).to_contain_text("by −1\u00a0d")
    page.keyboard.press("Escape")
    expect(page.locator(".editor")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit ").locator(":focus, :scope:focus")).to_have_count(
        1
    )
    page.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Enter")
    shop_dashboard.settle()
    expect(edit_log(shop_dashboard)).to_have_count(0)


def test_the_list_of_items_closes_with_escape_and_chooses_nothing(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    field = shop_dashboard.page.locator("#add-item")
    field.fill("lunch bag")
    expect(field).to_have_attribute("aria-expanded", "true")
    field.press("Escape")
    expect(field).to_have_attribute("aria-expanded", "false")
    field.press("Enter")
    expect(shop_dashboard.page.locator("#add-refused")).to_contain_text("choose one from the list")
    expect(edit_log(shop_dashboard)).to_have_count(0)


def test_an_item_the_model_does_not_know_is_said(dashboard: Dashboard) -> None:
    at = "2025-03-01T12:00:00.000Z"
    dashboard.open(f"#user={world.REGULAR}&query_time={at}", view=VIEW)
    add_id(dashboard, "sku-never-seen")
    expect(edit_log(dashboard)).to_contain_text("the model does not know this item")
    row = dashboard.page.locator("#events tr").filter(has_text="sku-never-seen")
    expect(row.locator(".after")).to_have_text("unknown to the model")
    asked = stored(dashboard, world.REGULAR, at)
    assert_drawn(dashboard, asked, asked)


def test_a_hostile_title_stays_text_wherever_it_is_drawn(dashboard: Dashboard) -> None:
    at = "2025-03-01T12:00:00.000Z"
    dashboard.open(f"#user={world.REGULAR}&query_time={at}&exclude_seen=false&n=20", view=VIEW)
    first = dashboard.page.locator("#events tr").filter(has_text=world.HOSTILE_TITLE)
    first.get_by_role("button", name="Remove").click()
    dashboard.settle()
    for place in ("#events", "#edits", "#compared-items"):
        expect(dashboard.page.locator(place)).to_contain_text(world.HOSTILE_TITLE)
    for chart in ("scores", "weights"):
        expect(dashboard.page.locator(f"#{chart} .ytick").filter(has_text="<img")).to_have_count(1)
    assert dashboard.page.locator("img").count() == 0
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_the_instants_of_events_stay_exact_to_the_microsecond(dashboard: Dashboard) -> None:
    bodies: list[dict[str, Any]] = []
    dashboard.page.on("request", lambda request: _keep_history(request, bodies))
    at = "2025-03-01T12:00:00.000Z"
    asked = stored(dashboard, world.REGULAR, at)
    place, fractional = next(
        (place, event)
        for place, event in enumerate(asked.history)
        if re.search(r"\.\d{3}[1-9]", event["timestamp"])
    )
    dashboard.open(f"#user={world.REGULAR}&query_time={at}", view=VIEW)
    assert bodies[-1]["history"] == list(asked.history)
    row = dashboard.page.locator("#events tr").nth(len(asked.history) - 1 - place)
    row.get_by_role("button", name="Edit").click()
    dashboard.page.get_by_role("button", name="−1 d").last.click()
    dashboard.settle()
    moved = datetime.fromisoformat(fractional["timestamp"]).astimezone(UTC) - timedelta(days=1)
    told = moved.isoformat().replace("+00:00", "Z")
    after = changed(asked, place, timestamp=told)
    assert_drawn(dashboard, asked, after)
    assert {event["timestamp"] for event in bodies[-1]["history"]} == {
        event["timestamp"] for event in after.history
    }


def _keep_history(request: Any, bodies: list[dict[str, Any]]) -> None:
    if request.url.endswith("/v1/rankings"):
        bodies.append(request.post_data_json)


def test_an_edit_of_an_event_that_is_no_longer_stored_is_said_to_do_nothing(
    dashboard: Dashboard,
) -> None:
    at = "2025-03-01T12:00:00.000Z"
    gone = "remove.sku-01.20200101T000000.purchase"
    dashboard.open(f"#user={world.REGULAR}&query_time={at}&edits={gone}", view=VIEW)
    expect(edit_log(dashboard)).to_contain_text("not in the stored history")
    asked = stored(dashboard, world.REGULAR, at)
    assert_drawn(dashboard, asked, asked)


def test_ids_with_any_characters_fit_in_a_link(dashboard: Dashboard) -> None:
    user = quote(world.NEWCOMER, safe="")
    dashboard.open(f"#user={user}&query_time=2026-01-01T00:00:00Z", view=VIEW)
    strange = "a.b*c_d/ü<i>&#"
    add_id(dashboard, strange)
    link = dashboard.page.url
    dashboard.page.goto("about:blank")
    dashboard.open(link[link.index("#") :], view=VIEW)
    expect(edit_log(dashboard)).to_contain_text(f"Added {strange}")


def test_a_version_that_is_not_published_is_refused_in_the_words_of_the_service(
    dashboard: Dashboard,
) -> None:
    dashboard.expected_complaint = "status of 404"
    link = f"#user={world.REGULAR}&model_version=nothing"
    dashboard.page.goto(f"{dashboard.service}/dashboard/{VIEW}{link}")
    expect(dashboard.page.locator("#problem")).to_contain_text("nothing")
