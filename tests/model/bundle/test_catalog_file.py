from pathlib import Path

import numpy as np
import polars as pl
import pytest

from model.bundle.catalog_file import read_catalog, write_catalog
from model.catalog import Catalog
from model.errors import BundleError
from tests import tiny


@pytest.mark.parametrize(
    "catalog", [tiny.catalog(), Catalog.from_ids(["é", "", "a\nb"]), Catalog.from_ids([])]
)
def test_a_catalog_survives_a_round_trip_through_its_file(catalog: Catalog, tmp_path: Path) -> None:
    write_catalog(catalog, tmp_path / "catalog.parquet")
    again = read_catalog((tmp_path / "catalog.parquet").read_bytes())
    assert again.item_ids == catalog.item_ids
    assert again.titles == catalog.titles
    assert again.categories == catalog.categories
    assert np.array_equal(again.popularity, catalog.popularity)
    assert np.array_equal(again.recent_popularity, catalog.recent_popularity)


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"colour": ["red"]}).write_parquet(tmp_path / "catalog.parquet")
    with pytest.raises(BundleError, match=r"catalog\.parquet does not"):
        read_catalog((tmp_path / "catalog.parquet").read_bytes())


def test_a_file_with_repeated_items_is_refused(tmp_path: Path) -> None:
    write_catalog(Catalog.from_ids(["a", "b"]), tmp_path / "catalog.parquet")
    table = pl.read_parquet(tmp_path / "catalog.parquet")
    pl.concat([table, table]).write_parquet(tmp_path / "catalog.parquet")
    with pytest.raises(BundleError, match="must be distinct"):
        read_catalog((tmp_path / "catalog.parquet").read_bytes())


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(BundleError, match=r"catalog\.parquet does not"):
        read_catalog(b"")
