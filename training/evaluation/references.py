"""Reference rankers by counting, which every table of results includes.

They are hard to beat on real data. Each is fitted on counts of events, and scores the items of the
data set's catalog.

Items with equal counts get equal scores, so that the tie rule of `training.evaluation.metrics`
applies to references as to models. Scores are ordinal positions: float32 holds them exactly, while
a large count plus a small tie-break would be rounded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, Self, final

import numpy as np
import torch
from jaxtyping import Float32
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from training.blocks import split_into_blocks
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation.scoring import BLOCK_ELEMENTS, ScoreBlock

WEEK = 7 * MICROSECONDS_PER_DAY


class Reference(Protocol):
    """Scores every item for a block of questions."""

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Score every row for some questions: larger is better; column 0 is padding."""


def fit_references(dataset: Dataset, is_training: NDArray[np.bool_]) -> dict[str, Reference]:
    """Fit all references; the keys are their names in tables."""
    return {
        "popular_all_time": PopularAllTime.fit(dataset, is_training),
        "popular_last_week": PopularLastWeek.fit(dataset, is_training),
        "last_item_markov": LastItemMarkov.fit(dataset, is_training),
        "personal_frequency": PersonalFrequency.fit(dataset, is_training),
        "repeat_last": RepeatLast.fit(dataset, is_training),
    }


