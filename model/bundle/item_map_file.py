"""The map of a bundle's items, computed when it is written, as a safetensors file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from model.errors import BundleError

MapMethod = Literal["tsne", "pca"]


@dataclass(frozen=True, slots=True)
class ItemMap:
    """Items as points of a plane; items with similar directions lie close together.

    Attributes:
        method: "tsne" keeps neighbours together; "pca" is a projection on principal components.
        rows: of the catalog, the most popular first.
        points: one per row: x, y.
        explained: the share of the vectors' variance along x and along y; None unless `method` is
            "pca".
        neighbours_kept: the share of an item's ten nearest neighbours, by the cosine of their
            vectors, that are among its ten nearest on the map; None for ten items or fewer.
    """

    method: MapMethod
    rows: NDArray[np.int64]
    points: NDArray[np.float64]
    explained: tuple[float, float] | None
    neighbours_kept: float | None


def write_item_map(item_map: ItemMap, file: Path) -> None:
    """Write a map of the method "tsne"."""
    kept = () if item_map.neighbours_kept is None else (item_map.neighbours_kept,)
    safetensors.numpy.save_file(
        {
            "rows": item_map.rows,
            "points": item_map.points.astype(np.float32),
            "neighbours_kept": np.array(kept),
        },
        file,
    )


def read_item_map(content: bytes, *, items: int) -> ItemMap:
    """Read a map from a file written by `write_item_map`.

    Args:
        items: of the bundle's catalog.

    Raises:
        BundleError: if the file does not hold a map of items of the catalog.
    """
    try:
        held = safetensors.numpy.load(content)
        rows, points, kept = held["rows"], held["points"], held["neighbours_kept"]
    except (SafetensorError, KeyError) as error:
        raise _build_error(str(error)) from error
    if points.shape != (len(rows), 2) or not np.isfinite(points).all():
        raise _build_error("a row has no finite point")
    if len(np.unique(rows)) != len(rows) or not ((rows > 0) & (rows <= items)).all():
        raise _build_error("a row is not of the catalog, or occurs twice")
    return ItemMap(
        method="tsne",
        rows=rows.astype(np.int64),
        points=points.astype(np.float64),
        explained=None,
        neighbours_kept=float(kept[0]) if len(kept) else None,
    )


def _build_error(why: str) -> BundleError:
    return BundleError(
        "a map must hold a point for each of its items, but item_map.safetensors does not "
        f"({why}); publish again"
    )
