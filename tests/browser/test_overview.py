"""The Overview page: health, the served version beside its baselines, customers, changes."""

from playwright.sync_api import Route, expect

from tests.browser.dashboard import Dashboard


def test_the_served_version_stands_beside_its_baselines(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view="index.html")
    models = shop_dashboard.api("/v1/models")["models"]
    (served,) = [model["version"] for model in models if model["is_serving"]]
    metrics = shop_dashboard.api(f"/v1/models/{served}")["manifest"]["metrics"]
    card = shop_dashboard.page.locator("#serving")
    expect(card.locator(".headline")).to_contain_text(served)
    own = metrics.get("ndcg@10_live", metrics["ndcg@10"])
    expect(card.locator("tbody tr").first).to_contain_text(f"{own:.4f}")
    rivals = {
        name: value
        for name, value in metrics.items()
        if name.endswith("_ndcg@10") and name != "ndcg@10"
    }
    lift = own / max(rivals.values()) - 1
    word = "better" if lift >= 0 else "worse"
    expect(card.locator("strong")).to_contain_text(word)
    expect(card.locator("tbody tr")).to_have_count(len(rivals) + 2)


def test_a_changing_customer_opens_with_both_lists(shop_dashboard: Dashboard) -> None:
    shop_dashboard.open(view="index.html")
    changes = shop_dashboard.api("/v1/overview/changes?n=10")
    links = shop_dashboard.page.locator("#changing a")
    assert links.all_inner_texts() == [user["user_id"] for user in changes["users"]]
    links.first.click()
    expect(shop_dashboard.page.locator("#user-name")).to_have_text(changes["users"][0]["user_id"])
    shop_dashboard.settle()
    expect(shop_dashboard.page.locator("#ranking-summary")).to_contain_text("compared with")
    lost = shop_dashboard.page.locator("#top-items li.lost")
    expect(lost).to_have_count(changes["users"][0]["left"])


def test_a_card_that_fails_leaves_the_others(shop_dashboard: Dashboard) -> None:
    shop_dashboard.expected_complaint = "status of 500"

    def fail(route: Route) -> None:
        route.fulfill(status=500, json={"detail": "the disk is full"})

    shop_dashboard.page.route("**/v1/overview/changes*", fail)
    shop_dashboard.open(view="index.html")
    card = shop_dashboard.page.locator("#changing")
    expect(card).to_contain_text("the disk is full")
    expect(shop_dashboard.page.locator("#service")).to_contain_text("It answers requests.")
    shop_dashboard.page.unroute("**/v1/overview/changes*")
    card.get_by_role("button", name="Try again").click()
    expect(card.locator("a").first).to_be_visible()
