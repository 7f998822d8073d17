"""Links to what is not there, a user with one event, and a service without data."""

from collections.abc import Callable
from urllib.parse import unquote, urlencode

import pytest
from playwright.sync_api import expect

from tests.browser import odd_models
from tests.browser.dashboard import Dashboard
from tests.browser.odd_models import OddVersions
from tests.processes import Server

UNPUBLISHED = "20200101T000000Z-000000000000"


def link(**state: str) -> str:
    return f"#{urlencode(state)}"


# Unknown versions


@pytest.mark.parametrize("view", ["population.html", "kernels.html"])
def test_a_page_of_pairs_names_the_versions_it_lacks(odd_dashboard: Dashboard, view: str) -> None:
    odd_dashboard.open(link(version=UNPUBLISHED, compare="another"), view=view)
    note = odd_dashboard.page.locator("#version-note")
    expect(note).to_contain_text(f"{UNPUBLISHED} is not published")
    expect(note).to_contain_text("Version another is not published")
    odd_dashboard.page.select_option("#version", index=1)
    odd_dashboard.settle()
    expect(note).to_be_hidden()


def test_the_model_page_names_the_versions_it_lacks(odd_dashboard: Dashboard) -> None:
    odd_dashboard.open(link(version=UNPUBLISHED, compare="another"), view="models.html")
    note = odd_dashboard.page.locator("#versions-note")
    expect(note).to_contain_text(f"{UNPUBLISHED} and another are not published here")


def test_an_unpublished_version_to_compare_keeps_the_lists(odd_dashboard: Dashboard) -> None:
    odd_dashboard.expected_complaint = "status of 404"
    fragment = link(user=odd_models.USER, compare_version=UNPUBLISHED)
    page = odd_dashboard.open(fragment, view="customers.html").page
    expect(page.locator("#problem")).to_contain_text("The compared version: ")
    expect(page.locator("#problem")).to_contain_text(UNPUBLISHED)
    expect(page.locator("#top-items li").first).to_be_visible()
    page.select_option("#compare", "")
    odd_dashboard.settle()
    expect(page.locator("#problem")).to_be_hidden()


def test_from_an_unpublished_version_each_can_be_chosen(odd_dashboard: Dashboard) -> None:
    odd_dashboard.expected_complaint = "status of 404"
    page = odd_dashboard.page
    fragment = link(user=odd_models.USER, model_version=UNPUBLISHED)
    page.goto(f"{odd_dashboard.service}/dashboard/what_if.html{fragment}")
    expect(page.locator("#problem")).to_contain_text(UNPUBLISHED)
    expect(page.locator("#version")).to_have_value("")
    served = str(page.locator("#version option").first.get_attribute("value"))
    page.select_option("#version", served)
    odd_dashboard.settle()
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator("#compared-items tr").first).to_be_visible()


# Times that no link should have


@pytest.mark.parametrize(
    "state",
    [
        {"compare_time": "+275760-09-13T00:00:00.000Z"},
        {"axis_from": "-271821-04-20T00:00:00Z", "axis_until": "+275760-09-13T00:00:00Z"},
        {"query_time": "2025"},
        {"compare_time": "2025-02-30T00:00:00Z"},
        {"axis_from": "2026-02-01T00:00:00Z", "axis_until": "2026-01-01T00:00:00Z"},
        {"axis_from": "1950-01-01T00:00:00Z"},
        {"from": "2026-01-01T00:00:00Z"},
    ],
)
def test_times_that_cannot_be_are_left_out(odd_dashboard: Dashboard, state: dict[str, str]) -> None:
    page = odd_dashboard.open(link(user=odd_models.USER, **state), view="customers.html").page
    expect(page.locator("#top-items li").first).to_be_visible()
    # Writes the link anew.
    page.locator("#compare").select_option("time")
    odd_dashboard.settle()
    address = unquote(page.url)
    assert "compare_time=" in address
    assert not [text for text in state.values() if text.rstrip("Z") in address]


