"""Maximal marginal relevance, compared with its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.inference.diversity import diversify
from model.inference.steps import complete


def by_definition(scores: list[float], vectors: np.ndarray, n: int, diversity: float) -> list[int]:
    low, high = min(scores), max(scores)
    relevance = [(score - low) / (high - low) for score in scores]
    directions = [vector / np.linalg.norm(vector) for vector in vectors]
    chosen = [0]
    while len(chosen) < n:
        marginal = {
            index: (1 - diversity) * relevance[index]
            - diversity * max(float(directions[index] @ directions[other]) for other in chosen)
            for index in range(len(scores))
            if index not in chosen
        }
        chosen.append(max(marginal, key=lambda index: marginal[index]))
    return chosen


@given(seed=st.integers(0, 1000), n=st.integers(1, 9), diversity=st.floats(0, 1))
def test_candidates_are_chosen_by_the_definition(seed: int, n: int, diversity: float) -> None:
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=9)).astype(np.float32)
    vectors = rng.normal(size=(9, 3)).astype(np.float32)
    expected = by_definition(scores.tolist(), vectors.astype(float), n, diversity)
    assert complete(diversify(scores, vectors, n, diversity)).tolist() == expected


def test_no_diversity_keeps_the_order_of_the_scores() -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)
    scores = np.arange(6, 0, -1, dtype=np.float32)
    assert complete(diversify(scores, vectors, 4, 0.0)).tolist() == [0, 1, 2, 3]


def test_full_diversity_skips_an_equal_vector() -> None:
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert complete(diversify(np.array([3, 2, 1], dtype=np.float32), vectors, 2, 1.0)).tolist() == [
        0,
        2,
    ]


@pytest.mark.parametrize("diversity", [0.0, 0.5, 1.0])
def test_equal_scores_and_zero_vectors_keep_the_order(diversity: float) -> None:
    scores, vectors = np.ones(3, dtype=np.float32), np.zeros((3, 2), dtype=np.float32)
    assert complete(diversify(scores, vectors, 9, diversity)).tolist() == [0, 1, 2]
