"""Negatives: items that a user has not seen in training, for losses and sampled metrics."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Int64
from numpy.typing import NDArray

from training.data.dataset import Dataset
from training.data.split import Questions, is_before


@final
@dataclass(frozen=True)
class SeenItems:
    """The items that every user has seen in training; all others are their negatives.

    A user's unseen items are numbered from 0 in the order of their rows, so the n-th of them is
    found by bisection. Draws are exact, without rejection.

    Attributes:
        dataset: the events.
        train_ends: per user, the absolute index of the first event that is not for training.
    """

    dataset: Dataset
    train_ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.dataset.user_ids)

    @property
    def items(self) -> int:
        """The number of items in the catalog, without padding."""
        return len(self.dataset.catalog)

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        """`user * (items + 1) + row` of every pair of a user and a seen item, ascending."""
        learned = is_before(self.dataset, self.train_ends) & (self.dataset.rows > 0)
        keys = self.dataset.user_of[learned] * (self.items + 1) + self.dataset.rows[learned]
        return np.unique(keys)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The index of every user's first key, and the end."""
        return np.searchsorted(self._keys, np.arange(len(self) + 1) * (self.items + 1))

    @cached_property
    def _unseen_below(self) -> NDArray[np.int64]:
        """`user * (items + 1) +` the unseen items before each seen one; ascending."""
        users = self._keys // (self.items + 1)
        seen_before = np.arange(len(users)) - self._starts[users]
        below: NDArray[np.int64] = self._keys - 1 - seen_before
        return below

    @cached_property
    def unseen_counts(self) -> Int64[np.ndarray, " users"]:
        """How many items of the catalog each user has not seen."""
        counts: NDArray[np.int64] = self.items - np.diff(self._starts)
        return counts

    def has_seen(
        self, users: Int64[np.ndarray, " pairs"], rows: Int64[np.ndarray, " pairs"]
    ) -> Bool[np.ndarray, " pairs"]:
        """Return whether a user has seen an item."""
        keys = users * (self.items + 1) + rows
        indices = np.searchsorted(self._keys, keys)
        is_seen: NDArray[np.bool_] = indices < len(self._keys)
        is_seen[is_seen] = self._keys[indices[is_seen]] == keys[is_seen]
        return is_seen

    def select_unseen(
        self, users: Int64[np.ndarray, " owners"], numbers: Int64[np.ndarray, "owners count"]
    ) -> Int64[np.ndarray, "owners count"]:
        """Select the rows of a user's unseen items, by their numbers from 0."""
        keys = users[:, None] * (self.items + 1) + numbers
        seen_before = np.searchsorted(self._unseen_below, keys, side="right")
        rows: NDArray[np.int64] = numbers + 1 + seen_before - self._starts[users][:, None]
        return rows

    def draw_unseen(
        self, users: Int64[np.ndarray, " owners"], count: int, rng: np.random.Generator
    ) -> Int64[np.ndarray, "owners count"]:
        """Draw items uniformly, with replacement, from those that each user has not seen.

        For a user who has seen every item, items are drawn from the whole catalog.

        DIFFERS(code): Xu et al. 2019 mean to leave out seen items, but their check never holds.
        """
        unseen = self.unseen_counts[users]
        has_any = (unseen > 0)[:, None]
        most = np.where(unseen > 0, unseen, self.items)[:, None]
        numbers = rng.integers(0, most, size=(len(users), count))
        drawn: NDArray[np.int64] = np.where(
            has_any, self.select_unseen(users, numbers), numbers + 1
        )
        return drawn


def sample_candidates(
    seen: SeenItems, questions: Questions, *, count: int = 100, seed: int = 0
) -> Int64[np.ndarray, "questions candidates"]:
    """Draw distinct items per question that are no target and were not seen in training.

    The draw depends only on the seed, the question's user and its position in their history, not on
    the other questions. Where fewer than `count` items are left, all of them are taken, padded with
    row 0.

    DIFFERS(code): Xu et al. 2019 draw anew at every evaluation, may draw an item twice, and may
    draw the target.
    """
    targets = np.diff(questions.target_offsets)
    # As many more as a question has targets, since that many of the drawn may be targets.
    width = count + int(targets.max(initial=0))
    unseen = seen.unseen_counts[questions.users]
    numbers = np.zeros((len(questions), width), dtype=np.int64)
    for question, (user, end) in enumerate(zip(questions.users, questions.ends, strict=True)):
        rng = np.random.default_rng([seed, int(user), int(end)])
        size = min(int(unseen[question]), count + int(targets[question]))
        numbers[question, :size] = rng.choice(int(unseen[question]), size, replace=False)
        numbers[question, size:] = -1
    rows = seen.select_unseen(questions.users, np.maximum(numbers, 0))
    rows[numbers < 0] = 0
    target_keys = np.unique(questions.question_of * (seen.items + 1) + questions.target_rows)
    keys = np.arange(len(questions))[:, None] * (seen.items + 1) + rows
    rows[np.isin(keys, target_keys)] = 0
    # The first `count` that are left, in the order drawn.
    kept = np.argsort(rows == 0, axis=1, kind="stable")[:, :count]
    sampled: NDArray[np.int64] = np.take_along_axis(rows, kept, axis=1)
    return sampled
