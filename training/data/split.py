"""Splits of a data set: training events, and the questions of validation and test.

The catalog of a split holds the items of its training events, so that it depends on no later event.
Items with fewer than `min_item_events` of these are left out of it. A target that it does not hold
is cold: it counts, and cannot be found.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from model.catalog import Catalog
from model.config import Config
from model.errors import TrainingError
from training.data.dataset import Dataset

Predict = Literal["next_event", "next_basket"]
"""The target of a position: the next event, or all events of the next instant."""


@dataclass(frozen=True)
class Questions:
    """Evaluation questions: given a user's events before `ends`, which items come at `query_times`?

    Attributes:
        users: user index per question.
        ends: absolute event index per question; the history is the user's events before it.
        query_times: epoch microseconds per question.
        target_offsets: question `q` owns targets `target_offsets[q]` up to `target_offsets[q + 1]`.
        target_rows: catalog rows of the targets; 0 if the catalog does not hold the item.
    """

    users: NDArray[np.int64]
    ends: NDArray[np.int64]
    query_times: NDArray[np.int64]
    target_offsets: NDArray[np.int64]
    target_rows: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.users)

    @property
    def question_of(self) -> NDArray[np.int64]:
        """The question of every target."""
        return np.repeat(np.arange(len(self)), np.diff(self.target_offsets))

    def select(self, chosen: NDArray[np.int64]) -> "Questions":
        """Select the questions of some indices, in that order."""
        counts = np.diff(self.target_offsets)[chosen]
        targets = expand_spans(self.target_offsets[chosen], counts)
        return Questions(
            users=self.users[chosen],
            ends=self.ends[chosen],
            query_times=self.query_times[chosen],
            target_offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            target_rows=self.target_rows[targets],
        )


@dataclass(frozen=True)
class Split:
    """A data set split into training events, validation questions and test questions.

    Attributes:
        dataset: the events, with a catalog of the items of the training events.
        train_ends: per user, the absolute index of the first event that is not for training.
        test_starts: per user, the absolute index of the first event of the test; the events before
            it are known at test time.
        validation: the questions of early stopping.
        test: the questions of the report.
        min_item_events: the training events that an item of the catalog has at least.
    """

    dataset: Dataset
    train_ends: NDArray[np.int64]
    test_starts: NDArray[np.int64]
    validation: Questions
    test: Questions
    min_item_events: int = 1

    @property
    def is_training(self) -> NDArray[np.bool_]:
        """Whether each event is a training event, which is of an item of the catalog."""
        return is_before(self.dataset, self.train_ends) & (self.dataset.rows > 0)

    @property
    def is_known_before_test(self) -> NDArray[np.bool_]:
        """Whether each event is before the test; references are fitted on these."""
        return is_before(self.dataset, self.test_starts)

    def move_to_test(self, whole: Dataset, predict: Predict) -> "Split":
        """Move the validation events into the training part; no validation questions are left.

        Args:
            whole: the data set that was split, with the items of all its events.
        """
        known = is_before(whole, self.test_starts)
        limited = whole.limit_catalog(known, min_item_events=self.min_item_events)
        return Split(
            dataset=limited,
            train_ends=self.test_starts,
            test_starts=self.test_starts,
            validation=self.validation.select(np.zeros(0, dtype=np.int64)),
            test=build_questions(limited, self.test.ends, predict, whole=whole),
            min_item_events=self.min_item_events,
        )

    def reindex(
        self, whole: Dataset, predict: Predict, catalog: Catalog, actions: tuple[str, ...]
    ) -> "Split":
        """Replace the rows by those of another catalog, such as a published one.

        Args:
            whole: the data set that was split: the other catalog may hold items of it that are not
                in the training part.
        """
        dataset = whole.reindex(catalog, actions)
        return Split(
            dataset=dataset,
            train_ends=self.train_ends,
            test_starts=self.test_starts,
            validation=build_questions(dataset, self.validation.ends, predict, whole=whole),
            test=build_questions(dataset, self.test.ends, predict, whole=whole),
            min_item_events=self.min_item_events,
        )


class LeaveOneOutConfig(Config):
    """The last event or basket of every user is the test, the one before it the validation."""

    kind: Literal["leave_one_out"] = "leave_one_out"

    def split(self, dataset: Dataset, predict: Predict, min_item_events: int = 1) -> Split:
        """Split the data set; users with fewer than three events, or baskets, only train."""
        starts, ends = dataset.offsets[:-1], dataset.offsets[1:]
        begins = np.arange(len(dataset)) if predict == "next_event" else find_basket_begins(dataset)
        tested = begins[ends - 1]
        validated = begins[np.maximum(tested - 1, starts)]
        has_three = (validated > starts) & (tested > validated)
        return _assemble(
            dataset,
            (np.where(has_three, validated, ends), np.where(has_three, tested, ends)),
            validated[has_three],
            tested[has_three],
            predict,
            min_item_events,
        )


class ByTimeConfig(Config):
    """Split at two instants; the test is each user's first event or basket after the second."""

    kind: Literal["by_time"] = "by_time"
    test: float = Field(default=0.1, gt=0, lt=0.5)
    """Share of the test, the latest."""
    validation: float = Field(default=0.1, gt=0, lt=0.5)
    """Share of the validation, just before the test."""
    of: Literal["events", "span"] = "events"
    """Whether the shares are of the events, in order of time, or of the time span."""

    def split(self, dataset: Dataset, predict: Predict, min_item_events: int = 1) -> Split:
        """Split the data set."""
        before_test = _find_first_at_or_after(dataset, self._find_cut(dataset, self.test))
        before_validation = _find_first_at_or_after(
            dataset, self._find_cut(dataset, self.test + self.validation)
        )
        starts, ends = dataset.offsets[:-1], dataset.offsets[1:]
        validated = (before_validation > starts) & (before_validation < before_test)
        tested = (before_test > starts) & (before_test < ends)
        return _assemble(
            dataset,
            (before_validation, before_test),
            before_validation[validated],
            before_test[tested],
            predict,
            min_item_events,
        )

    def _find_cut(self, dataset: Dataset, latest: float) -> int:
        """Find the instant at which the latest share begins, epoch microseconds."""
        if self.of == "events":
            return int(np.quantile(dataset.times, 1 - latest))
        first, last = int(dataset.times.min()), int(dataset.times.max())
        return first + round((last - first) * (1 - latest))