def test_the_axis_of_all_years_has_few_labels(odd_dashboard: Dashboard) -> None:
    times = {"query_time": "0001-01-01T00:00:00Z", "compare_time": "9999-12-31T23:59:59Z"}
    odd_dashboard.open(link(user=odd_models.USER, **times), view="customers.html")
    labels = odd_dashboard.page.evaluate(
        """async () => {
            const { TimeScale } = await import("/dashboard/customers/time_scale.js");
            const [first, last] = ["0001-01-01", "9999-12-31"].map(Date.parse);
            return new TimeScale(first, last, 196, 1080).ticks.map(({ label }) => label);
        }"""
    )
    assert labels == [str(year) for year in range(1000, 9001, 1000)]


def test_a_span_may_be_given_backwards(odd_dashboard: Dashboard) -> None:
    def summary(**span: str) -> str:
        page = odd_dashboard.open(link(user=odd_models.USER, **span), view="customers.html").page
        expect(page.locator("#baskets-summary")).to_contain_text("Averaged from")
        return page.locator("#baskets-summary").inner_text()

    early, late = "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"
    forwards = summary(**{"from": early, "until": late})
    assert summary(**{"from": late, "until": early}) == forwards


# Users without a history, or with one event


def test_an_unknown_customer_gets_what_a_new_one_gets(odd_dashboard: Dashboard) -> None:
    page = odd_dashboard.open(link(user="nobody"), view="customers.html").page
    expect(page.locator("#facts")).to_contain_text("No event of this customer is stored")
    (serving,) = (
        model for model in odd_dashboard.api("/v1/models")["models"] if model["is_serving"]
    )
    # Now may be years after what the model knows.
    assert odd_dashboard.query_time[:19] == serving["data_window"]["last_at"][:19]
    expect(page.locator("#top-items li").first).to_contain_text("popular")
    expect(page.locator("#why-content .reason")).to_be_visible()
    # Without a basket there is none to leave out.
    expect(page.locator("#leave-out")).to_have_count(0)


def test_one_event_has_all_the_attention(odd_dashboard: Dashboard) -> None:
    page = odd_dashboard.open(link(user=odd_models.NEWCOMER), view="customers.html").page
    summary = page.locator("#baskets-summary")
    expect(summary).to_contain_text("the model reads 1 event. All of its attention is on")
    assert odd_dashboard.shares == ["100.0 %"]


def test_an_unknown_user_has_no_event_to_edit(odd_dashboard: Dashboard) -> None:
    page = odd_dashboard.open(link(user="nobody"), view="what_if.html").page
    expect(page.locator("#history-note")).to_have_text("0 stored events.")
    expect(page.locator("#inputs-before")).to_contain_text("0 of 0 events read")
    expect(page.locator("#compared-items tr").first).to_be_visible()


def test_an_unknown_user_has_no_intensities(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    fragment = link(version=odd_versions.modulated, user="nobody")
    page = odd_dashboard.open(fragment, view="kernels.html").page
    expect(page.locator("#intensity-note")).to_contain_text("nobody has no event")
    expect(page.locator("#intensity-plot")).to_be_hidden()


# A model without attention


def test_without_attention_the_customer_is_still_shown(
    odd_dashboard: Dashboard, odd_versions: OddVersions
) -> None:
    fragment = link(user=odd_models.USER, model_version=odd_versions.counting)
    page = odd_dashboard.open(fragment, view="customers.html").page
    expect(page.locator("#baskets-summary")).to_contain_text("there are no weights to show")
    expect(page.locator("#top-items li").first).to_be_visible()
    page.locator("#leave-out").click()
    expect(page.locator("#why-content")).to_contain_text("This model has no attention to test.")


# A service without a model and without events


SAID = {
    "index.html": "No model serves yet",
    "customers.html": "No events are stored yet",
    "what_if.html": "none is being served; publish one",
    "items.html": "No model is published yet",
    "models.html": "No version is published yet",
    "population.html": "No version is published yet",
    "kernels.html": "No version is published yet",
}


@pytest.mark.parametrize("view", SAID)
def test_without_data_a_page_says_what_to_do(
    empty_service: Server, look_at: Callable[[str], Dashboard], view: str
) -> None:
    dashboard = look_at(empty_service.url)
    dashboard.expected_complaint = "status of 50[03]|status of 404|status of 409"
    dashboard.page.goto(f"{dashboard.service}/dashboard/{view}")
    dashboard.page.wait_for_selector("main[aria-busy=false]")
    said = dashboard.page.locator("main").get_by_text(SAID[view]).locator("visible=true")
    expect(said.first).to_be_visible()
