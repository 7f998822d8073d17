import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model.errors import TrainingError
from training.evaluation.metrics import (
    MISS,
    Ranks,
    compute_ranks,
    compute_sampled_ranks,
    paired_bootstrap,
)


def one_question(*ranks: int) -> Ranks:
    return Ranks(np.array(ranks), np.zeros(len(ranks), dtype=np.int64), questions=1)


def rank_one(scores: list[float], target: int) -> int:
    """The rank of item row `target` where row 1 scores `scores[0]`."""
    block = np.array([[0.0, *scores]], dtype=np.float32)
    return int(compute_ranks(block, np.array([target]), np.array([0]))[0])


# Ranks from scores


def test_the_best_item_has_rank_one() -> None:
    assert [rank_one([3.0, 9.0, 5.0], target) for target in (1, 2, 3)] == [3, 1, 2]


def test_items_tied_with_the_target_rank_ahead_of_it() -> None:
    assert rank_one([5.0, 5.0, 5.0, 1.0], target=1) == 3


def test_padding_never_counts() -> None:
    block = np.array([[99.0, 1.0, 2.0]], dtype=np.float32)
    assert compute_ranks(block, np.array([2]), np.array([0])).tolist() == [1]


def test_excluded_items_never_count() -> None:
    assert rank_one([-math.inf, 1.0, -math.inf], target=2) == 1


def test_an_excluded_target_is_a_miss() -> None:
    assert rank_one([-math.inf, 1.0], target=1) == MISS


def test_a_target_outside_the_catalog_is_a_miss() -> None:
    assert rank_one([1.0, 2.0], target=0) == MISS


def test_other_targets_of_a_question_compete_like_any_item() -> None:
    block = np.array([[0.0, 3.0, 2.0, 1.0]], dtype=np.float32)
    assert compute_ranks(block, np.array([1, 2, 3]), np.zeros(3, dtype=int)).tolist() == [1, 2, 3]


def test_a_score_that_is_no_number_is_refused_by_name() -> None:
    block = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, np.nan]], dtype=np.float32)
    with pytest.raises(TrainingError, match="item row 2 of question 1"):
        compute_ranks(block, np.array([1]), np.array([0]))


def test_a_padding_score_may_be_anything() -> None:
    block = np.array([[np.nan, 1.0]], dtype=np.float32)
    assert compute_ranks(block, np.array([1]), np.array([0])).tolist() == [1]


# Ranks among some


def rank_among(scores: list[float], target: int, *candidates: int) -> int:
    """The rank of item row `target` among some others, where row 1 scores `scores[0]`."""
    block = np.array([[99.0, *scores]], dtype=np.float32)
    found = compute_sampled_ranks(block, np.array([target]), np.array([0]), np.array([candidates]))
    return int(found[0])


def test_only_the_candidates_compete_with_a_target() -> None:
    scores = [9.0, 8.0, 5.0, 6.0, 1.0]
    assert rank_among(scores, 3, 4, 5) == 2
    assert rank_among(scores, 3, 5) == 1
    assert rank_among(scores, 3, 1, 2, 4, 5) == rank_one(scores, 3)


def test_candidates_tied_with_the_target_rank_ahead_of_it() -> None:
    assert rank_among([5.0, 5.0, 5.0], 1, 2, 3) == 3


def test_missing_candidates_never_count() -> None:
    assert rank_among([5.0, 1.0], 2, 0, 0) == 1


def test_an_excluded_target_misses_among_candidates_too() -> None:
    assert rank_among([-math.inf, 1.0], 1, 2) == MISS
    assert rank_among([1.0, 2.0], 0, 1, 2) == MISS


def test_an_excluded_candidate_never_counts() -> None:
    assert rank_among([1.0, -math.inf], 1, 2) == 1


def test_the_other_targets_of_a_question_are_candidates() -> None:
    block = np.array([[0.0, 3.0, 2.0, 1.0, 9.0]] * 2, dtype=np.float32)
    ranks = compute_sampled_ranks(
        block, np.array([1, 3, 3]), np.array([0, 0, 1]), np.array([[2], [2]])
    )
    assert ranks.tolist() == [1, 3, 2]


# Metrics from ranks


def test_ndcg_of_one_target_is_its_discount() -> None:
    assert one_question(3).ndcg(10).tolist() == [1 / math.log2(4)]


def test_ndcg_divides_by_what_fits_into_the_top() -> None:
    assert one_question(1, 2, 5, 9).ndcg(2).tolist() == pytest.approx([1.0])


def test_ndcg_counts_the_targets_that_were_missed() -> None:
    assert one_question(1, MISS).ndcg(10).tolist() == [1 / (1 + 1 / math.log2(3))]


