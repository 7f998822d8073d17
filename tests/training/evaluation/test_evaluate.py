import numpy as np
import torch
from numpy.typing import NDArray

from tests import tiny
from tests.tiny import FIRST_AT, event_log
from training.data.dataset import Dataset
from training.data.negatives import SeenItems, sample_candidates
from training.data.split import LeaveOneOutConfig, Split
from training.evaluation.evaluate import evaluate, rank_targets, select_after_gap
from training.evaluation.metrics import MISS
from training.evaluation.scoring import ScoreBlock, score_questions


def split() -> Split:
    return LeaveOneOutConfig().split(Dataset.of(tiny.gap_world(users=15, length=7)), "next_event")


def ranks_by_sorting(cut: Split, *, exclude_seen: bool) -> NDArray[np.int64]:
    """Every target's rank, one question at a time."""
    recommender = tiny.recommender(tiny.recommender_config(items=len(cut.dataset.catalog)))
    ranks = np.full(len(cut.test), MISS)
    for block in score_questions(recommender, cut.dataset, cut.test, max_history=6):
        for question, line in zip(block.questions, block.scores.tolist(), strict=True):
            target = cut.test.target_rows[question]
            begin = cut.dataset.offsets[cut.test.users[question]]
            seen = {*cut.dataset.rows[begin : cut.test.ends[question]].tolist()}
            if target == 0 or (exclude_seen and target in seen):
                continue
            rivals = [
                value
                for row, value in enumerate(line)
                if row and not (exclude_seen and row in seen)
            ]
            ranks[question] = sum(value >= line[target] for value in rivals)
    return ranks


def test_ranks_are_what_sorting_everything_gives() -> None:
    cut = split()
    recommender = tiny.recommender(tiny.recommender_config(items=len(cut.dataset.catalog)))
    for exclude_seen in (False, True):
        found = evaluate(
            recommender, cut.dataset, cut.test, max_history=6, exclude_seen=exclude_seen
        )
        assert found.ranks.tolist() == ranks_by_sorting(cut, exclude_seen=exclude_seen).tolist()


def test_excluding_seen_items_does_not_modify_the_scores() -> None:
    cut = split()
    scores = torch.randn(len(cut.test), len(cut.dataset.catalog) + 1)
    before = scores.clone()
    block = ScoreBlock(np.arange(len(cut.test)), scores)
    rank_targets([block], cut.dataset, cut.test, exclude_seen=True)
    assert torch.equal(scores, before)


def test_blocks_may_come_in_any_order() -> None:
    cut = split()
    scores = torch.randn(len(cut.test), len(cut.dataset.catalog) + 1)
    whole = rank_targets(
        [ScoreBlock(np.arange(len(cut.test)), scores)], cut.dataset, cut.test, exclude_seen=False
    )
    shuffled = np.random.default_rng(0).permutation(len(cut.test))
    blocks = [ScoreBlock(part, scores[part]) for part in np.array_split(shuffled, 4)]
    parted = rank_targets(blocks, cut.dataset, cut.test, exclude_seen=False)
    assert parted.ranks.tolist() == whole.ranks.tolist()


def test_ranks_among_candidates_are_what_sorting_them_gives() -> None:
    cut = split()
    candidates = sample_candidates(SeenItems(cut.dataset, cut.train_ends), cut.test, count=5)
    scores = torch.randn(len(cut.test), len(cut.dataset.catalog) + 1)
    shuffled = np.random.default_rng(0).permutation(len(cut.test))
    blocks = [ScoreBlock(part, scores[part]) for part in np.array_split(shuffled, 4)]
    for exclude_seen in (False, True):
        found = rank_targets(
            blocks, cut.dataset, cut.test, exclude_seen=exclude_seen, candidates=candidates
        )
        expected = []
        for question, target in enumerate(cut.test.target_rows.tolist()):
            begin = cut.dataset.offsets[cut.test.users[question]]
            seen = {*cut.dataset.rows[begin : cut.test.ends[question]].tolist()}
            rivals = {row for row in candidates[question].tolist() if row}
            assert len(rivals) == 5
            if exclude_seen:
                rivals -= seen
            better = [row for row in rivals if scores[question, row] >= scores[question, target]]
            is_missed = target == 0 or (exclude_seen and target in seen)
            expected.append(MISS if is_missed else 1 + len(better))
        assert found.sampled is not None
        assert found.sampled.tolist() == expected


def test_without_candidates_nothing_is_sampled() -> None:
    cut = split()
    block = ScoreBlock(np.arange(len(cut.test)), torch.randn(len(cut.test), 25))
    assert rank_targets([block], cut.dataset, cut.test, exclude_seen=False).sampled is None


def test_questions_at_the_last_events_instant_have_no_gap() -> None:
    log = [("u", item, FIRST_AT + n) for item, n in (("a", 0), ("a", 1), ("b", 1))] + [
        ("v", "a", FIRST_AT + n) for n in (0, 1, 2)
    ]
    cut = LeaveOneOutConfig().split(Dataset.of(event_log(log)), "next_event")
    assert select_after_gap(cut.dataset, cut.test).tolist() == [1]
