"""Retrievers find the same rows, with or without an index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.bundle.index import ItemIndex
from model.inference.retrieval import ExhaustiveRetriever, IndexRetriever
from model.inference.selection import Selection

ITEMS = 40
RNG = np.random.default_rng(0)
VECTORS = RNG.integers(-2, 3, (ITEMS, 3)).astype(np.float32)
USER = np.array([1.0, 2.0, -1.0], dtype=np.float32)
SCORES = np.append(np.float32(99), VECTORS @ USER)

selections = st.builds(
    Selection,
    n=st.integers(1, ITEMS + 5),
    allowed=st.none()
    | st.lists(st.booleans(), min_size=ITEMS, max_size=ITEMS).map(
        lambda allowed: np.array([False, *allowed])
    ),
    excluded=st.lists(st.integers(1, ITEMS), max_size=ITEMS, unique=True).map(
        lambda rows: np.array(rows, dtype=np.int64)
    ),
)


@given(selection=selections, n=st.integers(0, ITEMS + 5))
def test_every_retriever_finds_the_best_permitted_rows(selection: Selection, n: int) -> None:
    indexed = IndexRetriever(ItemIndex.build(VECTORS, "dot"), USER).search(n, selection)
    rows, scores = ExhaustiveRetriever(SCORES).search(n, selection)
    # Rows of equal scores may differ at the end; the vectors are small integers, so many are.
    assert scores.tolist() == indexed[1].tolist()
    assert selection.permits(rows).all()
    assert len(set(rows.tolist())) == len(rows)
    assert SCORES[rows].tolist() == scores.tolist()


def test_equal_scores_keep_the_order_of_the_catalog() -> None:
    retriever = ExhaustiveRetriever(np.array([9, 1, 2, 2, 2, 1], dtype=np.float32))
    rows, _ = retriever.search(2, Selection(2, excluded=np.array([2])))
    assert rows.tolist() == [3, 4]


@pytest.mark.parametrize("rows", [[3], [1, 40]])
def test_retrievers_score_rows_alike(rows: list[int]) -> None:
    index = IndexRetriever(ItemIndex.build(VECTORS, "dot"), USER)
    assert index.score(np.array(rows)).tolist() == SCORES[rows].tolist()
    assert ExhaustiveRetriever(SCORES).score(np.array(rows)).tolist() == SCORES[rows].tolist()
