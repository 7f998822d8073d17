"""The categories of the demo's articles: the rules, and the shipped file."""

from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import text

from app.db.engine import open_engine
from app.imports import import_items
from demo.categories import ITEMS, MAX_CATEGORIES, RULES, derive_categories
from migrations.run import upgrade
from tests.architecture.repository import ROOT, document
from training.data.dataset import Dataset
from training.data.sources import read_events, read_items


@pytest.mark.parametrize(
    ("title", "categories"),
    [
        ("REGENCY CAKESTAND 3 TIER", ("Kitchen and baking",)),
        ("JUMBO BAG 50'S CHRISTMAS ", ("Christmas", "Bags")),
        ("ALARM CLOCK BAKELIKE RED", ("Clocks",)),
        ("WHITE HANGING HEART T-LIGHT HOLDER", ("Candles and lights", "Home decoration")),
        ("ROSES REGENCY TEACUP AND SAUCER", ("Tea and coffee",)),
        ("RETROSPOT TEA TOWEL", ("Kitchen and baking", "Textiles")),
        ("POSTAGE", ()),
    ],
)
def test_the_words_of_a_title_determine_its_categories(
    title: str, categories: tuple[str, ...]
) -> None:
    assert derive_categories(title) == categories


def test_the_words_of_a_longer_phrase_match_nothing_else() -> None:
    assert derive_categories("SPACEBOY LUNCH BOX") == ("Kitchen and baking",)
    assert derive_categories("CARD") == ("Cards and gift wrap",)
    assert derive_categories("SNAP CARDS") == ("Toys and games",)
    assert derive_categories("BIRD LIGHT PINK FEATHER") == ()


def test_an_article_has_the_first_two_matching_categories() -> None:
    assert derive_categories("CHRISTMAS LUNCH BAG FELTCRAFT") == ("Christmas", "Bags")


def test_the_shipped_categories_follow_the_rules() -> None:
    items = read_items(ITEMS)
    assert items["categories"].to_list() == [list(derive_categories(t)) for t in items["title"]]
    assert items["categories"].list.len().max() == MAX_CATEGORIES
    assert {*items["categories"].explode().drop_nulls()} == {*RULES}


def test_the_readme_states_the_coverage_of_the_categories() -> None:
    items = pl.read_parquet(ITEMS)
    events = pl.read_parquet(ROOT / "demo" / "events.parquet").join(items, on="item_id")
    of_articles, of_events = (
        float((table["categories"].list.len() > 0).to_numpy().mean()) for table in (items, events)
    )
    assert of_events >= 0.7
    page = document("demo/README.md")
    assert f"{of_articles:.1%} of the articles and {of_events:.1%} of the events" in page
    assert f"{len(RULES)} categories" in page


def test_database_and_catalog_contain_the_categories(tmp_path: Path) -> None:
    items, url = read_items(ITEMS), f"sqlite:///{tmp_path / 'kairos.db'}"
    upgrade(url)
    import_items(url, items)
    engine = open_engine(url)
    with engine.connect() as connection:
        query = text("SELECT categories FROM items WHERE item_id = 'sku-0002'")
        assert connection.scalar(query) == '["Kitchen and baking"]'
    engine.dispose()
    few = read_events(ROOT / "demo" / "events.parquet").head(1000)
    catalog = Dataset.of(few, items).catalog
    titles = dict(zip(items["item_id"], items["title"], strict=True))
    assert catalog.categories == tuple(derive_categories(titles[i]) for i in catalog.item_ids)
