"""Writes a split as the files that a peer's process reads."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.peers.files import (
    FIT,
    REFIT,
    TEST,
    VALIDATION,
    QuestionFile,
    Sequences,
)
from training.data.split import Questions, Split, is_before


def collect_sequences(split: Split, order: NDArray[np.int64], ends: NDArray[np.int64]) -> Sequences:
    """Collect the events of each user before its end; unknown items are left out.

    Args:
        order: from `order_events`.
        ends: one of each user.
    """
    dataset = split.dataset
    chosen = order[is_before(dataset, ends)[order] & (dataset.rows[order] > 0)]
    counts = np.bincount(dataset.user_of[chosen], minlength=len(dataset.user_ids))
    return Sequences(
        items=np.array(len(dataset.catalog)),
        rows=dataset.rows[chosen],
        times=dataset.times[chosen],
        offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    )


def collect_questions(
    split: Split, order: NDArray[np.int64], questions: Questions, *, has_targets: bool
) -> QuestionFile:
    """Collect questions and the events before them, of known items; prefixes share their events.

    Args:
        order: from `order_events`.
        has_targets: whether the targets are written.
    """
    dataset = split.dataset
    last_ends = dataset.offsets[:-1].copy()
    np.maximum.at(last_ends, questions.users, questions.ends)
    is_kept = is_before(dataset, last_ends)[order] & (dataset.rows[order] > 0)
    kept_before = np.concatenate(([0], np.cumsum(is_kept))).astype(np.int64)
    chosen = order[is_kept]
    return QuestionFile(
        items=np.array(len(dataset.catalog)),
        rows=dataset.rows[chosen],
        times=dataset.times[chosen],
        starts=kept_before[dataset.offsets[questions.users]],
        ends=kept_before[questions.ends],
        query_times=questions.query_times,
        target_offsets=questions.target_offsets
        if has_targets
        else np.zeros(len(questions) + 1, dtype=np.int64),
        target_rows=questions.target_rows if has_targets else np.zeros(0, dtype=np.int32),
    )


def order_events(split: Split, shuffle_seed: int | None) -> NDArray[np.int64]:
    """Order the events: as in the data set, or shuffled within instants.

    No event crosses the end of a history, or of the training or known events of its user.

    Returns:
        A permutation of the events that keeps every user's span.
    """
    dataset = split.dataset
    events = np.arange(len(dataset))
    if shuffle_seed is None:
        return events
    begins = np.zeros(len(dataset) + 1, dtype=np.bool_)
    for ends in (split.train_ends, split.test_starts, split.validation.ends, split.test.ends):
        begins[ends] = True
    begins[dataset.offsets] = True
    begins[1:-1] |= np.diff(dataset.times) != 0
    draws = np.random.default_rng(shuffle_seed).random(len(dataset))
    return events[np.lexsort((draws, np.cumsum(begins[:-1])))]


def export_split(
    folder: Path,
    split: Split | None,
    final: Split | None,
    *,
    shuffle_seed: int | None,
) -> None:
    """Write the files of a split.

    Args:
        split: with validation questions; None writes nothing to fit with early stopping.
        final: the split of the second fit and the test; None writes neither.
        shuffle_seed: of the order within instants; None keeps that of the data set.
    """
    if split is not None:
        order = order_events(split, shuffle_seed)
        collect_sequences(split, order, split.train_ends).write(folder / FIT)
        questions = collect_questions(split, order, split.validation, has_targets=True)
        questions.write(folder / VALIDATION)
    if final is None:
        return
    order = order_events(final, shuffle_seed)
    collect_sequences(final, order, final.train_ends).write(folder / REFIT)
    collect_questions(final, order, final.test, has_targets=False).write(folder / TEST)
