"""The catalog as a Parquet file."""

from io import BytesIO
from pathlib import Path

import polars as pl

from model.catalog import Catalog
from model.errors import BundleError


def write_catalog(catalog: Catalog, file: Path) -> None:
    """Write one line per item; line number = catalog row, counting from 1."""
    pl.DataFrame(
        {
            "item_id": catalog.item_ids,
            "title": catalog.titles,
            "categories": [list(names) for names in catalog.categories],
            "popularity": catalog.popularity,
            "recent_popularity": catalog.recent_popularity,
        },
        schema={
            "item_id": pl.String,
            "title": pl.String,
            "categories": pl.List(pl.String),
            "popularity": pl.Int64,
            "recent_popularity": pl.Int64,
        },
    ).write_parquet(file)


def read_catalog(content: bytes) -> Catalog:
    """Read a catalog from a file written by `write_catalog`.

    Raises:
        BundleError: if the file does not hold a catalog.
    """
    try:
        table = pl.read_parquet(BytesIO(content))
        return Catalog(
            item_ids=tuple(table["item_id"].to_list()),
            titles=tuple(table["title"].to_list()),
            categories=_read_categories(table["categories"]),
            popularity=table["popularity"].to_numpy(),
            recent_popularity=table["recent_popularity"].to_numpy(),
        )
    except (pl.exceptions.PolarsError, ValueError, OSError) as error:
        raise BundleError(
            "a catalog file must hold distinct items with titles and counts, but "
            f"catalog.parquet does not ({error}); publish again"
        ) from error


def _read_categories(lists: pl.Series) -> tuple[tuple[str, ...], ...]:
    """Convert a column of lists at once: `to_list` makes a series of each of its lines."""
    # An empty list would become a null.
    flat = lists.filter(lists.list.len() > 0).explode().to_list()
    ends = lists.list.len().cum_sum().to_list()
    return tuple(tuple(flat[start:end]) for start, end in zip([0, *ends], ends, strict=False))
