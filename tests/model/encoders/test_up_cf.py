"""UP-CF@r by its formulas, one user, basket and item at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.encoders.up_cf import UPCFConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, ranking
from tests.model.encoders.basket_scores import (
    MOST_ROWS,
    Baskets,
    assert_ranks_as,
    assert_scores_as_golden,
    count_popularity,
    draw_baskets,
    draw_users,
    fit,
    number_from_one,
    order_as_stored,
    read_goldens,
    score,
)


class TestUPCF(CountingEncoderContract):
    config = UPCFConfig()

    def test_items_of_similar_users_follow_the_own_ones(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 2, 1)[:4] == [1, 2, 3, 4]


class TestUPAlone(CountingEncoderContract):
    config = UPCFConfig(neighbours=0, recency=2)

    def test_only_the_last_baskets_count(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 5, 5, 5, 6, 7)[:3] == [6, 7, 1]

    def test_equal_shares_are_ordered_by_popularity(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 3, 4)[:4] == [4, 3, 1, 2]
        assert ranking(encoder, 1, 3)[:4] == [1, 3, 2, 4]

    def test_nothing_of_other_users_is_stored(self, encoder: SequenceEncoder) -> None:
        assert encoder.state_dict()["users.values"].numel() == 0


def test_only_the_most_similar_users_count() -> None:
    encoder = UPCFConfig(neighbours=1).build(items=20).eval()
    # Of the users {1, 2}, {1, 2, 3} and {4}, the first is the most similar one.
    assert ranking(encoder, 1, 2)[:4] == [1, 2, 4, 3]


@given(
    users=draw_users(),
    baskets=draw_baskets(),
    recency=st.sampled_from([0, 1, 2, 5]),
    neighbours=st.sampled_from([None, 0, 1, 3]),
    locality=st.sampled_from([1.0, 5.0, 10.0]),
    asymmetry=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)
def test_it_ranks_by_its_formulas(
    users: list[Baskets],
    baskets: Baskets,
    recency: int,
    neighbours: int | None,
    locality: float,
    asymmetry: float,
) -> None:
    config = UPCFConfig(
        recency=recency, neighbours=neighbours, locality=locality, asymmetry=asymmetry
    )
    encoder = fit(config, users, items=MOST_ROWS)
    expected = score_by_formula(config, order_as_stored(users), baskets)
    assert_ranks_as(score(encoder, baskets), expected, count_popularity(users, MOST_ROWS + 1))


@pytest.mark.parametrize("number", range(3))
def test_it_scores_as_cornac(number: int) -> None:
    golden = read_goldens()["up_cf"][number]
    assert_scores_as_golden(UPCFConfig(**golden["settings"]), golden["scores"])


def test_shares_of_all_baskets_rank_as_gp_top_of_cornac() -> None:
    """GPTop adds an item's baskets in the history and its events per event of the most popular."""
    goldens = read_goldens()
    config = UPCFConfig(recency=0, neighbours=0)
    encoder = fit(config, number_from_one(goldens["stored"]), items=goldens["items"])
    queries = number_from_one(goldens["queries"])
    for baskets, scores in zip(queries, goldens["gp_top"], strict=True):
        # The share of the most popular item is one, as that of another basket.
        expected = np.where(np.mod(scores, 1) == 0, np.nan, scores)
        found = score(encoder, baskets)[1:]
        own = np.flatnonzero(expected >= 1)
        baskets_of = np.floor(expected[own])
        np.testing.assert_allclose(found[own] * len(baskets), baskets_of, rtol=5e-4)
        assert (np.diff(found[own][np.argsort(expected[own])]) >= 0).all()


def score_by_formula(
    config: UPCFConfig, users: list[Baskets], baskets: Baskets
) -> NDArray[np.float64]:
    own = list_items(baskets)
    similarities = []
    for user in users:
        theirs = list_items(user)
        size = len(own) ** config.asymmetry * len(theirs) ** (1 - config.asymmetry)
        similarities.append(len(own & theirs) / size)
    # Of equal similarities the first users, as `sorted` is stable.
    most = len(users) if config.neighbours is None else config.neighbours
    chosen = sorted(range(len(users)), key=lambda user: -round(similarities[user], 12))[:most]
    scores = compute_popularity(config, baskets)
    for user in chosen:
        scores += similarities[user] ** config.locality * compute_popularity(config, users[user])
    return scores


def list_items(baskets: Baskets) -> set[int]:
    return {row for basket in baskets for row in basket}


def compute_popularity(config: UPCFConfig, baskets: Baskets) -> NDArray[np.float64]:
    last = baskets[-config.recency :]  # All of them for 0.
    return np.array(
        [sum(row in basket for basket in last) / len(last) for row in range(MOST_ROWS + 1)]
    )
