"""Ranking of the targets of questions by recommenders and references."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int64
from numpy.typing import NDArray

from model.recommender import Recommender
from training.data.dataset import Dataset
from training.data.split import Questions, expand_spans
from training.evaluation.metrics import MISS, Ranks, compute_ranks, compute_sampled_ranks
from training.evaluation.scoring import ScoreBlock, score_questions


def rank_targets(
    blocks: Iterable[ScoreBlock],
    dataset: Dataset,
    questions: Questions,
    *,
    exclude_seen: bool,
    candidates: Int64[np.ndarray, "questions candidates"] | None = None,
) -> Ranks:
    """Rank every target of every question, by the tie rule of `training.evaluation.metrics`.

    Args:
        candidates: of `training.data.negatives.sample_candidates`, to rank targets among them, too.
    """
    ranks = np.full(len(questions.target_rows), MISS, dtype=np.int64)
    sampled = None if candidates is None else ranks.copy()
    for block in blocks:
        scores = block.scores.numpy()
        if exclude_seen:
            scores = scores.copy()
            _mask_seen(scores, dataset, questions, block.questions)
        counts = np.diff(questions.target_offsets)[block.questions]
        targets = expand_spans(questions.target_offsets[block.questions], counts)
        rows = questions.target_rows[targets].astype(np.int64)
        lines = np.repeat(np.arange(len(counts)), counts)
        ranks[targets] = compute_ranks(scores, rows, lines)
        if candidates is not None and sampled is not None:
            drawn = candidates[block.questions]
            sampled[targets] = compute_sampled_ranks(scores, rows, lines, drawn)
    return Ranks(ranks, questions.question_of, len(questions), sampled)


def evaluate(
    recommender: Recommender,
    dataset: Dataset,
    questions: Questions,
    *,
    max_history: int,
    exclude_seen: bool,
    withheld: bool = False,
    candidates: Int64[np.ndarray, "questions candidates"] | None = None,
) -> Ranks:
    """Rank the targets of some questions by a recommender, in the whole catalog.

    Args:
        withheld: whether to withhold the query time from the model.
        candidates: as for `rank_targets`.
    """
    blocks = score_questions(
        recommender, dataset, questions, max_history=max_history, withheld=withheld
    )
    return rank_targets(
        blocks, dataset, questions, exclude_seen=exclude_seen, candidates=candidates
    )


def select_after_gap(dataset: Dataset, questions: Questions) -> NDArray[np.int64]:
    """Select the questions strictly later than the last event of their history."""
    return np.flatnonzero(questions.query_times > dataset.times[questions.ends - 1])


def _mask_seen(
    scores: NDArray[np.float32],
    dataset: Dataset,
    questions: Questions,
    chosen: NDArray[np.int64],
) -> None:
    starts = dataset.offsets[questions.users[chosen]]
    counts = questions.ends[chosen] - starts
    seen = dataset.rows[expand_spans(starts, counts)]
    scores[np.repeat(np.arange(len(chosen)), counts), seen] = -np.inf
