"""TIFU-KNN by its formulas, one user, basket and item at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.encoders.tifu_knn import TIFUKNNConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, fit_counts, ranking, scores
from tests.model.encoders.basket_scores import (
    MOST_ROWS,
    Baskets,
    assert_ranks_as,
    assert_scores_as_golden,
    count_popularity,
    draw_baskets,
    draw_users,
    fit,
    order_as_stored,
    read_goldens,
    score,
)


class TestTIFUKNN(CountingEncoderContract):
    config = TIFUKNNConfig(neighbours=2)

    def test_items_of_near_users_follow_the_own_ones(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 1, 2)[:3] == [2, 1, 3]

    def test_a_recent_basket_counts_more(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 4, 1)[0] == 1
        assert ranking(encoder, 1, 4)[0] == 4


class TestTIFUKNNAsCoded(CountingEncoderContract):
    config = TIFUKNNConfig(form="code", neighbours=2)


class TestTIFUKNNAlone(CountingEncoderContract):
    config = TIFUKNNConfig(own_share=1)


def test_without_a_share_of_others_none_is_stored() -> None:
    encoder = TIFUKNNConfig(own_share=1).build(items=20)
    fit_counts(encoder)
    assert encoder.state_dict()["users.values"].numel() == 0


def test_another_encoder_loads_what_one_has_counted() -> None:
    users: list[Baskets] = [[[1, 2], [3]], [[2], [4, 5], [1]], [[6]]]
    config = TIFUKNNConfig(neighbours=2)
    counted = fit(config, users)
    for loading in (config.build(items=20), fit(config, users[:1])):
        loading.load_state_dict(counted.state_dict())
        assert (score(loading.eval(), [[2], [6]]) == score(counted, [[2], [6]])).all()


def test_items_of_nobody_near_follow_by_popularity() -> None:
    encoder = TIFUKNNConfig(neighbours=1).build(items=20).eval()
    assert ranking(encoder, 3)[:4] == [3, 2, 1, 4]  # The nearest user has 1, 2 and 3.
    assert scores(encoder, 3)[4] < -60


@pytest.mark.parametrize("form", ["paper", "code"])
@given(users=draw_users(), baskets=draw_baskets(), settings=st.data())
def test_it_ranks_by_its_formulas(
    form: str, users: list[Baskets], baskets: Baskets, settings: st.DataObject
) -> None:
    share, groups = (
        settings.draw(st.sampled_from([0, 0.2, 0.7, 1])),
        settings.draw(st.integers(1, 5)),
    )
    decays = settings.draw(st.sampled_from([(0.9, 0.7), (1.0, 1.0), (0.5, 1.0)]))
    config = TIFUKNNConfig(
        form=form,
        neighbours=settings.draw(st.integers(1, 9)),
        basket_decay=decays[0],
        group_decay=decays[1],
        groups=groups,
        own_share=share,
    )
    encoder = fit(config, users, items=MOST_ROWS)
    expected = score_by_formula(config, order_as_stored(users), baskets)
    assert_ranks_as(score(encoder, baskets), expected, count_popularity(users, MOST_ROWS + 1))


@pytest.mark.parametrize("number", range(3))
def test_it_scores_as_cornac(number: int) -> None:
    golden = read_goldens()["tifu_knn"][number]
    assert_scores_as_golden(TIFUKNNConfig(form="code", **golden["settings"]), golden["scores"])


def score_by_formula(
    config: TIFUKNNConfig, users: list[Baskets], baskets: Baskets
) -> NDArray[np.float64]:
    own = compute_vector(config, baskets)
    vectors = [compute_vector(config, one) for one in users]
    # Of equal distances the first users, as `sorted` is stable.
    distances = [float(np.square(vector - own).sum().round(12)) for vector in vectors]
    nearest = sorted(range(len(users)), key=distances.__getitem__)[: config.neighbours]
    mean = np.mean([vectors[user] for user in nearest], axis=0)
    return config.own_share * own + (1 - config.own_share) * mean


def compute_vector(config: TIFUKNNConfig, baskets: Baskets) -> NDArray[np.float64]:
    groups = divide(baskets, config.groups)
    vector = np.zeros(MOST_ROWS + 1)
    passed = 0
    for number, group in enumerate(groups):
        for place, basket in enumerate(group):
            later = len(group) - 1 - place
            later_groups = len(groups) - 1 - number
            if config.form == "code":
                later = len(baskets) - 1 - passed
                later_groups = config.groups - 1 - number
            weight = config.basket_decay**later * config.group_decay**later_groups
            vector[sorted(set(basket))] += weight / len(group) / len(groups)
            passed += 1
    return vector


def divide(baskets: Baskets, groups: int) -> list[Baskets]:
    """Divide baskets into groups of equal size, the last ones with one more where needed."""
    if len(baskets) <= groups:
        return [[basket] for basket in baskets]
    size, larger = divmod(len(baskets), groups)
    sizes = [size] * (groups - larger) + [size + 1] * larger
    left = iter(baskets)
    return [[next(left) for _ in range(size)] for size in sizes]
