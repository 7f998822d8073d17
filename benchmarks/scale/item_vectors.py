"""Catalogs of any size that resemble that of a trained model.

An item lies between an item of the model and one of its ten nearest neighbours, or beyond it, with
noise of half their distance: a smoothed bootstrap, in the space where a distance is the mean
difference of two items' scores over the model's users. So clusters, norms and scales of coordinates
are those of the model.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.evaluation.sampling import sample_users

NEIGHBOURS = 10
BATCH = 100_000


def main() -> None:
    """Save the item and user vectors of a bundle, as `draw_items` needs them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--events", type=Path, required=True, help="what it was trained on")
    parser.add_argument("--output", type=Path, required=True, help="an .npz file")
    arguments = parser.parse_args()
    bundle = open_predictor(arguments.bundle).bundle
    data = RunConfig.model_validate(bundle.manifest.provenance["recipe"]).data
    dataset = Dataset.of(
        read_events(arguments.events),
        min_item_events=data.min_item_events,
        min_user_events=data.min_user_events,
        ignored_actions=data.ignored_actions,
    )
    if list(dataset.catalog.item_ids) != list(bundle.catalog.item_ids):
        parser.error(
            "the items of the events must be those of the bundle; name what it was trained on"
        )
    users = sample_users(
        bundle.recommender, dataset, max_history=bundle.manifest.max_history, histories=3_000
    )
    items = bundle.recommender.index_vectors().numpy()[1:]
    np.savez(arguments.output, items=items, users=users)


def draw_items(
    items: NDArray[np.float32], users: NDArray[np.float32], n: int, seed: int = 0
) -> Iterator[NDArray[np.float32]]:
    """Draw `n` vectors that resemble those of a model, in batches.

    Args:
        items: of the model.
        users: vectors that items are searched with.
    """
    exact = users.astype(np.float64)
    moments, directions = np.linalg.eigh(exact.T @ exact / len(exact))
    moments = np.maximum(moments, 1e-4 * moments[-1])
    scaled = (items @ (directions * np.sqrt(moments))).astype(np.float32)
    index = faiss.IndexFlatL2(scaled.shape[1])
    index.add(scaled)
    neighbours = index.search(scaled, NEIGHBOURS + 1)[1][:, 1:]
    back = (directions / np.sqrt(moments)).T
    rng = np.random.default_rng(seed)
    for first in range(0, n, BATCH):
        count = min(BATCH, n - first)
        drawn = rng.integers(0, len(items), count)
        apart = scaled[neighbours[drawn, rng.integers(0, NEIGHBOURS, count)]] - scaled[drawn]
        noise = rng.normal(size=apart.shape) * np.linalg.norm(apart, axis=1, keepdims=True)
        moved = rng.uniform(-0.5, 1, (count, 1)) * apart + noise / (2 * np.sqrt(apart.shape[1]))
        yield ((scaled[drawn] + moved) @ back).astype(np.float32)


if __name__ == "__main__":
    main()
