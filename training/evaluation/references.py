"""The rankers that stand in every table, so that a model's numbers mean something.

None of them learns more than counts, and on real data they are hard to beat. All know the items of
the data set's catalogue and share one shape: fitted on the training events, then asked for scores.

Items with equal evidence keep equal scores, so that the tie rule of `training.evaluation.metrics`
applies to references as it does to models. Scores are small whole numbers, the places in an order:
float32 holds them exactly, where a large count plus a small tie-break would be rounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self, final

import numpy as np
import torch
from jaxtyping import Float32
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation.scoring import BLOCK_ELEMENTS, ScoreBlock

WEEK = 7 * MICROSECONDS_PER_DAY


class Reference(Protocol):
    """Whatever scores every item for a block of questions."""

    def scores(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Larger is better; column 0 is padding and means nothing."""


def fit_references(dataset: Dataset, is_training: NDArray[np.bool_]) -> dict[str, Reference]:
    """All references, by the names that tables use, fitted on the training events."""
    return {
        "popular_all_time": PopularAllTime.fit(dataset, is_training),
        "popular_last_week": PopularLastWeek.fit(dataset, is_training),
        "last_item_markov": LastItemMarkov.fit(dataset, is_training),
        "personal_frequency": PersonalFrequency.fit(dataset, is_training),
        "repeat_last": RepeatLast.fit(dataset, is_training),
    }


