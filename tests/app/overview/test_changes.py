"""Rank-biased overlap, from its definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.overview.changes import compute_rank_biased_overlap

RANKINGS = st.lists(st.sampled_from("abcdefghij"), unique=True)


@given(RANKINGS, RANKINGS)
def test_the_overlap_is_symmetric_and_a_share(first: list[str], second: list[str]) -> None:
    overlap = compute_rank_biased_overlap(first, second)
    assert overlap == pytest.approx(compute_rank_biased_overlap(second, first))
    assert 0 <= overlap <= 1 + 1e-12
    assert (overlap > 1 - 1e-12) == (first == second)
    assert (overlap == 0) == (bool(first or second) and not {*first} & {*second})


def test_the_overlap_of_two_items_is_as_by_hand() -> None:
    # Depth 1: none in common; depth 2: both.
    assert compute_rank_biased_overlap("ab", "ba") == pytest.approx(0.9 / 1.9)


def test_a_change_at_the_top_counts_more() -> None:
    ranking = "abcdefghij"
    first = compute_rank_biased_overlap(ranking, "x" + ranking[1:])
    last = compute_rank_biased_overlap(ranking, ranking[:-1] + "x")
    assert first < last
