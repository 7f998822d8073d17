"""The Customers page in a real browser against a real service: attention, ranks, items."""

import re
from typing import Any

import pytest
from playwright.sync_api import Route, expect

from tests.browser import shop, world
from tests.browser.dashboard import Dashboard, to_milliseconds

VIEW = "customers.html"
AT = "2025-03-01T12:00:00Z"
REGULAR_AT = f"#user={world.REGULAR}&query_time={AT}"


def recommend(dashboard: Dashboard, **fields: Any) -> dict[str, Any]:
    """The response of the API, requested without a browser."""
    body = {"user_id": world.REGULAR, "query_time": AT, "exclude_seen": False} | fields
    answer: dict[str, Any] = dashboard.api("/v1/recommendations", body)
    return answer


def to_shares(weights: list[float]) -> list[str]:
    """Weights as the page shows them."""
    return [
        "< 0.01 %" if 0 < weight < 1e-4 else f"{100 * weight:.{2 if weight < 0.01 else 1}f} %"
        for weight in weights
    ]


def test_shares_and_items_are_those_of_the_api(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    answer = recommend(dashboard, explain="attention")
    events = answer["attention"]["events"]
    assert dashboard.shares == to_shares([event["weight"] for event in events])
    assert [row[0][:19] for row in dashboard.table("baskets-table")] == [
        event["timestamp"].replace("T", " ")[:19] for event in events
    ]
    assert dashboard.top_items == [item["item_id"] for item in answer["items"]]
    summary = dashboard.page.locator("#baskets-summary")
    expect(summary).to_contain_text("On 1 Mar 2025 the model reads 10 events.")


def test_the_slider_moves_attention_and_items_at_once(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}", view=VIEW)
    before = len(dashboard.requested)
    seen = []
    for share in (0.1, 0.6, 0.9):
        dashboard.move_slider(share)
        answer = recommend(dashboard, query_time=dashboard.query_time, explain="attention")
        weights = [event["weight"] for event in answer["attention"]["events"]]
        assert [share for share in dashboard.shares if share != "–"] == to_shares(weights)
        assert dashboard.top_items == [item["item_id"] for item in answer["items"]]
        seen.append(dashboard.top_items)
    assert seen[0] != seen[2]
    # All of it is from the two sweeps of the beginning.
    assert [url for url in dashboard.requested[before:] if "/v1/attention" in url] == []


def test_the_slider_lies_at_the_point_in_time(dashboard: Dashboard) -> None:
    """Also where the stops are not evenly spaced, as beside one that a link names."""
    dashboard.open(f"{REGULAR_AT}&compare_time=2025-01-10T07:11:13Z", view=VIEW)
    slider = dashboard.page.locator("#query-time-slider")
    for share in (0.23, 0.71):
        dashboard.move_slider(share)
        assert int(slider.input_value()) == to_milliseconds(dashboard.query_time)
    slider.focus()
    for key, by in (("ArrowLeft", -1), ("ArrowRight", 1), ("PageUp", 10), ("PageDown", -10)):
        before = dashboard.swept_milliseconds.index(int(slider.input_value()))
        slider.press(key)
        dashboard.settle()
        assert dashboard.swept_milliseconds.index(int(slider.input_value())) == before + by


def test_steps_keep_the_hour_and_the_weekday(shop_dashboard: Dashboard) -> None:
    """The model reads both: other steps would show its rhythm as noise."""
    shop_dashboard.open(f"#user={shop.CUSTOMER}", view=VIEW)
    instants = shop_dashboard.swept_instants
    shown = shop_dashboard.page.evaluate(
        "(texts) => texts.map((text) => new Date(text)).map((at) => [at.getUTCDay(), "
        "at.getUTCHours(), at.getUTCMinutes()])",
        instants,
    )
    assert len(instants) > 50
    assert len({tuple(one) for one in shown}) == 1


def test_any_point_in_time_can_be_entered(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}", view=VIEW)
    field = dashboard.page.locator("#query-time-field")
    field.fill("2025-01-20T06:30:15")
    field.press("Enter")
    dashboard.settle()
    assert "2025-01-20T06:30:15.000Z" in dashboard.swept_instants
    answer = recommend(dashboard, query_time="2025-01-20T06:30:15Z")
    assert dashboard.top_items == [item["item_id"] for item in answer["items"]]


def test_each_instant_is_a_basket_of_its_own(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.BASKETS}", view=VIEW)
    rows = dashboard.page.locator("#basket-rows")
    rows.focus()
    pinned = []
    for _ in range(5):
        rows.press("ArrowDown")
        pinned.append(str(dashboard.page.evaluate("location.hash.match(/pin=([^&]*)/)[1]")))
    assert len(set(pinned)) == 3
    assert pinned[2:] == [pinned[2]] * 3
    expect(dashboard.page.locator("#why-heading")).to_have_text("In this basket")
    expect(dashboard.page.locator(".basket-items li")).to_have_count(4)
    rows.press("Escape")
    assert "pin=" not in dashboard.page.url


def test_a_basket_opens_into_its_events(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.BASKETS}", view=VIEW)
    rows = dashboard.page.locator("#basket-rows")
    rows.focus()
    rows.press("ArrowDown")
    rows.press("Enter")
    assert "open=" in dashboard.page.url
    rows.press("ArrowDown")
    assert "pin=event" in dashboard.page.url
    dashboard.page.goto("about:blank")
    dashboard.page.go_back()
    dashboard.settle()
    dashboard.page.locator("#basket-rows").focus()
    assert "open=" in dashboard.page.url


def read_cell(dashboard: Dashboard, row: int, share: float) -> list[int]:
    """The colour of a row of ten, at a share of the time axis."""
    cell: list[int] = dashboard.page.evaluate(
        """([row, share]) => {
            const frame = document.getElementById("basket-rows");
            const canvas = frame.querySelector("canvas");
            const pixels = Math.min(26, Math.max(16, Math.floor((frame.clientHeight - 22) / 10)));
            const ratio = canvas.width / frame.clientWidth;
            const [left, right] = [196, frame.clientWidth - 104];
            const x = left + share * (right - left);
            const y = 22 + row * pixels + 5;
            return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data];
        }""",
        [row, share],
    )
    return cell


def test_a_cell_is_coloured_by_its_lift(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "willReadFrequently"
    dashboard.open(f"#user={world.REGULAR}", view=VIEW)
    dashboard.page.wait_for_timeout(100)
    swept = dashboard.api(
        "/v1/attention", {"user_id": world.REGULAR, "query_times": dashboard.swept_instants}
    )
    position = len(swept["instants"]) - 3
    weights = swept["instants"][position]["weights"]
    lifts = [weight * len(weights) for weight in weights]
    share = position / (len(swept["instants"]) - 1)
    # Towards green for more than the even share, towards purple for less.
    greens = [
        (cell[1] - cell[0], lift)
        for row, lift in enumerate(lifts)
        for cell in [read_cell(dashboard, row, share)]
    ]
    assert all((green > 5) == (lift > 1.1) for green, lift in greens if abs(lift - 1) > 0.15)
    assert len({lift > 1 for _, lift in greens}) == 2
    # Not yet bought: nothing is painted.
    assert read_cell(dashboard, 9, 0.2)[3] == 0


def test_pinned_things_light_up_their_partners(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.BASKETS}", view=VIEW)
    item = dashboard.page.locator("#top-items li").nth(2)
    item.locator("button").click()
    expect(item).to_have_class(re.compile("linked"))
    expect(item.locator("button")).to_have_attribute("aria-pressed", "true")
    item_id = item.get_attribute("data-item")
    assert f"pin=item%3A{item_id}" in dashboard.page.url
    expect(dashboard.page.locator("#why-heading")).to_have_text("Why this item is number 3")
    dashboard.page.mouse.move(0, 0)
    rows = dashboard.page.locator("#basket-rows")
    rows.focus()
    rows.press("ArrowDown")
    events = dashboard.api(f"/v1/users/{world.BASKETS}")["events"]
    first = min(event["timestamp"] for event in events)
    bought = {event["item_id"] for event in events if event["timestamp"] == first}
    linked = dashboard.page.locator("#top-items li.linked")
    assert {str(row.get_attribute("data-item")) for row in linked.all()} == bought.intersection(
        dashboard.top_items
    )


def test_the_reasons_of_an_item_add_up_to_its_score(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(f"#user={shop.CUSTOMER}", view=VIEW)
    body = {"user_id": shop.CUSTOMER, "query_time": shop_dashboard.query_time, "explain": "reasons"}
    answer = shop_dashboard.api("/v1/recommendations", body | {"exclude_seen": False})
    for item in answer["items"][:3]:
        row = shop_dashboard.page.locator(f"#top-items li[data-item='{item['item_id']}'] button")
        row.click()
        heading = shop_dashboard.page.locator("#why-heading")
        expect(heading).to_have_text(f"Why this item is number {item['rank']}")
        why = shop_dashboard.page.locator("#why-content")
        expect(why.locator(".reason")).to_have_text(item["reasons"]["sentence"])
        parts = item["reasons"]["contributions"]
        texts = why.locator(".contributions td.number").all_inner_texts()
        assert [float(text.replace("−", "-")) for text in texts] == [
            pytest.approx(part["value"], abs=0.006) for part in parts if part["kind"] != "average"
        ]
        assert sum(part["value"] for part in parts) == pytest.approx(item["score"], abs=1e-4)
        shop_dashboard.page.mouse.move(0, 0)


def test_an_item_is_tested_by_leaving_out_each_basket(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(f"#user={shop.CUSTOMER}", view=VIEW)
    item_id = shop_dashboard.top_items[0]
    body = {
        "user_id": shop.CUSTOMER,
        "query_time": shop_dashboard.query_time,
        "exclude_seen": False,
        "explain": "occlusion",
        "occlusion_unit": "basket",
        "explain_item_id": item_id,
    }
    left_out = shop_dashboard.api("/v1/recommendations", body)["attention"]["left_out"]
    largest = sorted(left_out, key=lambda one: -abs(one["occlusion"]))[:6]
    shop_dashboard.page.get_by_role("button", name="Test by leaving out baskets").click()
    rows = shop_dashboard.page.locator(".effects tr")
    expect(rows).to_have_count(len(largest))
    values = shop_dashboard.page.locator(".effects td.number").all_inner_texts()
    assert [float(text.replace("−", "-")) for text in values] == [
        pytest.approx(one["occlusion"], abs=0.006) for one in largest
    ]


def test_two_points_in_time_are_compared(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    dashboard.page.locator("#compare").select_option("time")
    dashboard.settle()
    dashboard.move_slider(0.05)
    before = [item["item_id"] for item in recommend(dashboard)["items"]]
    answer = recommend(dashboard, query_time=dashboard.query_time)
    after = [item["item_id"] for item in answer["items"]]
    entered = len(set(after) - set(before))
    summary = dashboard.page.locator("#ranking-summary")
    expect(summary).to_contain_text(f"{entered} item")
    expect(summary).to_contain_text("compared with 1 Mar 2025")
    for rank, item_id in enumerate(after):
        row = dashboard.page.locator(f"#top-items li[data-item='{item_id}'] .move")
        if item_id not in before:
            expect(row).to_have_text("+ new")
        elif before.index(item_id) == rank:
            expect(row).to_have_text("=")
        else:
            expect(row).to_contain_text(str(abs(before.index(item_id) - rank)))
    lost = dashboard.page.locator("#top-items li.lost")
    assert {row.get_attribute("data-item") for row in lost.all()} == set(before) - set(after)


def test_two_versions_are_compared(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(f"#user={shop.CUSTOMER}", view=VIEW)
    versions = [model["version"] for model in shop_dashboard.api("/v1/models")["models"]]
    served = shop_dashboard.page.locator("#model-version").inner_text()
    other = next(version for version in versions if version != served)
    shop_dashboard.page.locator("#compare").select_option(other)
    summary = shop_dashboard.page.locator("#ranking-summary")
    expect(summary).to_contain_text(f"compared with version {other}")
    body = {
        "user_id": shop.CUSTOMER,
        "query_time": shop_dashboard.query_time,
        "exclude_seen": False,
        "model_version": other,
    }
    theirs = shop_dashboard.api("/v1/recommendations", body)["items"]
    lost = {item["item_id"] for item in theirs} - set(shop_dashboard.top_items)
    rows = shop_dashboard.page.locator("#top-items li.lost").all()
    assert {row.get_attribute("data-item") for row in rows} == lost


def test_attention_is_averaged_over_a_span(dashboard: Dashboard) -> None:
    dashboard.open(
        f"#user={world.REGULAR}&query_time={AT}&from=2025-02-10T00:00:00Z&until=2025-02-20T00:00:00Z",
        view=VIEW,
    )
    instants = [
        text
        for text in dashboard.swept_instants
        if "2025-02-10T00:00:00" <= text <= "2025-02-20T00:00:01"
    ]
    assert len(instants) >= 10
    swept = dashboard.api("/v1/attention", {"user_id": world.REGULAR, "query_times": instants})
    of_first = [instant["weights"][0] for instant in swept["instants"]]
    assert dashboard.shares[0] == to_shares([sum(of_first) / len(of_first)])[0]
    expect(dashboard.page.locator("#baskets-summary")).to_contain_text("Averaged from 10 Feb 2025")
    dashboard.page.get_by_role("button", name="Leave the span").click()
    expect(dashboard.page.locator("#baskets-summary")).to_contain_text("On 1 Mar 2025")


def test_a_drag_selects_a_span(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    dashboard.page.get_by_role("button", name="Average over a span").click()
    box = dashboard.page.locator("#rank-lines").bounding_box()
    assert box is not None
    dashboard.page.mouse.move(box["x"] + 300, box["y"] + 100)
    dashboard.page.mouse.down()
    dashboard.page.mouse.move(box["x"] + 350, box["y"] + 100)
    dashboard.page.mouse.move(box["x"] + 420, box["y"] + 100)
    dashboard.page.mouse.up()
    expect(dashboard.page.locator("#baskets-summary")).to_contain_text("Averaged from")
    assert "from=" in dashboard.page.url
    assert "until=" in dashboard.page.url


def test_the_weights_of_a_head_follow_the_slider(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}&head=2", view=VIEW)
    dashboard.move_slider(0.7)
    answer = recommend(dashboard, query_time=dashboard.query_time, explain="heads")
    weights = answer["attention"]["heads"][1]
    assert [share for share in dashboard.shares if share != "–"] == to_shares(weights)


def test_a_withheld_query_time_has_a_sweep_too(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}&query_time_withheld=true", view=VIEW)
    dashboard.move_slider(0.8)
    at = dashboard.query_time
    answer = recommend(dashboard, query_time=at, query_time_withheld=True)
    assert dashboard.top_items == [item["item_id"] for item in answer["items"]]


def test_play_moves_the_time_and_stops_at_the_end(dashboard: Dashboard) -> None:
    dashboard.open(f"#user={world.REGULAR}&speed=fast", view=VIEW)
    dashboard.move_slider(0.5)
    slider = dashboard.page.locator("#query-time-slider")
    start = int(slider.input_value())
    dashboard.page.locator("h1").evaluate("() => document.activeElement.blur()")
    dashboard.page.keyboard.press("Space")
    expect(slider).to_have_value(str(slider.get_attribute("max")))
    expect(dashboard.page.get_by_role("button", name="Play")).to_be_visible()
    dashboard.settle()
    assert int(slider.input_value()) > start
    answer = recommend(dashboard, query_time=dashboard.query_time)
    assert dashboard.top_items == [item["item_id"] for item in answer["items"]]


def test_reduced_motion_plays_few_steps(dashboard: Dashboard) -> None:
    dashboard.page.emulate_media(reduced_motion="reduce")
    dashboard.open(f"#user={world.REGULAR}", view=VIEW)
    dashboard.move_slider(0)
    dashboard.page.get_by_role("button", name="Play").click()
    tenth = dashboard.swept_milliseconds[10]
    expect(dashboard.page.locator("#query-time-slider")).to_have_value(str(tenth))
    dashboard.page.get_by_role("button", name="Pause").click()
    dashboard.settle()


def test_customers_are_found_by_their_ids(dashboard: Dashboard) -> None:
    dashboard.open(view=VIEW)
    dashboard.page.locator("main").focus()
    dashboard.page.keyboard.press("/")
    search = dashboard.page.get_by_role("combobox", name="Customer")
    expect(search).to_be_focused()
    search.fill("dept/")
    expect(dashboard.page.locator("#customer-search-options li")).to_have_count(2)
    search.press("Enter")
    expect(dashboard.page.locator("#user-name")).to_have_text(world.NEWCOMER)
    dashboard.settle()
    expect(dashboard.page.locator("#facts")).to_contain_text("1 item of the history unknown")


def test_a_link_restores_what_was_shown(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    dashboard.page.locator("#options summary").click()
    dashboard.page.locator("#n").select_option("5")
    dashboard.by_label("only items not in the history").check()
    dashboard.by_label("ignore elapsed time").check()
    dashboard.settle()
    items, shares = dashboard.top_items, dashboard.shares
    assert len(items) == 4
    link = dashboard.page.url
    dashboard.page.goto("about:blank")
    dashboard.open(link[link.index("#") :], view=VIEW)
    assert (dashboard.top_items, dashboard.shares) == (items, shares)
    expect(dashboard.page.locator("#exclude-seen")).to_be_checked()
    expect(dashboard.page.locator("#withheld")).to_be_checked()


def test_back_returns_to_the_previous_customer(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    search = dashboard.page.get_by_role("combobox", name="Customer")
    search.fill(world.BASKETS)
    search.press("Enter")
    expect(dashboard.page.locator("#user-name")).to_have_text(world.BASKETS)
    dashboard.settle()
    dashboard.page.go_back()
    expect(dashboard.page.locator("#user-name")).to_have_text(world.REGULAR)
    dashboard.settle()
    assert len(dashboard.shares) == 10


def test_an_unknown_customer_gets_what_a_new_one_gets(dashboard: Dashboard) -> None:
    dashboard.open("#user=nobody", view=VIEW)
    expect(dashboard.page.locator("#facts")).to_contain_text("what a new customer gets")
    expect(dashboard.page.locator("#ranking-summary")).to_contain_text("popular items only")
    expect(dashboard.page.locator("#baskets-summary")).to_contain_text("nothing to look at")
    assert dashboard.top_items[0] == world.ITEM_IDS[0]


def test_a_failed_load_leaves_no_other_customers_charts(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 500"
    dashboard.open(REGULAR_AT, view=VIEW)

    def fail(route: Route) -> None:
        route.fulfill(status=500, json={"detail": "the disk is full"})

    for path in ("**/v1/users/*", "**/v1/attention"):
        dashboard.page.route(path, fail)
        search = dashboard.page.get_by_role("combobox", name="Customer")
        search.fill(world.BASKETS)
        search.press("Enter")
        expect(dashboard.page.get_by_role("alert")).to_contain_text("the disk is full")
        expect(dashboard.page.locator("#user-name")).to_have_text(world.BASKETS)
        assert dashboard.top_items == []
        expect(dashboard.page.locator("#baskets-table")).to_be_hidden()
        dashboard.page.unroute(path)
        dashboard.page.get_by_role("button", name="Try again").click()
        dashboard.settle()
        assert len(dashboard.shares) == 12
        expect(dashboard.page.get_by_role("alert")).to_be_hidden()
        search.fill(world.REGULAR)
        search.press("Enter")
        expect(dashboard.page.locator("#user-name")).to_have_text(world.REGULAR)
        dashboard.settle()


def test_the_message_of_a_refused_request_is_shown(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 422"
    dashboard.page.goto(f"{dashboard.service}/dashboard/{VIEW}#user={'u' * 257}")
    expect(dashboard.page.get_by_role("alert")).to_contain_text("at most 256 characters")


def test_a_hostile_title_is_shown_as_text(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    assert world.HOSTILE_TITLE in [row[1] for row in dashboard.table("baskets-table")]
    rows = dashboard.page.locator("#basket-rows")
    box = rows.bounding_box()
    assert box is not None
    dashboard.page.mouse.move(box["x"] + 100, box["y"] + 30)
    expect(rows.locator(".tip")).to_contain_text(world.HOSTILE_TITLE)
    assert dashboard.page.locator("img").count() == 0
    assert dashboard.page.evaluate("document.body.dataset.hacked") is None


def test_no_formatter_of_intl_is_made(dashboard: Dashboard) -> None:
    dashboard.page.add_init_script(
        """window.made = [];
        for (const name of ["NumberFormat", "DateTimeFormat", "PluralRules"]) {
            Intl[name] = new Proxy(Intl[name], {
                construct(kind, options) {
                    window.made.push(name);
                    return Reflect.construct(kind, options);
                },
            });
        }"""
    )
    dashboard.open(REGULAR_AT, view=VIEW)
    assert dashboard.page.evaluate("window.made") == []


def test_the_screen_needs_no_scrolling(shop_dashboard: Dashboard) -> None:
    shop_dashboard.page.set_viewport_size({"width": 1440, "height": 900})
    for fragment in ("", "&compare_time=2011-05-01T00:00:00Z"):
        shop_dashboard.page.goto("about:blank")
        shop_dashboard.open(f"#user={shop.CUSTOMER}{fragment}", view=VIEW)
        assert shop_dashboard.page.evaluate("document.documentElement.scrollHeight") <= 900


@pytest.mark.parametrize("first", ["index.html", ""])
def test_old_links_to_a_customer_lead_to_the_page(dashboard: Dashboard, first: str) -> None:
    dashboard.page.goto(f"{dashboard.service}/dashboard/{first}{REGULAR_AT}")
    dashboard.page.wait_for_url("**/customers.html#*")
    expect(dashboard.page.locator("#user-name")).to_have_text(world.REGULAR)
    dashboard.settle()


def test_the_tabs_keep_the_customer_and_the_time(dashboard: Dashboard) -> None:
    dashboard.open(REGULAR_AT, view=VIEW)
    dashboard.page.get_by_role("link", name="What if", exact=True).click()
    dashboard.settle()
    expect(dashboard.page.locator("h2", has_text="the history of")).to_contain_text(world.REGULAR)
    query = dashboard.page.url.partition("#")[2]
    assert f"user={world.REGULAR}&query_time=2025-03-01T12%3A00%3A00.000Z" in query
    dashboard.page.get_by_role("link", name="Over time").click()
    dashboard.settle()
    expect(dashboard.page.locator("#user-name")).to_have_text(world.REGULAR)
    assert dashboard.query_time == "2025-03-01T12:00:00Z"


def test_enter_takes_what_was_typed_not_an_earlier_list(dashboard: Dashboard) -> None:
    """The list of all customers, requested on focus, arrives after the Enter."""
    dashboard.open(f"#user={world.BASKETS}", view=VIEW)

    def answer_late(route: Route) -> None:
        dashboard.page.wait_for_timeout(400 if "prefix=" not in route.request.url else 0)
        route.continue_()

    dashboard.page.route("**/v1/users?*", answer_late)
    search = dashboard.page.get_by_role("combobox", name="Customer")
    search.focus()
    search.fill(world.REGULAR)
    search.press("Enter")
    expect(dashboard.page.locator("#user-name")).to_have_text(world.REGULAR)
