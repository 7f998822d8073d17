"""Item vectors to start from, by pairs of items."""

import numpy as np
import torch

from training.data.event_counts import PairCounts
from training.fitting.item_vectors import fold_in_item_vectors, initialise_item_vectors


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


def test_a_new_item_is_placed_among_those_it_is_paired_with() -> None:
    pairs = pair_within_groups(4, 5, rows=25)
    torch.manual_seed(3)
    groups = torch.nn.functional.normalize(torch.randn(4, 16), dim=1)
    learned = torch.cat(
        (torch.zeros(1, 16), 0.7 * groups.repeat_interleave(5, 0), torch.ones(4, 16))
    )
    vectors = learned.clone()
    is_new = np.zeros(25, dtype=np.bool_)
    is_new[[1, 20, 22]] = True
    vectors[1] = vectors[20] = -1.0
    fold_in_item_vectors(vectors, pairs, is_new)
    torch.testing.assert_close(vectors, learned)


def test_no_new_items_and_no_pairs_change_nothing() -> None:
    vectors = torch.randn(8, 16)
    empty = PairCounts(np.zeros(0, int), np.zeros(0, int), np.zeros((1, 0)), 8)
    kept = vectors.clone()
    fold_in_item_vectors(vectors, empty, np.arange(8) > 4)
    fold_in_item_vectors(vectors, pair_within_groups(1, 7, rows=8), np.zeros(8, dtype=np.bool_))
    assert torch.equal(vectors, kept)
