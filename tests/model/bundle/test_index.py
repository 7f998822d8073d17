import math
from pathlib import Path
from typing import Literal

import faiss
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.bundle.index import ItemIndex, are_among
from model.bundle.inverted_file import InvertedFile
from model.errors import BundleError
from tests.item_vectors import draw_world

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


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_that_are_no_numbers_lose_no_rows(similarity: Similarity) -> None:
    vectors = VECTORS.copy()
    vectors[3] = math.nan
    index = ItemIndex.build(vectors, similarity)
    everything = np.ones(41, dtype=np.bool_)
    for n in (1, 5, 40):
        rows, _ = index.search(VECTORS[0], n, allowed=everything)
        assert len(set(rows.tolist())) == n
        assert (4 in rows.tolist()) == (n == 40)
    rows, _ = index.search(np.full_like(VECTORS[0], math.nan), 10, allowed=everything)
    assert len(rows) == 10


def test_rows_are_ranked_as_if_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.repeat(np.arange(20.0), 2).astype(np.float32)[:, None]  # each score twice
    ranked = []
    for rows_at_a_time in (3, 100):
        monkeypatch.setattr("model.bundle.index._RANKED", rows_at_a_time)
        rows, _ = ItemIndex.build(vectors, "dot").search(
            np.ones(1, dtype=np.float32), 7, allowed=np.ones(41, dtype=np.bool_)
        )
        ranked.append(rows.tolist())
    assert ranked[0] == ranked[1] == [39, 40, 37, 38, 35, 36, 33]


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


def read(file: Path) -> NDArray[np.uint8]:
    return np.frombuffer(file.read_bytes(), dtype=np.uint8)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_an_index_survives_a_round_trip_through_its_file(
    similarity: Similarity, tmp_path: Path
) -> None:
    index = ItemIndex.build(VECTORS, similarity)
    index.save(tmp_path / "index")
    again = ItemIndex.load(read(tmp_path / "index"))
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
    with pytest.raises(BundleError, match="must be readable by FAISS"):
        ItemIndex.load(read(tmp_path / "items.faiss"))


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


def recall(
    index: ItemIndex,
    exact: ItemIndex,
    users: NDArray[np.float32],
    allowed: NDArray[np.bool_] | None = None,
) -> float:
    shares = []
    for user in users:
        best, _ = exact.search(user, 100, allowed=allowed)
        rows, scores = index.search(user, 100, allowed=allowed)
        assert allowed is None or allowed[rows].all()
        assert scores == pytest.approx(exact.score(user, rows), rel=1e-5)
        shares.append(np.isin(best, rows).mean())
    return float(np.mean(shares))


@pytest.fixture(scope="module", params=SIMILARITIES)
def exact(request: pytest.FixtureRequest) -> ItemIndex:
    return ItemIndex.build(draw_world(20_000)[0], request.param)


@pytest.fixture(scope="module")
def inverted(exact: ItemIndex) -> ItemIndex:
    return exact.with_inverted_file(draw_world(20_000)[1][:200]).with_probes(64)


USERS = draw_world(20_000)[1][200:260]


def test_candidates_hold_the_best_items(exact: ItemIndex, inverted: ItemIndex) -> None:
    assert recall(inverted, exact, USERS) > 0.99
    assert recall(inverted.with_probes(12), exact, USERS) < 0.99


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3, 0.7, 0.99])
def test_candidates_hold_the_best_of_the_allowed_items(
    exact: ItemIndex, inverted: ItemIndex, share: float
) -> None:
    allowed = np.random.default_rng(3).random(20_001) < share
    allowed[0] = False
    assert recall(inverted, exact, USERS, allowed) > 0.99


