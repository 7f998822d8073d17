"""Initial item vectors from pairs of items."""

import numpy as np
import torch

from training.data.event_counts import PairCounts
from training.fitting.item_vectors import initialise_item_vectors


def pair_within_groups(groups: int, size: int, *, rows: int, weight: float = 3.0) -> PairCounts:
    """Pair the items of each group with each other, as if users stayed within one."""
    items, followers = [], []
    for group in range(groups):
        members = range(1 + group * size, 1 + (group + 1) * size)
        for item in members:
            for follower in members:
                items.append(item)
                followers.append(follower)
    weights = np.full((1, len(items)), weight)
    return PairCounts(np.array(items), np.array(followers), weights, rows)


def initialise(pairs: PairCounts, dim: int = 16, seed: int = 0) -> torch.Tensor:
    torch.manual_seed(3)
    vectors = torch.randn(pairs.rows, dim) * dim**-0.5
    vectors[0] = 0.0
    initialise_item_vectors(vectors, pairs, seed=seed)
    return vectors


def test_items_chosen_together_start_close() -> None:
    vectors = initialise(pair_within_groups(4, 5, rows=21))[1:]
    cosines = torch.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    group = torch.arange(20) // 5
    within = cosines[group[:, None] == group]
    assert within.min() > cosines[group[:, None] != group].max() + 0.3


def test_items_without_pairs_keep_their_random_vectors() -> None:
    torch.manual_seed(3)
    expected = torch.randn(25, 16) * 16**-0.5
    assert torch.equal(initialise(pair_within_groups(4, 5, rows=25))[21:], expected[21:])


def test_pairs_met_once_are_left_out() -> None:
    torch.manual_seed(3)
    expected = torch.randn(21, 16) * 16**-0.5
    found = initialise(pair_within_groups(4, 5, rows=21, weight=1.0))
    assert torch.equal(found[1:], expected[1:])


def test_padding_stays_zero() -> None:
    assert not initialise(pair_within_groups(4, 5, rows=21))[0].any()


def test_no_pairs_change_nothing() -> None:
    empty = PairCounts(np.zeros(0, int), np.zeros(0, int), np.zeros((1, 0)), 8)
    torch.manual_seed(3)
    expected = torch.randn(8, 16) * 16**-0.5
    assert torch.equal(initialise(empty)[1:], expected[1:])


def test_fewer_items_than_dimensions_are_enough() -> None:
    vectors = initialise(pair_within_groups(2, 2, rows=5), dim=64)
    assert torch.isfinite(vectors).all()


def test_equal_seeds_give_equal_vectors() -> None:
    pairs = pair_within_groups(4, 5, rows=21)
    assert torch.equal(initialise(pairs), initialise(pairs))