class ByUserConfig(Config):
    """Some users are held out for validation, some for the test, with all their events."""

    kind: Literal["by_user"] = "by_user"
    test: float = Field(default=0.1, gt=0, lt=0.5)
    """Share of the users for the test."""
    validation: float = Field(default=0.1, gt=0, lt=0.5)
    """Share of the users for the validation."""
    seed: int = 0
    """Seed of the assignment of users; independent of the training seed."""

    def split(self, dataset: Dataset, predict: Predict, min_item_events: int = 1) -> Split:
        """Split the users; a question has at least one event before its target."""
        users = len(dataset.user_ids)
        shuffled = np.random.default_rng(self.seed).permutation(users)
        tested = shuffled[: round(users * self.test)]
        validated = shuffled[len(tested) : len(tested) + round(users * self.validation)]
        train_ends = dataset.offsets[1:].copy()
        test_starts = dataset.offsets[1:].copy()
        test_starts[tested] = dataset.offsets[tested]
        train_ends = test_starts.copy()
        train_ends[validated] = dataset.offsets[validated]
        return _assemble(
            dataset,
            (train_ends, test_starts),
            _select_later_events(dataset, np.sort(validated)),
            _select_later_events(dataset, np.sort(tested)),
            predict,
            min_item_events,
        )


SplitConfig = Annotated[
    LeaveOneOutConfig | ByTimeConfig | ByUserConfig, Field(discriminator="kind")
]


