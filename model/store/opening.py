"""Opening a bundle for inference: read, check and warm up."""

from pathlib import Path

import numpy as np

from model.bundle.bundle import Bundle
from model.bundle.reading import read_bundle, require_consistent
from model.bundle.signature import NO_KEYS, BundleKeys
from model.errors import BundleError
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor


def open_predictor(directory: Path, keys: BundleKeys = NO_KEYS) -> Predictor:
    """Read a bundle, check it and answer one query with it.

    Args:
        keys: with which it must be signed; without any, signatures are not verified.

    Raises:
        BundleError: if it is not signed, a file is damaged or the parts do not fit; nothing is then
            left open.
    """
    return warm_up(read_bundle(directory, keys))


def warm_up(bundle: Bundle) -> Predictor:
    """Check a bundle that is in memory, and answer one query with it.

    Raises:
        BundleError: if its parts do not fit, or its scores are not finite.
    """
    require_consistent(bundle)
    predictor = Predictor(bundle)
    last_at = bundle.manifest.data_window.last_at
    query = Query((Event(bundle.catalog.item_id(1), last_at),), last_at)
    constraints = Constraints(n=1, exclude_seen=False)
    try:
        (best,) = predictor.recommend(query, constraints, explain=True).items
    except FloatingPointError as error:
        raise BundleError(f"{bundle.version} cannot score: {error}") from error
    if not np.isfinite(best.score):
        raise BundleError(
            f"scores must be finite, but {bundle.version} scores {best.item_id!r} {best.score}; "
            "train again"
        )
    return predictor