def score_reference(reference: Reference, questions: Questions, items: int) -> Iterator[ScoreBlock]:
    """A reference's scores in blocks that fit in memory, as a model's come from `score`."""
    size = max(BLOCK_ELEMENTS // (items + 1), 1)
    for begin in range(0, len(questions), size):
        chosen = np.arange(begin, min(begin + size, len(questions)))
        yield ScoreBlock(chosen, torch.from_numpy(reference.scores(questions.select(chosen))))


@final
@dataclass(frozen=True)
class PopularAllTime:
    """Items by how many training events they have, whoever asks and whenever.

    Under a leave-one-out split the counts hold events later than some queries, as they do in the
    literature; `PopularLastWeek` does not.
    """

    places: Float32[np.ndarray, " rows"]

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Count the training events of every item."""
        items = len(dataset.catalog)
        popularity = np.bincount(dataset.rows[is_training], minlength=items + 1)
        return cls(np.append(0, 1 + _places(popularity[1:])).astype(np.float32))

    def scores(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """The same line for every question."""
        return np.tile(self.places, (len(questions), 1))

    def with_above(
        self, rows: NDArray[np.int32], *evidence: NDArray[np.int64]
    ) -> Float32[np.ndarray, " rows"]:
        """One line of scores: `rows` above all other items, which follow by popularity.

        Args:
            rows: distinct items, in any order.
            evidence: keys that order them, the most important first; popularity breaks their ties.
        """
        line = self.places.copy()
        line[rows] = len(line) + _places(self.places[rows], *reversed(evidence))
        return line


@final
@dataclass(frozen=True)
class PopularLastWeek:
    """Items by their training events in the seven days before the query, then by all-time counts.

    Events at the query time itself are left out. Where the query is later than all training
    events, the week ends with the last of them: a model deployed then would know no more.
    """

    popular: PopularAllTime
    rows: NDArray[np.int32]
    times: NDArray[np.int64]

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Put the training events of all users in the order of time."""
        known = np.flatnonzero(is_training & (dataset.rows > 0))
        known = known[np.argsort(dataset.times[known], kind="stable")]
        popular = PopularAllTime.fit(dataset, is_training)
        return cls(popular, dataset.rows[known], dataset.times[known])

    def scores(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """One line per distinct week, handed to the questions that share it."""
        just_after_training = self.times[-1:].max(initial=0) + 1
        ends = np.minimum(questions.query_times, just_after_training)
        weeks = np.searchsorted(self.times, np.stack([ends - WEEK, ends], axis=1))
        distinct, week_of = np.unique(weeks, axis=0, return_inverse=True)
        return _stack([self._line(begin, end) for begin, end in distinct], self.popular)[week_of]

    def _line(self, begin: int, end: int) -> Float32[np.ndarray, " rows"]:
        rows, counts = np.unique(self.rows[begin:end], return_counts=True)
        return self.popular.with_above(rows, counts)


@final
@dataclass(frozen=True)
class LastItemMarkov:
    """Items by how often they came right after the user's last known item, then by popularity.

    Events at the same instant follow one another in stored order.
    """

    popular: PopularAllTime
    dataset: Dataset
    offsets: NDArray[np.int64]
    following: NDArray[np.int32]
    """What followed item row `r` in training: `following[offsets[r]:offsets[r + 1]]`."""

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Collect the pairs of neighbours among each user's known training events."""
        known = np.flatnonzero(is_training & (dataset.rows > 0))
        same_user = dataset.user_of[known[:-1]] == dataset.user_of[known[1:]]
        last = dataset.rows[known[:-1]][same_user]
        following = dataset.rows[known[1:]][same_user]
        order = np.argsort(last, kind="stable")
        offsets = np.searchsorted(last[order], np.arange(len(dataset.catalog) + 2))
        popular = PopularAllTime.fit(dataset, is_training)
        return cls(popular, dataset, offsets, following[order])

    def scores(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """One line per distinct last item; popularity where a user has none."""
        distinct, last_of = np.unique(_last_rows(self.dataset, questions), return_inverse=True)
        return _stack([self._line(row) for row in distinct], self.popular)[last_of]

    def _line(self, last: np.int32) -> Float32[np.ndarray, " rows"]:
        following = self.following[self.offsets[last] : self.offsets[last + 1]]
        rows, counts = np.unique(following, return_counts=True)
        return self.popular.with_above(rows, counts)


@final
@dataclass(frozen=True)
class PersonalFrequency:
    """Items by how often this user met them before, the latest met first, then by popularity.

    The whole history counts, also what the user did after the training data ended.
    """

    popular: PopularAllTime
    dataset: Dataset

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Count popularity; all else is in the histories."""
        return cls(PopularAllTime.fit(dataset, is_training), dataset)

    def scores(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """One line per question."""
        return _stack([self._line(user, end) for user, end in _histories(questions)], self.popular)

    def _line(self, user: int, end: int) -> Float32[np.ndarray, " rows"]:
        latest_first = slice(self.dataset.offsets[user], end)
        rows = self.dataset.rows[latest_first][::-1]
        times = self.dataset.times[latest_first][::-1][rows > 0]
        rows, latest, counts = np.unique(rows[rows > 0], return_index=True, return_counts=True)
        return self.popular.with_above(rows, counts, times[latest])


@final
@dataclass(frozen=True)
class RepeatLast:
    """The user's last known item, then all others by popularity."""

    popular: PopularAllTime
    dataset: Dataset

    @classmethod
    def fit(cls, dataset: Dataset, is_training: NDArray[np.bool_]) -> Self:
        """Count popularity; the last item is in the history."""
        return cls(PopularAllTime.fit(dataset, is_training), dataset)

    def scores(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """One line per distinct last item; popularity where a user has none."""
        distinct, last_of = np.unique(_last_rows(self.dataset, questions), return_inverse=True)
        return _stack([self._line(row) for row in distinct], self.popular)[last_of]

    def _line(self, last: np.int32) -> Float32[np.ndarray, " rows"]:
        return self.popular.with_above(np.array([last] if last else [], dtype=np.int32))


def _last_rows(dataset: Dataset, questions: Questions) -> NDArray[np.int32]:
    """Per question, the latest item of its history that the catalogue holds; 0 where there is none.

    Events at the same instant follow one another in stored order.
    """
    known = np.flatnonzero(dataset.rows)
    before = np.searchsorted(known, questions.ends) - 1
    lasts = known[before.clip(0)] if len(known) else np.full(len(before), -1)
    has_one = (before >= 0) & (lasts >= dataset.offsets[questions.users])
    return np.where(has_one, dataset.rows[lasts], 0).astype(np.int32)


def _histories(questions: Questions) -> Iterator[tuple[int, int]]:
    return zip(questions.users.tolist(), questions.ends.tolist(), strict=True)


def _stack(
    lines: list[NDArray[np.float32]], popular: PopularAllTime
) -> Float32[np.ndarray, "questions rows"]:
    return np.array(lines, dtype=np.float32).reshape(len(lines), len(popular.places))


def _places(*keys: NDArray[np.generic]) -> NDArray[np.int64]:
    """Places from 0 in the ascending order of the keys, the last the most important; ties share."""
    order = np.lexsort(keys)
    differs = np.zeros(len(order), dtype=np.int64)
    for key in keys:
        differs[1:] |= key[order][1:] != key[order][:-1]
    places = np.empty_like(differs)
    places[order] = np.cumsum(differs)
    return places