def test_recall_is_the_share_of_targets_found() -> None:
    assert one_question(1, 10, 11, MISS).recall(10).tolist() == [0.5]


def test_one_target_in_the_top_is_a_hit() -> None:
    assert one_question(10, 400).hit_rate(10).tolist() == [1.0]
    assert one_question(11, 400).hit_rate(10).tolist() == [0.0]


def test_the_reciprocal_rank_is_that_of_the_best_target() -> None:
    assert one_question(4, 2, MISS).reciprocal_rank().tolist() == [0.5]


def test_a_miss_earns_nothing() -> None:
    scores = one_question(MISS).summarise()
    assert scores.pop("questions") == 1
    assert set(scores.values()) == {0.0}


def test_a_question_without_targets_earns_nothing() -> None:
    ranks = Ranks(np.array([1]), np.array([1]), questions=3)
    assert ranks.ndcg(10).tolist() == ranks.recall(10).tolist() == [0.0, 1.0, 0.0]


def test_no_questions_give_zeros_rather_than_nothing() -> None:
    nothing = np.array([], dtype=np.int64)
    assert set(Ranks(nothing, nothing, questions=0).summarise().values()) == {0.0}


def test_constant_scores_earn_nothing() -> None:
    block = np.zeros((1, 101), dtype=np.float32)
    ranks = compute_ranks(block, np.array([1]), np.array([0]))
    assert Ranks(ranks, np.array([0]), questions=1).summarise()["ndcg@10"] == 0.0


def test_the_summary_has_the_names_that_tables_use() -> None:
    assert list(one_question(1).summarise()) == [
        "hit_rate@10",
        "ndcg@10",
        "recall@10",
        "mrr",
        "accuracy",
        "questions",
    ]


def test_sampled_metrics_have_their_own_names() -> None:
    line = np.zeros(2, dtype=np.int64)
    ranks = Ranks(np.array([40, MISS]), line, questions=1, sampled=np.array([3, 12]))
    summary = ranks.summarise()
    assert summary["hit_rate@10"] == summary["ndcg@10"] == 0.0
    assert summary["hit_rate@10_sampled100"] == 1.0
    assert summary["ndcg@10_sampled100"] == 0.5 / (1 + 1 / math.log2(3))
    among = Ranks(np.array([3, 12]), line, questions=1).summarise()
    assert summary["ndcg@10_sampled100"] == among["ndcg@10"]


# Against a slow, sorting oracle


@st.composite
def scored_questions(draw: st.DrawFn) -> tuple[NDArray[np.float32], list[list[int]]]:
    """Scores with many ties and some exclusions; per question some distinct rows, 0 for cold."""
    questions, items = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    score = st.sampled_from([-math.inf, 0.0, 1.0, 2.0, 3.0])
    line = st.lists(score, min_size=items + 1, max_size=items + 1)
    scores = draw(st.lists(line, min_size=questions, max_size=questions))
    rows = st.lists(st.integers(0, items), max_size=4, unique=True)
    return np.array(scores, dtype=np.float32), [draw(rows) for _ in range(questions)]


def slow_ranking(line: NDArray[np.float32], target: int) -> list[int]:
    """All ranked item rows, the target behind those it ties with."""
    rows = [row for row in range(1, len(line)) if line[row] > -math.inf]
    return sorted(rows, key=lambda row: (-line[row], row == target))


def slow_ndcg(line: NDArray[np.float32], targets: list[int], k: int) -> float:
    gains = 0.0
    for target in targets:
        top = slow_ranking(line, target)[:k]
        gains += 1 / math.log2(top.index(target) + 2) if target in top else 0.0
    most = sum(1 / math.log2(index + 2) for index in range(min(k, len(targets))))
    return gains / most if targets else 0.0


@given(scored_questions(), st.integers(1, 5))
def test_counting_agrees_with_sorting(
    question: tuple[NDArray[np.float32], list[list[int]]], k: int
) -> None:
    scores, targets = question
    rows = np.array([row for some in targets for row in some], dtype=np.int64)
    owner = np.repeat(np.arange(len(targets)), [len(some) for some in targets])
    ranks = Ranks(compute_ranks(scores, rows, owner), owner, len(targets))
    for which, (line, some) in enumerate(zip(scores, targets, strict=True)):
        rankings = {target: slow_ranking(line, target) for target in some}
        found = [rankings[row].index(row) + 1 for row in some if row in rankings[row]]
        in_top = sum(rank <= k for rank in found)
        assert ranks.hit_rate(k)[which] == (in_top > 0)
        assert ranks.recall(k)[which] == (in_top / len(some) if some else 0)
        assert ranks.reciprocal_rank()[which] == (1 / min(found) if found else 0)
        assert ranks.accuracy()[which] == (1 in found)
        assert ranks.ndcg(k)[which] == pytest.approx(slow_ndcg(line, some, k))


