"""The map of a bundle's items, as a file."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from model.bundle.bundle import Bundle
from model.bundle.item_map_file import ItemMap, read_item_map, write_item_map
from model.bundle.writing import write_bundle
from model.errors import BundleError
from model.store.opening import open_predictor
from model.store.store import BundleStore
from tests import tiny

MAP = ItemMap("tsne", np.array([2, 1]), np.array([[0.5, -1.0], [2.0, 3.25]]), None, 0.375)


def are_equal(one: ItemMap, other: ItemMap) -> bool:
    return (
        one.rows.tolist() == other.rows.tolist()
        and one.points.tolist() == other.points.tolist()
        and replace(one, rows=other.rows, points=other.points) == other
    )


@pytest.mark.parametrize("kept", [0.375, None])
def test_a_map_survives_a_round_trip(tmp_path: Path, kept: float | None) -> None:
    written = replace(MAP, neighbours_kept=kept)
    write_item_map(written, tmp_path / "map")
    assert are_equal(read_item_map((tmp_path / "map").read_bytes(), items=2), written)


@pytest.mark.parametrize(
    "broken",
    [
        {"rows": np.array([1, 3])},
        {"rows": np.array([0, 1])},
        {"rows": np.array([1, 1])},
        {"rows": np.array([1])},
        {"points": np.array([[0.0, np.nan], [0.0, 0.0]])},
    ],
)
def test_a_map_that_does_not_fit_is_refused(tmp_path: Path, broken: dict[str, np.ndarray]) -> None:
    write_item_map(replace(MAP, **broken), tmp_path / "map")  # type: ignore[arg-type]
    with pytest.raises(BundleError, match=r"item_map\.safetensors does not"):
        read_item_map((tmp_path / "map").read_bytes(), items=2)


def test_a_file_of_something_else_is_refused() -> None:
    with pytest.raises(BundleError, match="does not"):
        read_item_map(b"{}", items=2)
    with pytest.raises(BundleError, match="rows"):
        read_item_map(safetensors.numpy.save({"x": np.zeros(1)}), items=2)


def test_a_bundle_holds_its_map(tmp_path: Path) -> None:
    without = open_predictor(tiny.write_bundle(tmp_path)).bundle
    assert without.item_map is None
    store = BundleStore(tmp_path / "store")
    bundle: Bundle = replace(without, item_map=MAP)
    opened = store.open(store.publish(partial(write_bundle, bundle)))
    assert opened.bundle.item_map is not None
    assert are_equal(opened.bundle.item_map, MAP)
    assert opened.item_map is opened.bundle.item_map


def test_a_bundle_without_a_map_is_projected(tmp_path: Path) -> None:
    predictor = open_predictor(tiny.write_bundle(tmp_path))
    assert predictor.item_map.method == "pca"
    assert len(predictor.item_map.rows) == tiny.ITEMS
