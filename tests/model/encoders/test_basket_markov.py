"""The Markov chain of baskets by its formula, one basket and item at a time."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from numpy.typing import NDArray

from model.encoders.basket_markov import BasketMarkovConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, ranking
from tests.model.encoders.basket_scores import (
    MOST_ROWS,
    Baskets,
    assert_ranks_as,
    count_popularity,
    draw_baskets,
    draw_users,
    fit,
    score,
)


class TestBasketMarkov(CountingEncoderContract):
    config = BasketMarkovConfig()

    def test_followers_come_first_then_popular_items(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 1)[:4] == [2, 1, 4, 3]
        assert ranking(encoder, 2)[:4] == [1, 3, 2, 4]

    def test_only_the_last_basket_matters(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 4, 3, 4, 1) == ranking(encoder, 1)

    def test_baskets_of_different_users_are_not_paired(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 3)[:4] == [1, 2, 4, 3]


def test_a_follower_of_many_items_of_the_basket_is_first() -> None:
    users = [[[1, 2], [3]], [[1], [4]], [[2], [5]], [[2], [5]]]
    encoder = fit(BasketMarkovConfig(), users, items=5)
    # 3 follows 1 in half and 2 in a third of their baskets; 5 follows 2 in two thirds.
    found = score(encoder, [[4], [1, 2]])
    np.testing.assert_allclose(found[3:], [5 / 12, 1 / 4, 1 / 3], rtol=1e-3)


@given(users=draw_users(), baskets=draw_baskets(most=3))
def test_it_ranks_by_its_formula(users: list[Baskets], baskets: Baskets) -> None:
    encoder = fit(BasketMarkovConfig(), users, items=MOST_ROWS)
    expected = score_by_formula(users, baskets)
    assert_ranks_as(score(encoder, baskets), expected, count_popularity(users, MOST_ROWS + 1))


def score_by_formula(users: list[Baskets], baskets: Baskets) -> NDArray[np.float64]:
    pairs = [(set(before), set(after)) for user in users for before, after in pairwise(user)]
    scores = np.zeros(MOST_ROWS + 1)
    last = set(baskets[-1])
    for held in last:
        followed = [after for before, after in pairs if held in before]
        for after in followed:
            scores[sorted(after)] += 1 / len(followed) / len(last)
    return scores