@given(scored_questions(), st.integers(1, 5))
def test_no_metric_leaves_the_unit_interval(
    question: tuple[NDArray[np.float32], list[list[int]]], k: int
) -> None:
    scores, targets = question
    rows = np.array([row for some in targets for row in some], dtype=np.int64)
    owner = np.repeat(np.arange(len(targets)), [len(some) for some in targets])
    summary = Ranks(compute_ranks(scores, rows, owner), owner, len(targets)).summarise(k)
    del summary["questions"]
    assert all(0 <= value <= 1 + 1e-12 for value in summary.values())


# Comparing two models


def test_a_paired_bootstrap_finds_a_small_difference() -> None:
    generator = np.random.default_rng(0)
    hardness = generator.normal(size=500)
    better = hardness + 0.1 + generator.normal(scale=0.2, size=500)
    mean, low, high = paired_bootstrap(better, hardness, draws=500, seed=1)
    assert 0.05 < low < mean < high < 0.15


def test_a_paired_bootstrap_of_equal_models_is_exactly_zero() -> None:
    values = np.random.default_rng(0).random(50)
    assert paired_bootstrap(values, values, draws=100, seed=0) == (0.0, 0.0, 0.0)


def test_a_paired_bootstrap_repeats_with_its_seed() -> None:
    a, b = np.random.default_rng(0).random((2, 50))
    assert paired_bootstrap(a, b, 100, seed=3) == paired_bootstrap(a, b, 100, seed=3)


def test_a_paired_bootstrap_refuses_different_questions() -> None:
    with pytest.raises(TrainingError, match="got 2 and 3"):
        paired_bootstrap(np.zeros(2), np.zeros(3), 10, 0)


def test_a_paired_bootstrap_resamples_users_with_all_questions() -> None:
    random = np.random.default_rng(0)
    a, b = random.random((2, 60))
    of_users = paired_bootstrap(a, b, draws=4_000)
    many = paired_bootstrap(
        np.repeat(a, 50), np.repeat(b, 50), draws=4_000, users=np.repeat(np.arange(60), 50)
    )
    assert many == pytest.approx(of_users, abs=0.01)
    over_questions = paired_bootstrap(np.repeat(a, 50), np.repeat(b, 50), draws=4_000)
    assert over_questions[2] - over_questions[1] < (many[2] - many[1]) / 5


def test_a_bootstrap_of_users_weighs_their_questions() -> None:
    values = np.array([1.0, 1.0, 1.0, 0.0])
    mean, low, high = paired_bootstrap(values, np.zeros(4), users=np.array([7, 7, 7, 9]))
    assert (mean, low, high) == (0.75, 0.0, 1.0)


def test_a_bootstrap_needs_the_user_of_every_question() -> None:
    with pytest.raises(TrainingError, match="got 3 and 3 of 2 users"):
        paired_bootstrap(np.zeros(3), np.ones(3), users=np.array([0, 1]))


def test_a_metric_per_question_has_its_name_in_the_summary() -> None:
    ranks = Ranks(np.array([1, 3, 40]), np.array([0, 0, 1]), 3)
    summary = ranks.summarise()
    names = [name for name in summary if name != "questions"]
    for name in names:
        values = ranks.per_question(name)
        assert values.shape == (3,)
        assert values.mean() == pytest.approx(summary[name])
    assert ranks.per_question("ndcg@2").tolist() == ranks.ndcg(2).tolist()
    for unknown in ("ndcg", "ndcg@", "mrr@3", "luck"):
        with pytest.raises(TrainingError, match="a metric per question is"):
            ranks.per_question(unknown)


def test_the_bootstrap_of_few_values_is_that_of_many() -> None:
    random = np.random.default_rng(0)
    a, b = (random.random(2_000) < share for share in (0.5, 0.45))
    few = paired_bootstrap(a.astype(np.float64), b.astype(np.float64), draws=4_000)
    # Noise far below the interval makes all differences distinct.
    many = paired_bootstrap(a + random.normal(scale=1e-9, size=2_000), b * 1.0, draws=4_000)
    assert few == pytest.approx(many, abs=2e-3)
    assert few[1] == pytest.approx(few[0] - 1.96 * (a * 1.0 - b).std() / 2_000**0.5, abs=2e-3)
