"""Whether the parts of a bundle belong together; finding out also warms everything up."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from model.errors import BundleError
from model.history import Event, Query
from model.inference.answers import Constraints

if TYPE_CHECKING:
    from model.inference.predictor import Predictor

_COMPARED = 1_000


def require_sound(bundle: "Predictor") -> None:
    """Compare the parts of a bundle, and ask it once.

    Raises:
        BundleError: saying which parts do not fit.
    """
    vectors = bundle.recommender.index_vectors().numpy()[1:]
    catalog, index, version = bundle.catalog, bundle.index, bundle.version
    sizes = {len(catalog), len(index), len(vectors), bundle.manifest.counts.items}
    if len(sizes) != 1:
        raise BundleError(
            "catalogue, index, item table and manifest must agree on how many items there are, "
            f"but {version} says {sorted(sizes)}; publish again"
        )
    if not all(torch.isfinite(tensor).all() for tensor in bundle.recommender.parameters()):
        raise BundleError(
            f"weights must be finite, but {version} holds NaN or infinity; train again"
        )
    rows = np.arange(1, min(len(catalog), _COMPARED) + 1)
    if index.width != vectors.shape[1] or not np.array_equal(
        index.vectors(rows), vectors[rows - 1]
    ):
        raise BundleError(
            f"an index must hold the item table's vectors, but that of {version} does not; "
            "publish again"
        )
    at = bundle.manifest.data_window.last_at
    probe = Query((Event(catalog.item_id(1), at),), at)
    answer = bundle.answer(probe, Constraints(n=1, exclude_seen=False), explain=True)
    if not np.isfinite(answer.items[0].score):
        raise BundleError(f"scores must be finite, but {version} gives {answer.items[0]}")
