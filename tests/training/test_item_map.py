"""The map of a bundle's items by t-SNE."""

import numpy as np
import pytest
import torch

from model.bundle.item_map_file import ItemMap
from model.encoders.popularity import PopularityConfig
from model.inference.item_map import draw_map
from model.recommender import Recommender, RecommenderConfig
from tests import tiny
from training.item_map import LEAST_ITEMS, compute_item_map

GROUPS, MEMBERS = 12, 10


@pytest.fixture(scope="module")
def clustered() -> Recommender:
    """Twelve groups of ten items; the directions of a group are close, lengths differ."""
    recommender = RecommenderConfig(items=GROUPS * MEMBERS, encoder=tiny.ENCODER).build()
    generator = torch.Generator().manual_seed(0)
    width = recommender.items.weight.shape[1]
    centres = torch.randn(GROUPS, width, generator=generator).repeat_interleave(MEMBERS, 0)
    vectors = centres + 0.1 * torch.randn(len(centres), width, generator=generator)
    lengths = torch.linspace(0.1, 9, len(vectors))[:, None]
    with torch.no_grad():
        recommender.items.weight[1:] = vectors * lengths
    return recommender


def popularity(items: int = GROUPS * MEMBERS) -> np.ndarray:
    return np.arange(items, 0, -1, dtype=np.int64)


@pytest.fixture(scope="module")
def drawn(clustered: Recommender) -> ItemMap:
    item_map = compute_item_map(clustered, popularity(), items=10_000)
    assert item_map is not None
    return item_map


def test_near_items_stay_near_where_two_components_lose_them(
    clustered: Recommender, drawn: ItemMap
) -> None:
    groups = (drawn.rows - 1) // MEMBERS
    distances = np.linalg.norm(drawn.points[:, None] - drawn.points[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (groups[distances.argmin(1)] == groups).all()
    projected = draw_map(clustered.items.weight[1:], popularity())
    assert drawn.neighbours_kept is not None
    assert projected.neighbours_kept is not None
    assert drawn.neighbours_kept > projected.neighbours_kept + 0.1


def test_a_map_is_the_same_each_time(clustered: Recommender, drawn: ItemMap) -> None:
    again = compute_item_map(clustered, popularity(), items=10_000)
    assert again is not None
    assert again.points.tolist() == drawn.points.tolist()


def test_a_map_holds_the_most_popular_items(clustered: Recommender) -> None:
    item_map = compute_item_map(clustered, popularity()[::-1].copy(), items=60)
    assert item_map is not None
    assert item_map.rows.tolist() == list(range(GROUPS * MEMBERS, GROUPS * MEMBERS - 60, -1))


def test_few_items_are_not_mapped(clustered: Recommender) -> None:
    assert compute_item_map(clustered, popularity(), items=LEAST_ITEMS - 1) is None


def test_a_model_without_item_vectors_is_not_mapped() -> None:
    recommender = RecommenderConfig(items=80, encoder=PopularityConfig()).build()
    assert compute_item_map(recommender, popularity(80), items=10_000) is None
