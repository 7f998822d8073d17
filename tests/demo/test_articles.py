"""What the demo's data leaves out."""

import polars as pl

from demo.articles import EVENTS, ITEMS, NON_ARTICLES
from tests.architecture.repository import document


def test_no_item_and_no_event_is_of_what_is_no_article() -> None:
    items, events = pl.read_parquet(ITEMS), pl.read_parquet(EVENTS)
    assert not {*items["item_id"], *events["item_id"]} & {*NON_ARTICLES}
    assert {*items["item_id"]} == {*events["item_id"]}


def test_goods_with_similar_words_stay() -> None:
    titles = {*pl.read_parquet(ITEMS)["title"]}
    assert {"PIGGY BANK RETROSPOT", "FRENCH CARRIAGE LANTERN", "DOORMAT AIRMAIL"} <= titles


def test_the_readme_states_the_sizes_of_the_data() -> None:
    items, events = pl.read_parquet(ITEMS), pl.read_parquet(EVENTS)
    page = document("demo/README.md")
    assert f"{len(events):,} events of {events['user_id'].n_unique():,} customers" in page
    assert f"{len(items):,} articles" in page
    assert f"{len(NON_ARTICLES)} items" in page