def score_reference(reference: Reference, questions: Questions, items: int) -> Iterator[ScoreBlock]:
    """Score questions by a reference, in blocks that fit in memory."""
    for part in split_into_blocks(len(questions), BLOCK_ELEMENTS // (items + 1)):
        chosen = np.arange(part.start, part.stop)
        yield ScoreBlock(chosen, torch.from_numpy(reference.score(questions.select(chosen))))


@final
@dataclass(frozen=True)
class PopularAllTime:
    """Items by their training events, the same for every user and query time.

    Under a leave-one-out split the counts include events later than some queries, as in the
    literature; those of `PopularLastWeek` do not.
    """

    ranks: Float32[np.ndarray, " rows"]

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Count the training events of every item."""
        items = len(dataset.catalog)
        popularity = np.bincount(dataset.rows[is_training], minlength=items + 1)
        return cls(np.append(0, 1 + _rank_ascending(popularity[1:])).astype(np.float32))

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Return the same row for every question."""
        return np.tile(self.ranks, (len(questions), 1))

    def rank_above(
        self, rows: NDArray[np.int32], *evidence: NDArray[np.int64]
    ) -> Float32[np.ndarray, " rows"]:
        """Rank some items above all others, which follow by popularity.

        Args:
            rows: distinct items, in any order.
            evidence: sort keys, the most important first; popularity breaks their ties.

        Returns:
            The scores of every row.
        """
        line = self.ranks.copy()
        line[rows] = len(line) + _rank_ascending(self.ranks[rows], *reversed(evidence))
        return line


@final
@dataclass(frozen=True)
class PopularLastWeek:
    """Items by their training events in the seven days before the query, then by all-time counts.

    Events at the query time itself are left out. If the query is later than all training
    events, the week ends with the last of them, as for a model deployed then.
    """

    popular: PopularAllTime
    rows: NDArray[np.int32]
    times: NDArray[np.int64]

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Sort the training events of all users by time."""
        known = np.flatnonzero(is_training & (dataset.rows > 0))
        known = known[np.argsort(dataset.times[known], kind="stable")]
        popular = PopularAllTime.fit(dataset, is_training)
        return cls(popular, dataset.rows[known], dataset.times[known])

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Compute one row per distinct week, shared by its questions."""
        just_after_training = self.times[-1:].max(initial=0) + 1
        ends = np.minimum(questions.query_times, just_after_training)
        weeks = np.searchsorted(self.times, np.stack([ends - WEEK, ends], axis=1))
        distinct, week_of = np.unique(weeks, axis=0, return_inverse=True)
        return _stack_rows([self._score_row(begin, end) for begin, end in distinct], self.popular)[
            week_of
        ]

    def _score_row(self, begin: int, end: int) -> Float32[np.ndarray, " rows"]:
        rows, counts = np.unique(self.rows[begin:end], return_counts=True)
        return self.popular.rank_above(rows, counts)


@final
@dataclass(frozen=True)
class LastItemMarkov:
    """Items by how often they directly followed the user's last known item, then by popularity.

    Events at the same instant keep their stored order.
    """

    popular: PopularAllTime
    dataset: Dataset
    offsets: NDArray[np.int64]
    following: NDArray[np.int32]
    """The items that followed row `r` in training: `following[offsets[r]:offsets[r + 1]]`."""

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Collect the consecutive pairs of each user's known training events."""
        known = np.flatnonzero(is_training & (dataset.rows > 0))
        same_user = dataset.user_of[known[:-1]] == dataset.user_of[known[1:]]
        last = dataset.rows[known[:-1]][same_user]
        following = dataset.rows[known[1:]][same_user]
        order = np.argsort(last, kind="stable")
        offsets = np.searchsorted(last[order], np.arange(len(dataset.catalog) + 2))
        popular = PopularAllTime.fit(dataset, is_training)
        return cls(popular, dataset, offsets, following[order])

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Score by the last item of each history; popularity for users without one."""
        last_rows = _find_last_rows(self.dataset, questions)
        return _score_by_last_row(last_rows, self._score_row, self.popular)

    def _score_row(self, last: np.int32) -> Float32[np.ndarray, " rows"]:
        following = self.following[self.offsets[last] : self.offsets[last + 1]]
        rows, counts = np.unique(following, return_counts=True)
        return self.popular.rank_above(rows, counts)


@final
@dataclass(frozen=True)
class PersonalFrequency:
    """Items by their count in the user's history, the latest first, then by popularity.

    The whole history counts, including events after the training data.
    """

    popular: PopularAllTime
    dataset: Dataset

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Count popularity; `score` reads the histories."""
        return cls(PopularAllTime.fit(dataset, is_training), dataset)

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Compute one row per question."""
        return _stack_rows(
            [self._score_row(user, end) for user, end in _list_histories(questions)], self.popular
        )

    def _score_row(self, user: int, end: int) -> Float32[np.ndarray, " rows"]:
        latest_first = slice(self.dataset.offsets[user], end)
        rows = self.dataset.rows[latest_first][::-1]
        times = self.dataset.times[latest_first][::-1][rows > 0]
        rows, latest, counts = np.unique(rows[rows > 0], return_index=True, return_counts=True)
        return self.popular.rank_above(rows, counts, times[latest])


@final
@dataclass(frozen=True)
class RepeatLast:
    """The user's last known item, then all others by popularity."""

    popular: PopularAllTime
    dataset: Dataset

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Count popularity; `score` reads the last item."""
        return cls(PopularAllTime.fit(dataset, is_training), dataset)

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Score by the last item of each history; popularity for users without one."""
        last_rows = _find_last_rows(self.dataset, questions)
        return _score_by_last_row(last_rows, self._score_row, self.popular)

    def _score_row(self, last: np.int32) -> Float32[np.ndarray, " rows"]:
        return self.popular.rank_above(np.array([last] if last else [], dtype=np.int32))


def _find_last_rows(dataset: Dataset, questions: Questions) -> NDArray[np.int32]:
    """Find, per question, the latest known item of its history; 0 if there is none.

    Events at the same instant keep their stored order.
    """
    known = np.flatnonzero(dataset.rows)
    before = np.searchsorted(known, questions.ends) - 1
    lasts = known[before.clip(0)] if len(known) else np.full(len(before), -1)
    has_one = (before >= 0) & (lasts >= dataset.offsets[questions.users])
    return np.where(has_one, dataset.rows[lasts], 0).astype(np.int32)


def _score_by_last_row(
    last_rows: NDArray[np.int32],
    score_row: Callable[[np.int32], NDArray[np.float32]],
    popular: PopularAllTime,
) -> Float32[np.ndarray, "questions rows"]:
    """Score every question; equal last rows are scored once."""
    distinct, last_of = np.unique(last_rows, return_inverse=True)
    return _stack_rows([score_row(row) for row in distinct], popular)[last_of]


def _list_histories(questions: Questions) -> Iterator[tuple[int, int]]:
    return zip(questions.users.tolist(), questions.ends.tolist(), strict=True)


def _stack_rows(
    lines: list[NDArray[np.float32]], popular: PopularAllTime
) -> Float32[np.ndarray, "questions rows"]:
    return np.array(lines, dtype=np.float32).reshape(len(lines), len(popular.ranks))


def _rank_ascending(*keys: NDArray[np.generic]) -> NDArray[np.int64]:
    """Rank ascending from 0 by the keys, the last the most important; ties share a rank."""
    order = np.lexsort(keys)
    differs = np.zeros(len(order), dtype=np.int64)
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty_like(differs)
    ranks[order] = np.cumsum(differs)
    return ranks
