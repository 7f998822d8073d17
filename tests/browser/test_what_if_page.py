"""The what-if page: links, other histories and versions, limits, keyboard."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from playwright.sync_api import expect

from tests.browser import shop, world
from tests.browser.dashboard import Dashboard
from tests.browser.what_if_view import (
    CUSTOMER_AT,
    VIEW,
    HistoryQuery,
    add_event,
    add_id,
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


def test_a_link_restores_every_edit(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard, f"{CUSTOMER_AT}&n=5&exclude_seen=false")
    query = replace(stored(shop_dashboard), exclude_seen=False)
    _, heaviest = heaviest_event(shop_dashboard, query)
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
    expect(shop_dashboard.page.get_by_label("only items not in the history")).not_to_be_checked()
    assert shop_dashboard.page.url == link


def test_the_buttons_of_an_event_fit_on_any_screen(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    table = shop_dashboard.page.locator("table.history")
    for width in (390, 1280, 1600):
        shop_dashboard.page.set_viewport_size({"width": width, "height": 900})
        overflow = table.evaluate("(it) => it.offsetWidth - it.parentElement.clientWidth")
        assert overflow <= 0, width


def test_back_and_forward_step_through_the_edits(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    rows = shop_dashboard.page.locator("#events tr")
    for index in range(2):
        rows.nth(index).get_by_role("button", name="Remove").click()
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


def test_another_user_starts_without_edits_and_back_returns(shop_dashboard: Dashboard) -> None:
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


def test_an_empty_history_shows_popular_items_and_takes_events(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    shop_dashboard.page.get_by_role("button", name="An empty history").click()
    expect(shop_dashboard.page.locator("#history-name")).to_have_text("an empty history")
    shop_dashboard.settle()
    expect(shop_dashboard.page.locator("#inputs-before")).to_contain_text("popular items only")
    expect(shop_dashboard.page.locator("#no-events")).to_be_visible()
    add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    item = shop_dashboard.api("/v1/items?q=lunch%20bag&limit=1")["items"][0]
    known = next(m for m in shop_dashboard.api("/v1/models")["models"] if m["is_serving"])
    at = known["data_window"]["last_at"]
    added = {"item_id": item["item_id"], "timestamp": "2011-11-30T08:15:00Z", "action": "purchase"}
    response = recommended(shop_dashboard, HistoryQuery((added,), at))
    best = shop_dashboard.page.locator("#compared-items tr").first
    assert best.get_attribute("data-item") == response["items"][0]["item_id"]
    expect(shop_dashboard.page.locator("#no-scores")).to_be_visible()
    expect(best.locator(".difference")).to_have_text("–")
    assert weights_on_display(shop_dashboard, 1) == [1.0]


def test_another_version_gets_the_same_histories(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    models = shop_dashboard.api("/v1/models")["models"]
    other = next(model["version"] for model in models if not model["is_serving"])
    shop_dashboard.page.locator("#version").select_option(other)
    shop_dashboard.settle()
    query = replace(stored(shop_dashboard), model_version=other)
    index, heaviest = heaviest_event(shop_dashboard, query)
    row_of(shop_dashboard, heaviest).get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    assert_drawn(shop_dashboard, query, without(query, index))
    expect(shop_dashboard.page.locator("#model-version")).to_have_text(other)
    assert f"model_version={other}" in shop_dashboard.page.url


def test_an_added_item_leaves_the_list_unless_seen_ones_stay(
    shop_dashboard: Dashboard,
) -> None:
    open_customer(shop_dashboard)
    best = recommended(shop_dashboard, stored(shop_dashboard))["items"][0]
    add_event(shop_dashboard, best["title"], "2011-11-30T08:15:00")
    row = shop_dashboard.page.locator(f'#compared-items [data-item="{best["item_id"]}"]')
    expect(row.locator(".moved")).to_contain_text("left: in the history now")
    shop_dashboard.page.get_by_label("only items not in the history").uncheck()
    shop_dashboard.settle()
    expect(row.locator(".moved")).not_to_contain_text("in the history now")


def test_an_event_after_the_query_time_is_marked_unread(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    query = stored(shop_dashboard)
    add_event(shop_dashboard, "lunch bag", "2011-12-02T08:15:00")
    expect(edit_log(shop_dashboard)).to_contain_text("lies after the point in time: it is not read")
    assert_drawn(shop_dashboard, query, query)


def test_a_duplicate_event_is_not_added(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    for _ in range(2):
        add_event(shop_dashboard, "lunch bag", "2011-11-30T08:15:00")
    expect(shop_dashboard.page.get_by_role("alert").filter(has_text="very event")).to_be_visible()
    expect(edit_log(shop_dashboard)).to_have_count(1)


def test_editing_stores_nothing_in_the_service(shop_dashboard: Dashboard) -> None:
    sent: list[tuple[str, str]] = []
    shop_dashboard.page.on("request", lambda request: sent.append((request.method, request.url)))
    kept = shop_dashboard.api(f"/v1/users/{shop.CUSTOMER}?limit=1000")
    open_customer(shop_dashboard)
    shop_dashboard.page.locator("#events tr").first.get_by_role("button", name="Remove").click()
    shop_dashboard.settle()
    # POST /v1/recommendations would record an impression; these two store nothing.
    operations = {url.rpartition("/v1/")[2] for method, url in sent if method != "GET"}
    assert operations == {"attention", "rankings"}
    assert shop_dashboard.api(f"/v1/users/{shop.CUSTOMER}?limit=1000") == kept


def test_the_fifty_first_edit_is_refused_with_the_limit(shop_dashboard: Dashboard) -> None:
    query = stored(shop_dashboard)
    edits = "*".join(
        f"add.{query.history[0]['item_id']}.201111{day:02}T{hour:02}0000.view"
        for day in range(1, 11)
        for hour in range(5)
    )
    open_customer(shop_dashboard, f"{CUSTOMER_AT}&edits={edits}")
    expect(edit_log(shop_dashboard)).to_have_count(50)
    shop_dashboard.page.locator("#query-time-steps").get_by_role("button", name="+1 d").click()
    expect(shop_dashboard.page.locator("#edits-full")).to_contain_text("at most 50 edits")
    expect(edit_log(shop_dashboard)).to_have_count(50)


def test_a_history_is_edited_by_keyboard(shop_dashboard: Dashboard) -> None:
    open_customer(shop_dashboard)
    page = shop_dashboard.page
    page.locator("#add-item").focus()
    page.keyboard.type("lunch bag")
    # The last option is the typed text: the list belongs to all of it.
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


def test_escape_closes_the_list_of_items_without_a_choice(
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


def test_an_item_unknown_to_the_model_is_marked(dashboard: Dashboard) -> None:
    at = "2025-03-01T12:00:00.000Z"
    dashboard.open(f"#user={world.REGULAR}&query_time={at}", view=VIEW)
    add_id(dashboard, "sku-never-seen")
    expect(edit_log(dashboard)).to_contain_text("the model does not know this item")
    row = dashboard.page.locator("#events tr").filter(has_text="sku-never-seen")
    expect(row.locator(".after")).to_have_text("unknown to the model")
    query = stored(dashboard, world.REGULAR, at)
    assert_drawn(dashboard, query, query)


def test_a_hostile_title_stays_text_everywhere(dashboard: Dashboard) -> None:
    at = "2025-03-01T12:00:00.000Z"
    dashboard.open(f"#user={world.REGULAR}&query_time={at}&exclude_seen=false&n=20", view=VIEW)
    first = dashboard.page.locator("#events tr").filter(has_text=world.HOSTILE_TITLE)
    first.get_by_role("button", name="Remove").click()
    dashboard.settle()
    for selector in ("#events", "#edits", "#compared-items"):
        expect(dashboard.page.locator(selector)).to_contain_text(world.HOSTILE_TITLE)
    for chart in ("scores", "weights"):
        expect(dashboard.page.locator(f"#{chart} .ytick").filter(has_text="<img")).to_have_count(1)
    assert dashboard.page.locator("img").count() == 0
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_instants_of_events_keep_their_microseconds(dashboard: Dashboard) -> None:
    bodies: list[dict[str, Any]] = []
    dashboard.page.on("request", lambda request: _keep_history(request, bodies))
    at = "2025-03-01T12:00:00.000Z"
    query = stored(dashboard, world.REGULAR, at)
    index, fractional = next(
        (index, event)
        for index, event in enumerate(query.history)
        if re.search(r"\.\d{3}[1-9]", event["timestamp"])
    )
    dashboard.open(f"#user={world.REGULAR}&query_time={at}", view=VIEW)
    assert bodies[-1]["history"] == list(query.history)
    row = dashboard.page.locator("#events tr").nth(len(query.history) - 1 - index)
    row.get_by_role("button", name="Edit").click()
    dashboard.page.get_by_role("button", name="−1 d").last.click()
    dashboard.settle()
    moved = datetime.fromisoformat(fractional["timestamp"]).astimezone(UTC) - timedelta(days=1)
    shifted = moved.isoformat().replace("+00:00", "Z")
    after = changed(query, index, timestamp=shifted)
    assert_drawn(dashboard, query, after)
    assert {event["timestamp"] for event in bodies[-1]["history"]} == {
        event["timestamp"] for event in after.history
    }


def _keep_history(request: Any, bodies: list[dict[str, Any]]) -> None:
    if request.url.endswith("/v1/rankings"):
        bodies.append(request.post_data_json)


def test_an_edit_of_a_missing_event_is_marked_ineffective(
    dashboard: Dashboard,
) -> None:
    at = "2025-03-01T12:00:00.000Z"
    gone = "remove.sku-01.20200101T000000.purchase"
    dashboard.open(f"#user={world.REGULAR}&query_time={at}&edits={gone}", view=VIEW)
    expect(edit_log(dashboard)).to_contain_text("not in the stored history")
    query = stored(dashboard, world.REGULAR, at)
    assert_drawn(dashboard, query, query)


def test_ids_with_any_characters_fit_in_a_link(dashboard: Dashboard) -> None:
    user = quote(world.NEWCOMER, safe="")
    dashboard.open(f"#user={user}&query_time=2026-01-01T00:00:00Z", view=VIEW)
    strange = "a.b*c_d/ü<i>&#"
    add_id(dashboard, strange)
    link = dashboard.page.url
    dashboard.page.goto("about:blank")
    dashboard.open(link[link.index("#") :], view=VIEW)
    expect(edit_log(dashboard)).to_contain_text(f"Added {strange}")


def test_an_unpublished_version_shows_the_service_problem(
    dashboard: Dashboard,
) -> None:
    dashboard.expected_complaint = "status of 404"
    link = f"#user={world.REGULAR}&model_version=nothing"
    dashboard.page.goto(f"{dashboard.service}/dashboard/{VIEW}{link}")
    expect(dashboard.page.locator("#problem")).to_contain_text("nothing")
