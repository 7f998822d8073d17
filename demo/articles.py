"""Removes what is no article from the demo's items and events: postage, charges, adjustments.

    python demo/articles.py

Rewrites `items.parquet` and `events.parquet`, beside this file, and prints what it removes. Other
rows keep their order and their ids. A second run finds nothing to remove.
"""

from pathlib import Path

import polars as pl

ITEMS = Path(__file__).with_name("items.parquet")
EVENTS = Path(__file__).with_name("events.parquet")

NON_ARTICLES = {
    "sku-0009": "POSTAGE",
    "sku-0077": "Manual",
    "sku-0943": "CARRIAGE",
    "sku-1389": "Discount",
    "sku-2284": "Next Day Carriage",
    "sku-3150": "Bank Charges",
    "sku-3176": "Adjustment by john on 26/01/2010 16",
    "sku-3609": "Adjustment by john on 26/01/2010 17",
    "sku-3889": "CRUK Commission",
    "sku-3892": "DOTCOM POSTAGE",
    "sku-3911": "PACKING CHARGE",
    "sku-3930": "This is a test product.",
    "sku-4797": "Adjustment by Peter on 24/05/2010 1",
    "sku-4798": "Adjustment by Peter on Jun 25 2010",
    "sku-4850": "High Resolution Image",
}
"""Titles by item id: the lines of invoices that charge for a service or correct an account.

Goods with similar words stay, such as PIGGY BANK RETROSPOT, FRENCH CARRIAGE LANTERN, ZINC HEART
LATTICE CHARGER LARGE, BANK ACCOUNT GREETING CARD and PADS TO MATCH ALL CUSHIONS.
"""


def remove_non_articles() -> pl.DataFrame:
    """Rewrite both files without the rows of `NON_ARTICLES`.

    Returns:
        The removed items with their number of events, most events first.
    """
    items, events = pl.read_parquet(ITEMS), pl.read_parquet(EVENTS)
    is_removed = pl.col("item_id").is_in(list(NON_ARTICLES))
    counts = events.filter(is_removed).group_by("item_id").len("events")
    removed = items.filter(is_removed).join(counts, on="item_id", how="left")
    if not removed.is_empty():
        for file, table in ((ITEMS, items), (EVENTS, events)):
            table.filter(~is_removed).write_parquet(file, compression="zstd", compression_level=19)
    return removed.select("item_id", "title", "events").sort("events", descending=True)


if __name__ == "__main__":
    for item_id, title, count in remove_non_articles().iter_rows():
        print(f"{item_id}  {count:>5,}  {title}")