def build_questions(
    dataset: Dataset,
    events: NDArray[np.int64],
    predict: Predict,
    *,
    whole: Dataset | None = None,
) -> Questions:
    """Build the questions whose targets are some events, or the baskets that they begin.

    Args:
        events: absolute event indices, each with an event of the same user before it.
        whole: the same events with the items of all of them, if the catalog of `dataset` is
            smaller: two cold items of a basket are two targets.
    """
    if predict == "next_basket":
        starts_basket = find_basket_ends(dataset)[np.maximum(events - 1, 0)] == events
        events = events[starts_basket]
        counts = find_basket_ends(dataset)[events] - events
    else:
        counts = np.ones(len(events), dtype=np.int64)
    targets, question = expand_spans(events, counts), np.repeat(np.arange(len(events)), counts)
    # An item listed twice in a basket is one target.
    items = (dataset if whole is None else whole).rows[targets]
    _, first = np.unique(np.stack((question, items)), axis=1, return_index=True)
    first.sort()
    counts = np.bincount(question[first], minlength=len(events))
    return Questions(
        users=dataset.user_of[events],
        ends=events,
        query_times=dataset.times[events],
        target_offsets=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        target_rows=dataset.rows[targets[first]],
    )


def build_questions_after(dataset: Dataset, instant: int, predict: Predict) -> Questions:
    """Build one question per user: the first event or basket after an instant.

    Users without an event up to the instant have none.

    Args:
        instant: epoch microseconds.
    """
    begins = _find_first_at_or_after(dataset, instant + 1)
    starts, ends = dataset.offsets[:-1], dataset.offsets[1:]
    return build_questions(dataset, begins[(begins > starts) & (begins < ends)], predict)


def expand_spans(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate the spans `start, start + 1, ..., start + count - 1`."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def is_before(dataset: Dataset, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each event is before the end given for its user."""
    return np.arange(len(dataset)) < ends[dataset.user_of]


def find_basket_ends(dataset: Dataset) -> NDArray[np.int64]:
    """Find, per event, the absolute index after the last event of the same user and instant."""
    count = len(dataset)
    changes = (np.diff(dataset.times) != 0) | (np.diff(dataset.user_of) != 0)
    boundaries = np.append(np.flatnonzero(changes) + 1, count)
    return boundaries[np.searchsorted(boundaries, np.arange(count), side="right")]


def find_basket_begins(dataset: Dataset) -> NDArray[np.int64]:
    """Find, per event, the absolute index of the first event of the same user and instant."""
    first = np.append(0, np.unique(find_basket_ends(dataset)))
    return first[np.searchsorted(first, np.arange(len(dataset)), side="right") - 1]


def _find_first_at_or_after(dataset: Dataset, instant: int) -> NDArray[np.int64]:
    """Find, per user, the absolute index of the first event at or after an instant."""
    earlier = np.bincount(dataset.user_of[dataset.times < instant], minlength=len(dataset.user_ids))
    return dataset.offsets[:-1] + earlier


def _select_later_events(dataset: Dataset, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Select all events of some users, except their first."""
    counts = np.diff(dataset.offsets)[users]
    return expand_spans(dataset.offsets[users] + 1, np.maximum(counts - 1, 0))


def _assemble(
    dataset: Dataset,
    ends: tuple[NDArray[np.int64], NDArray[np.int64]],
    validated: NDArray[np.int64],
    tested: NDArray[np.int64],
    predict: Predict,
    min_item_events: int,
) -> Split:
    train_ends, test_starts = ends
    is_training = is_before(dataset, train_ends)
    if not is_training.any():
        raise TrainingError(
            f"a split must leave events to train on, but of {len(dataset)} events of "
            f"{len(dataset.user_ids)} users it leaves nothing to train on; lower the shares of "
            "validation and test, or bring more events"
        )
    limited = dataset.limit_catalog(is_training, min_item_events=min_item_events)
    return Split(
        dataset=limited,
        train_ends=train_ends,
        test_starts=test_starts,
        validation=build_questions(limited, validated, predict, whole=dataset),
        test=build_questions(limited, tested, predict, whole=dataset),
        min_item_events=min_item_events,
    )