def test_few_items_that_are_not_allowed_are_left_out(
    exact: ItemIndex, inverted: ItemIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = np.ones(len(exact) + 1, dtype=np.bool_)
    allowed[0] = False
    for user in USERS[:10]:
        allowed[exact.search(user, 3)[0]] = False
    # Nothing is asked whether it is allowed but candidates and a sample.
    monkeypatch.setattr(InvertedFile, "_choose_lists", None)
    assert recall(inverted, exact, USERS, allowed) > 0.99
    best = exact.search(USERS[0], 100, allowed=allowed)[0]
    rows, _ = inverted.search(USERS[0], 90, allowed=allowed, exclude=best[:10])
    assert np.isin(best[10:], rows).mean() > 0.95
    assert not np.isin(best[:10], rows).any()


def test_a_filter_may_leave_what_no_user_likes(exact: ItemIndex, inverted: ItemIndex) -> None:
    scores = np.mean([exact.score(user, np.arange(1, 20_001)) for user in USERS], axis=0)
    allowed = np.zeros(20_001, dtype=np.bool_)
    allowed[np.argsort(scores)[:8_000] + 1] = True
    assert recall(inverted, exact, USERS, allowed) > 0.99


def test_excluded_rows_are_no_candidates(exact: ItemIndex, inverted: ItemIndex) -> None:
    user = USERS[0]
    best, _ = exact.search(user, 300)
    rows, _ = inverted.search(user, 20, exclude=best[:200])
    assert not set(rows) & set(best[:200].tolist())
    assert np.isin(best[200:220], rows).mean() > 0.9


def test_all_rows_can_be_found(exact: ItemIndex, inverted: ItemIndex) -> None:
    rows, _ = inverted.search(USERS[0], 20_000)
    assert sorted(rows.tolist()) == [*range(1, 20_001)]


def test_an_inverted_file_survives_a_round_trip(inverted: ItemIndex, tmp_path: Path) -> None:
    assert inverted.inverted is not None
    inverted.save(tmp_path / "items")
    inverted.inverted.save(tmp_path / "lists")
    again = ItemIndex.load(read(tmp_path / "items"), read(tmp_path / "lists"))
    assert again.inverted is not None
    assert again.inverted.probes == 64
    for index in (again, again.replace_vectors(again.vectors(np.arange(1, 20_001)))):
        for user in USERS[:5]:
            (rows, scores), (others, other_scores) = (
                index.search(user, 50),
                inverted.search(user, 50),
            )
            assert np.array_equal(rows, others)
            assert np.array_equal(scores, other_scores)


def test_newer_vectors_keep_the_lists() -> None:
    vectors, users = draw_world(20_000)
    inverted = ItemIndex.build(vectors, "dot").with_inverted_file(users[:200]).with_probes(64)
    rng = np.random.default_rng(4)
    vectors[:, -3:] += rng.normal(scale=0.3, size=(20_000, 3)) - 0.5
    vectors[rng.integers(0, 20_000, 50), -3:] += 5
    newer = ItemIndex.build(vectors, "dot")
    assert recall(inverted.replace_vectors(vectors), newer, USERS) > 0.99


def test_items_that_become_popular_are_found() -> None:
    vectors, users = draw_world(20_000)
    inverted = ItemIndex.build(vectors, "dot").with_inverted_file(users[:200]).with_probes(32)
    rng = np.random.default_rng(5)
    hot = rng.permutation(20_000)[:100]
    # One refresh after another, each of the index of the one before.
    for log_count in (-6, -4, -3):
        vectors[hot, -3:] = rng.normal(log_count, 0.3, size=(100, 3))
        inverted = inverted.replace_vectors(vectors)
    assert recall(inverted, ItemIndex.build(vectors, "dot"), USERS) > 0.99


def test_as_many_items_as_asked_for_are_found() -> None:
    # Items far from all others are in lists of their own, which are nearest to some users.
    vectors, users = draw_world(20_000)
    vectors[:40] = 1_000 * np.random.default_rng(6).normal(size=(40, vectors.shape[1]))
    index = ItemIndex.build(vectors, "dot").with_inverted_file(users[:200]).with_probes(4)
    assert index.finds_candidates(20)
    allowed = np.arange(20_001) % 2 == 1
    for user in vectors[:40:2]:
        assert len(index.search(user, 20)[0]) == 20
        assert len(index.search(user, 300, allowed=allowed)[0]) == 300


def test_a_file_of_another_kind_is_refused(exact: ItemIndex, tmp_path: Path) -> None:
    exact.save(tmp_path / "items")
    content = read(tmp_path / "items")
    with pytest.raises(BundleError, match="must be of the kind IndexPreTransform"):
        ItemIndex.load(content, content)


def test_an_inverted_file_without_some_items_is_refused(tmp_path: Path) -> None:
    vectors, users = draw_world(2_000)
    index = ItemIndex.build(vectors, "dot").with_inverted_file(users)
    assert index.inverted is not None
    index.inverted.save(tmp_path / "lists")
    lists = faiss.read_index(str(tmp_path / "lists"))
    lists.remove_ids(np.arange(5))
    faiss.write_index(lists, str(tmp_path / "lists"))
    with pytest.raises(BundleError, match="must hold every item once"):
        InvertedFile.load(read(tmp_path / "lists"))


def test_few_users_are_enough_for_an_inverted_file() -> None:
    vectors, users = draw_world(3_000)
    index = ItemIndex.build(vectors, "dot")
    assert recall(index.with_inverted_file(users[:1]).with_probes(110), index, users[5:15]) > 0.9
