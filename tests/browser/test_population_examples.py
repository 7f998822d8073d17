"""The Population page: example customers for a point of a curve."""

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from tests.browser.dashboard import Dashboard

VIEW = "population.html"


def read_links(page: Page) -> list[dict[str, list[str]]]:
    links = [link.get_attribute("href") or "" for link in page.locator("#examples-found a").all()]
    return [parse_qs(urlsplit(link).fragment) for link in links]


def test_a_bin_leads_to_customers_of_its_age(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open(view=VIEW).page
    intervals = page.get_by_label("Time since the last event").locator("option")
    middle = intervals.count() // 2
    page.get_by_label("Time since the last event").select_option(index=middle)
    # By the keyboard, as all of the card.
    page.get_by_role("button", name="Find customers").press("Enter")
    expect(page.locator("#examples-note")).to_contain_text(intervals.nth(middle).inner_text())
    links = read_links(page)
    assert links
    (version,) = (
        model for model in shop_dashboard.api("/v1/models")["models"] if model["is_serving"]
    )
    profile = shop_dashboard.api(f"/v1/models/{version['version']}")["attention_profile"]
    days = [
        point["interval_days"]
        for point in profile
        if (point["view"], point["by"]) == ("observed", "all")
    ]
    least, most = ((days[middle] * days[middle + step]) ** 0.5 * 86400 for step in (-1, 1))
    path = f"/v1/overview/examples?min_seconds={least}&max_seconds={most}"
    expected = [
        {"user": [user["user_id"]], "query_time": [user["query_time"]]}
        for user in shop_dashboard.api(path)["users"]
    ]
    assert [link["user"] for link in links] == [link["user"] for link in expected]
    first = page.locator("#examples-found li").first.inner_text()
    assert first.startswith(expected[0]["user"][0])


def test_a_click_on_a_point_finds_customers(shop_dashboard: Dashboard) -> None:
    page = shop_dashboard.open('#names=[""]', view=VIEW).page
    traces = shop_dashboard.traces("observed-plot")
    curve = next(index for index, trace in enumerate(traces) if trace["mode"] == "lines+markers")
    middle = len(traces[curve]["x"]) // 2
    page.evaluate(
        """([curve, point]) => document.getElementById("observed-plot").emit("plotly_click", {
            points: [{curveNumber: curve, pointNumber: point}],
        })""",
        [curve, middle],
    )
    expect(page.locator("#examples-note")).to_contain_text("since the last event")
    assert page.get_by_label("Time since the last event").input_value() == str(middle)
