"""Items that a user has not met in training: what losses and sampled metrics contrast with."""

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
class MetItems:
    """What every user has met in training, and so every item that is fit to be their negative.

    The items that a user has not met are counted in the order of their rows, so the n-th of them is
    found by bisection. Draws are exact, and none is ever thrown away.

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
        """Items in the catalogue, without padding."""
        return len(self.dataset.catalog)

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        """`user * (items + 1) + row` of every pair that met, ascending."""
        learned = is_before(self.dataset, self.train_ends) & (self.dataset.rows > 0)
        keys = self.dataset.user_of[learned] * (self.items + 1) + self.dataset.rows[learned]
        return np.unique(keys)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The place of every user's first key, and the end."""
        return np.searchsorted(self._keys, np.arange(len(self) + 1) * (self.items + 1))

    @cached_property
    def _unmet_below(self) -> NDArray[np.int64]:
        """`user * (items + 1) +` how many unmet items stand before each met one; ascending."""
        users = self._keys // (self.items + 1)
        met_before = np.arange(len(users)) - self._starts[users]
        below: NDArray[np.int64] = self._keys - 1 - met_before
        return below

    @cached_property
    def unmet_counts(self) -> Int64[np.ndarray, " users"]:
        """How many items of the catalogue each user has not met."""
        counts: NDArray[np.int64] = self.items - np.diff(self._starts)
        return counts

    def has_met(
        self, users: Int64[np.ndarray, " pairs"], rows: Int64[np.ndarray, " pairs"]
    ) -> Bool[np.ndarray, " pairs"]:
        """Whether a user has met an item."""
        keys = users * (self.items + 1) + rows
        places = np.searchsorted(self._keys, keys)
        found: NDArray[np.bool_] = places < len(self._keys)
        found[found] = self._keys[places[found]] == keys[found]
        return found

    def unmet(
        self, users: Int64[np.ndarray, " owners"], places: Int64[np.ndarray, "owners count"]
    ) -> Int64[np.ndarray, "owners count"]:
        """The items that stand at some places, from 0, among those a user has not met."""
        keys = users[:, None] * (self.items + 1) + places
        met_before = np.searchsorted(self._unmet_below, keys, side="right")
        rows: NDArray[np.int64] = places + 1 + met_before - self._starts[users][:, None]
        return rows

    def draw(
        self, users: Int64[np.ndarray, " owners"], count: int, rng: np.random.Generator
    ) -> Int64[np.ndarray, "owners count"]:
        """Items drawn uniformly, with replacement, from those that each user has not met.

        For a user who has met everything, the whole catalogue is drawn from.

        DIFFERS(code): Xu et al. 2019 mean to leave out what was met, but their check never holds.
        """
        unmet = self.unmet_counts[users]
        has_any = (unmet > 0)[:, None]
        most = np.where(unmet > 0, unmet, self.items)[:, None]
        places = rng.integers(0, most, size=(len(users), count))
        drawn: NDArray[np.int64] = np.where(has_any, self.unmet(users, places), places + 1)
        return drawn


def sample_candidates(
    met: MetItems, questions: Questions, *, count: int = 100, seed: int = 0
) -> Int64[np.ndarray, "questions candidates"]:
    """For every question, distinct items that are no target and were not met in training.

    A question's draw depends on its user, its place in their history and the seed alone: whoever
    is asked meets the same items, in whatever company the question comes. Where fewer than `count`
    are left, all of them are taken, and padding (row 0) fills up.

    DIFFERS(code): Xu et al. 2019 draw anew at every evaluation, may draw an item twice, and may
    draw the target.
    """
    targets = np.diff(questions.target_offsets)
    # As many more as a question has targets: that many of the drawn may have to be put aside.
    width = count + int(targets.max(initial=0))
    unmet = met.unmet_counts[questions.users]
    places = np.zeros((len(questions), width), dtype=np.int64)
    for number, (user, end) in enumerate(zip(questions.users, questions.ends, strict=True)):
        rng = np.random.default_rng([seed, int(user), int(end)])
        size = min(int(unmet[number]), count + int(targets[number]))
        places[number, :size] = rng.choice(int(unmet[number]), size, replace=False)
        places[number, size:] = -1
    rows = met.unmet(questions.users, np.maximum(places, 0))
    rows[places < 0] = 0
    asked = np.unique(questions.question_of * (met.items + 1) + questions.target_rows)
    keys = np.arange(len(questions))[:, None] * (met.items + 1) + rows
    rows[np.isin(keys, asked)] = 0
    # The first `count` that are left, in the order drawn.
    kept = np.argsort(rows == 0, axis=1, kind="stable")[:, :count]
    sampled: NDArray[np.int64] = np.take_along_axis(rows, kept, axis=1)
    return sampled
