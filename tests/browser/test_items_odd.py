"""The Items page with odd ids, hostile titles, and items or versions that lack something."""

from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import expect

from model.encoders.popularity import PopularityConfig
from tests.app import tiny_bundle
from tests.browser import world
from tests.browser.dashboard import Dashboard
from tests.browser.items_view import VIEW, map_of, open_item, options, pixel, similar_rows
from tests.processes import LOCAL_TOKEN, Server, processes

SLASHED, DOTS, NEW, OVER = "lamps/red & blue?#", "..", "новинка", "sku-over"
LIKE_PATHS = ("a/similar", "a/popularity", "a/../b", "a%2Fsimilar", f"{SLASHED}/similar")


@pytest.fixture(scope="module")
def odd_shop(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose stored items have odd ids and titles, and a version without item vectors."""
    directory = tmp_path_factory.mktemp("odd")
    world.publish(directory / "bundles")
    encoder = PopularityConfig()
    tiny_bundle.publish(directory / "bundles", 1, activate=False, encoder=encoder)
    with processes(directory, directory / "bundles") as start:
        server = start()
        world.fill(server.url)
        items = [
            {
                "item_id": world.ITEM_IDS[0],
                "title": world.HOSTILE_TITLE,
                "categories": ["<b>bold</b>"],
            },
            {
                "item_id": SLASHED,
                "title": "Lamp, red and blue",
                "properties": {"<i>": {"price": 3.5}},
            },
            {"item_id": DOTS, "title": "Dots"},
            *({"item_id": item_id, "title": f"Lamp {item_id}"} for item_id in LIKE_PATHS),
            {"item_id": NEW, "title": "Lamp, new"},
            {"item_id": OVER, "title": "Lamp, gone", "available_until": "2025-02-01T00:00:00Z"},
        ]
        server.http.put("/v1/items", json={"items": items}).raise_for_status()
        yield server


@pytest.fixture
def odd(odd_shop: Server, look_at: Callable[[str], Dashboard]) -> Dashboard:
    """Its dashboard."""
    return look_at(odd_shop.url)


def test_a_title_stays_text(odd: Dashboard) -> None:
    page = odd.open(view=VIEW).page
    page.get_by_label("Find an item").fill("onerror")
    expect(options(page).first).to_contain_text(world.HOSTILE_TITLE)
    expect(page.locator("#popular-items")).to_contain_text(world.HOSTILE_TITLE)
    page.keyboard.press("Enter")
    odd.settle()
    expect(page.locator("#item-heading")).to_have_text(world.HOSTILE_TITLE)
    expect(page.locator("#map-marked")).to_contain_text(world.HOSTILE_TITLE)
    expect(page.locator("#map .annotation-text")).to_contain_text("<img src=x onerror=")
    expect(page.locator("#categories")).to_contain_text("<b>bold</b>")
    x, y = pixel(odd, map_of(odd)[0])
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    expect(page.locator("#map + .tip")).to_contain_text(world.HOSTILE_TITLE)
    assert page.locator("img").count() == 0
    assert page.evaluate("document.body.dataset.hacked") is None


def test_an_item_unknown_to_the_model_shows_what_is_stored(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, SLASHED)
    page = odd.page
    expect(page.locator("#item-heading")).to_have_text("Lamp, red and blue")
    expect(page.locator("#facts")).to_contain_text('<i>: {"price":3.5}')
    expect(page.locator("#similar-note")).to_contain_text("retrain with events of that item")
    expect(page.locator("#popularity-missing")).to_contain_text("No event of this item is stored")
    expect(page.locator("#map-marked")).to_contain_text("not among the items of this map")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_an_unstored_item_shows_what_the_model_has(dashboard: Dashboard) -> None:
    dashboard.expected_complaint = "status of 404"
    open_item(dashboard, world.ITEM_IDS[3])
    page = dashboard.page
    expect(page.locator("#item-heading")).to_have_text(world.TITLES[3])
    expect(page.locator("#facts")).to_contain_text("store it with PUT /v1/items")
    assert len(similar_rows(dashboard)) == 10
    (purchases,) = dashboard.traces("popularity-plot")
    counted = dashboard.api(f"/v1/items/{world.ITEM_IDS[3]}/popularity?step=week")["actions"]
    assert counted == {"purchase": purchases["y"]}


def test_an_unknown_item_shows_the_problems_of_the_service(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, "sku-nobody")
    for selector, path in (
        ("#facts", ""),
        ("#similar-note", "/similar"),
        ("#popularity-missing", "/popularity"),
    ):
        detail = httpx.get(f"{odd.service}/v1/items/sku-nobody{path}", auth=LOCAL_TOKEN).json()[
            "detail"
        ]
        expect(odd.page.locator(selector)).to_contain_text(detail)


@pytest.mark.parametrize("item_id", LIKE_PATHS)
def test_an_id_that_resembles_a_path_is_opened(odd: Dashboard, item_id: str) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, item_id)
    page = odd.page
    expect(page.locator("#item-heading")).to_have_text(f"Lamp {item_id}")
    expect(page.locator("#similar-note")).to_contain_text("retrain with events of that item")
    expect(page.locator("#popularity-missing")).to_contain_text("No event of this item is stored")


@pytest.mark.parametrize("item_id", [DOTS, "."])
def test_an_id_that_no_url_can_contain_is_explained(odd: Dashboard, item_id: str) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, item_id)
    expect(odd.page.locator("#item-heading")).to_have_text(item_id)
    expect(odd.page.locator("#facts")).to_contain_text("under another id")


def test_an_item_that_is_not_available_now_says_so(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, OVER)
    expect(odd.page.locator("#facts")).to_contain_text(
        "not now, only until 2025-02-01 00:00:00 UTC"
    )


def test_an_id_may_be_of_any_letters(odd: Dashboard) -> None:
    odd.expected_complaint = "status of 404"
    open_item(odd, NEW)
    expect(odd.page.locator("#item-heading")).to_have_text("Lamp, new")
    expect(odd.page.locator("#facts")).to_contain_text(NEW)


def test_without_item_vectors_the_page_says_why_no_map(odd: Dashboard) -> None:
    odd.expected_complaint = "status of (404|409)"
    models = odd.api("/v1/models")["models"]
    (flat,) = [model["version"] for model in models if not model["is_serving"]]
    open_item(odd, "i3", model_version=flat)
    refusal = httpx.get(f"{odd.service}/v1/models/{flat}/map", auth=LOCAL_TOKEN).json()["detail"]
    assert "learns none" in refusal
    expect(odd.page.locator("#map-missing")).to_have_text(refusal)
    expect(odd.page.locator("#similar-note")).to_have_text(refusal)
    expect(odd.page.locator("#map-shown")).to_be_hidden()
