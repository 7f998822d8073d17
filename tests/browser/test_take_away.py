"""What is taken away from the cards of the Customers page: pictures, numbers, requests, a link."""

import csv
import re
from xml.etree import ElementTree

import pytest

from tests.browser import world
from tests.browser.dashboard import Dashboard
from tests.browser.take_away_view import read_text, run_curl, run_python, take

FRAGMENT = f"#user={world.REGULAR}&query_time=2025-03-01T12:00:00Z"
CARDS = ("baskets", "ranking", "ranks", "why")


def test_numbers_are_those_of_the_api(dashboard: Dashboard) -> None:
    dashboard.open(FRAGMENT, view="customers.html")
    body = {
        "user_id": world.REGULAR,
        "query_time": "2025-03-01T12:00:00Z",
        "explain": "attention",
        "exclude_seen": False,
    }
    answer = dashboard.api("/v1/recommendations", body)
    rows = list(csv.DictReader(take(dashboard, "#baskets", "CSV").decode("utf-8-sig").splitlines()))
    events = answer["attention"]["events"]
    assert [float(row["weight"]) for row in rows] == pytest.approx(
        [event["weight"] for event in events], abs=1e-6
    )
    assert [row["item_id"] for row in rows] == [event["item_id"] for event in events]
    assert world.HOSTILE_TITLE in [row["title"] for row in rows]
    items = list(
        csv.DictReader(take(dashboard, "#ranking", "CSV").decode("utf-8-sig").splitlines())
    )
    assert [(row["item_id"], float(row["score"])) for row in items] == [
        (item["item_id"], pytest.approx(item["score"], abs=1e-5)) for item in answer["items"]
    ]


@pytest.mark.parametrize("card", CARDS)
def test_a_card_is_saved_as_a_picture(dashboard: Dashboard, card: str) -> None:
    dashboard.open(FRAGMENT, view="customers.html")
    assert take(dashboard, f"#{card}", "PNG").startswith(b"\x89PNG\r\n")
    drawing = take(dashboard, f"#{card}", "SVG").decode()
    root = ElementTree.fromstring(drawing)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(world.REGULAR in text for text in texts)
    assert len(texts) > 10
    assert not re.search(r"<(img|script)|style=", drawing)


def test_the_request_runs_as_python_and_as_curl(dashboard: Dashboard) -> None:
    dashboard.open(FRAGMENT, view="customers.html")
    (listed,) = run_python(dashboard, "#ranking")
    assert [item["item_id"] for item in listed["items"]] == dashboard.top_items
    (swept,) = run_curl(dashboard, "#baskets")
    assert swept["events"][0]["item_id"] == world.ITEM_IDS[0]


def test_the_link_of_a_card_restores_the_view(dashboard: Dashboard) -> None:
    dashboard.open(FRAGMENT, view="customers.html")
    link = read_text(dashboard, "#ranks", "Link to this view")
    assert link == dashboard.page.url


def test_cells_cannot_run_as_formulas(dashboard: Dashboard) -> None:
    dashboard.open(view="customers.html")
    wide = [f"{chr(ord(sign) + 0xFEE0)}1" for sign in "=+-@"]
    values = ["=1+1", "+x", "@a", "-2", "\n=1", *wide, 'a "b", c', "plain", -2.5, None]
    cells = dashboard.page.evaluate(
        """async (values) => {
            const path = new URL("widgets/take_away_text.js", document.baseURI).href;
            const { toCell } = await import(path);
            return values.map(toCell);
        }""",
        values,
    )
    begun = ["'=1+1", "'+x", "'@a", "'-2", '"\'\n=1"', *(f"'{text}" for text in wide)]
    assert cells == [*begun, '"a ""b"", c"', "plain", "-2.5", ""]
