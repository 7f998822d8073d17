"""The Items page: who would be recommended an item, and when."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.browser.dashboard import Dashboard
from tests.browser.items_view import POPULAR, open_item


def test_recipients_are_those_of_the_api(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    page = shop_dashboard.page
    page.get_by_label("Every").select_option("a week")
    page.get_by_role("button", name="Find customers").click()
    shop_dashboard.settle()
    answer = shop_dashboard.api(f"/v1/items/{POPULAR}/recipients?step_days=7")
    sections = page.locator("#recipients-found section")
    expect(sections).to_have_count(3)
    for section, instant in zip(sections.all(), answer["instants"], strict=True):
        expect(section.locator("h3")).to_have_text(instant["query_time"][:10])
        expect(section.locator("p")).to_contain_text(f"of {instant['sampled_users']} customer")
        links = [link.get_attribute("href") or "" for link in section.locator("a").all()]
        found = [parse_qs(urlsplit(link).fragment) for link in links]
        assert found == [
            {
                "user": [user["user_id"]],
                "query_time": [instant["query_time"]],
                "exclude_seen": ["true"],
            }
            for user in instant["recipients"]
        ]
        assert {urlsplit(link).path for link in links} <= {"customers.html"}


def test_another_item_removes_the_customers(shop_dashboard: Dashboard) -> None:
    open_item(shop_dashboard, POPULAR)
    page = shop_dashboard.page
    page.get_by_role("button", name="Find customers").click()
    shop_dashboard.settle()
    expect(page.locator("#recipients-note")).to_contain_text("As ")
    page.locator("#similar-items a").first.click()
    shop_dashboard.settle()
    expect(page.locator("#recipients-note")).to_have_text("")
    expect(page.locator("#recipients-found section")).to_have_count(0)
