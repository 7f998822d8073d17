from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.bundle.index import ItemIndex, are_among
from model.errors import BundleError

VECTORS = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
SIMILARITIES = ("dot", "l2")
Similarity = Literal["dot", "l2"]


def slow_scores(user: NDArray[np.float32], similarity: Similarity) -> NDArray[np.float64]:
    pairs = zip(VECTORS.astype(float), [user.astype(float)] * len(VECTORS), strict=True)
    if similarity == "dot":
        return np.array([sum(a * b) for a, b in pairs])
    return np.array([-sum((a - b) ** 2) for a, b in pairs])


@pytest.mark.parametrize("similarity", SIMILARITIES)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(0, 50),
    exclude=st.frozensets(st.integers(1, 40)),
)
def test_search_equals_brute_force(
    similarity: Similarity, seed: int, n: int, exclude: frozenset[int]
) -> None:
    user = np.random.default_rng(seed).normal(size=5).astype(np.float32)
    expected = slow_scores(user, similarity)
    best = [row for row in np.argsort(-expected) + 1 if row not in exclude][:n]
    rows, scores = ItemIndex.build(VECTORS, similarity).search(user, n, exclude=exclude)
    assert rows.tolist() == best
    assert scores.tolist() == pytest.approx(expected[rows - 1].tolist(), abs=1e-4)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99, 1.0])
def test_search_returns_the_best_of_the_allowed_rows(similarity: Similarity, share: float) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(9_000, 4)).astype(np.float32)
    index = ItemIndex.build(vectors, similarity)
    allowed = np.concatenate(([True], rng.random(9_000) < share))
    user = rng.normal(size=4).astype(np.float32)
    every_row, every_score = index.search(user, 9_000)
    excluded = set(every_row[:3].tolist())
    permitted = allowed[every_row] & ~np.isin(every_row, list(excluded))
    rows, scores = index.search(user, 50, exclude=excluded, allowed=allowed)
    assert rows.tolist() == every_row[permitted][:50].tolist()
    assert scores.tolist() == pytest.approx(every_score[permitted][:50].tolist(), abs=1e-5)


def test_search_without_allowed_rows_returns_none() -> None:
    index = ItemIndex.build(VECTORS, "dot")
    rows, scores = index.search(VECTORS[0], 5, allowed=np.zeros(41, dtype=np.bool_))
    assert (rows.tolist(), scores.tolist()) == ([], [])


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_of_given_rows_equal_those_of_search(similarity: Similarity) -> None:
    index = ItemIndex.build(VECTORS, similarity)
    user = VECTORS[7] * 0.9
    rows, scores = index.search(user, 40)
    assert index.score(user, rows).tolist() == pytest.approx(scores.tolist(), abs=1e-5)
    assert index.score(user, np.empty(0, dtype=np.int64)).tolist() == []


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_an_index_survives_a_round_trip_through_its_file(
    similarity: Similarity, tmp_path: Path
) -> None:
    index = ItemIndex.build(VECTORS, similarity)
    index.save(tmp_path / "index")
    again = ItemIndex.load((tmp_path / "index").read_bytes())
    assert (len(again), again.width) == (40, 5)
    assert np.array_equal(again.vectors(np.arange(1, 41)), VECTORS)
    (rows, scores), (rows_again, scores_again) = (
        one.search(VECTORS[3], 9) for one in (index, again)
    )
    assert np.array_equal(rows, rows_again)
    assert np.array_equal(scores, scores_again)


def test_the_nearest_by_distance_is_the_vector_itself() -> None:
    rows, scores = ItemIndex.build(VECTORS, "l2").search(VECTORS[11], 1)
    assert rows.tolist() == [12]
    assert scores.tolist() == pytest.approx([0.0], abs=1e-5)


def test_an_unreadable_index_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "items.faiss").write_bytes(b"nothing")
    with pytest.raises(BundleError, match=r"items\.faiss is not"):
        ItemIndex.load((tmp_path / "items.faiss").read_bytes())


@given(
    rows=st.lists(st.integers(0, 30), max_size=40), others=st.lists(st.integers(0, 30), max_size=40)
)
def test_rows_are_found_among_others(rows: list[int], others: list[int]) -> None:
    found = are_among(np.array(rows, dtype=np.int64), np.array(others, dtype=np.int64))
    assert found.tolist() == [row in others for row in rows]


def test_rows_are_found_by_a_search_in_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sort, sizes = np.sort, list[int]()

    def count(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        sizes.append(rows.size)
        return sort(rows)

    monkeypatch.setattr(np, "sort", count)
    monkeypatch.delattr(np, "isin")
    assert are_among(np.arange(1_000), np.array([7, 3])).sum() == 2
    assert sizes == [2]
