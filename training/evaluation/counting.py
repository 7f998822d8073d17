"""The counting reference: what the user chose often and lately, and what sells now.

An item's score is its share in the user's history, in which each event weighs half after every
half-life, plus a weight times its share of all users' events in a window before the query time.
These three settings are chosen on the validation questions.

The popularity is either frozen at the last event before the test, like that of a model, or live:
counted up to each query time. The two are rows of their own, to be compared with the model's.
"""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np
from jaxtyping import Float32, Float64
from numpy.typing import NDArray
from pydantic import NonNegativeFloat, PositiveFloat

from model.clock import MICROSECONDS_PER_DAY
from model.config import Config
from model.layers.item_counts import WindowDays
from training.coordinate_search import search_by_coordinate
from training.data.dataset import Dataset
from training.data.split import Questions, Split, expand_spans
from training.evaluation.evaluate import rank_targets
from training.evaluation.references import Reference, score_reference

COUNTING = "counting"
COUNTING_LIVE = "counting_live"

HALF_LIVES = (30.0, 60.0, 120.0, 240.0, None)
"""Half-lives to choose from, in days."""

WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Weights of the popularity to choose from."""

WINDOWS = (1.0, 7.0, 28.0, 112.0, None)
"""Windows of the popularity to choose from, in days."""

MOST_QUESTIONS = 2_000
"""Validation questions that the settings are chosen on, at most; of more, a random part."""

MOST_SCORES = 50_000_000
"""Scores of these questions, at most: a large catalog allows fewer questions, but at least 100."""


class CountingSettings(Config):
    """The settings of the counting reference; the defaults are for data without validation."""

    half_life_days: PositiveFloat | None = 120.0
    """Days after which an event of the user weighs half; null for no decay."""
    weight: NonNegativeFloat = 3.0
    """Weight of the popularity beside the user's own shares."""
    window_days: WindowDays | None = 28.0
    """Days before the query time whose events are counted as popularity; null for all."""


@final
@dataclass(frozen=True)
class Counting:
    """Items by their decayed share in the user's history plus weighted recent popularity.

    The whole history counts, including events after the training data. Of the counted events of
    all users, those strictly before the query time are read. If the query is later than all of
    them, the window ends with the last one.

    Attributes:
        dataset: holds the histories.
        rows: catalog rows of the counted events, in order of time.
        times: of the counted events, epoch microseconds.
    """

    settings: CountingSettings
    dataset: Dataset
    rows: NDArray[np.int32]
    times: NDArray[np.int64]

    @classmethod
    def fit(
        cls, dataset: Dataset, is_counted: NDArray[np.bool_], settings: CountingSettings
    ) -> Self:
        """Sort the events that are counted as popularity by time."""
        known = np.flatnonzero(is_counted & (dataset.rows > 0))
        known = known[np.argsort(dataset.times[known], kind="stable")]
        return cls(settings, dataset, dataset.rows[known], dataset.times[known])

    def score(self, questions: Questions) -> Float32[np.ndarray, "questions rows"]:
        """Add the user's own shares and the weighted popularity."""
        scores = self._compute_own_shares(questions)
        if self.settings.weight > 0:
            popularity, line_of = self._compute_popularity(questions.query_times)
            scores += self.settings.weight * popularity[line_of]
        return scores.astype(np.float32)

    def _compute_own_shares(self, questions: Questions) -> Float64[np.ndarray, "questions rows"]:
        """Compute the decayed share of every item in each history; zeros without a known event."""
        dataset, items = self.dataset, len(self.dataset.catalog) + 1
        starts = dataset.offsets[questions.users]
        counts = questions.ends - starts
        events = expand_spans(starts, counts)
        question = np.repeat(np.arange(len(questions)), counts)
        is_known = dataset.rows[events] > 0
        events, question = events[is_known], question[is_known]
        weights = np.ones(len(events))
        if self.settings.half_life_days is not None:
            age = questions.query_times[question] - dataset.times[events]
            weights = np.exp2(-age / (self.settings.half_life_days * MICROSECONDS_PER_DAY))
        keys = question * items + dataset.rows[events]
        # Without an event, bincount ignores its weights and returns integers.
        sums = np.bincount(keys, weights, minlength=len(questions) * items).astype(np.float64)
        return _divide_by_sums(sums.reshape(len(questions), items))

    def _compute_popularity(
        self, query_times: NDArray[np.int64]
    ) -> tuple[Float64[np.ndarray, "windows rows"], NDArray[np.int64]]:
        """Compute the shares of all items in each distinct window, and the window of each query."""
        items = len(self.dataset.catalog) + 1
        if not len(self.times):
            return np.zeros((1, items)), np.zeros(len(query_times), dtype=np.int64)
        ends = np.minimum(query_times, self.times[-1] + 1)
        begins = np.full_like(ends, self.times[0])
        if self.settings.window_days is not None:
            begins = ends - round(self.settings.window_days * MICROSECONDS_PER_DAY)
        windows = np.searchsorted(self.times, np.stack([begins, ends], axis=1))
        distinct, line_of = np.unique(windows, axis=0, return_inverse=True)
        counts = np.zeros((len(distinct), items))
        # Both ends of the windows ascend, so each differs from the one before it by few events.
        now, begin, end = np.zeros(items), *distinct[0, [0, 0]]
        for line, (next_begin, next_end) in enumerate(distinct):
            now += np.bincount(self.rows[end:next_end], minlength=items)
            now -= np.bincount(self.rows[begin:next_begin], minlength=items)
            counts[line] = now
            begin, end = next_begin, next_end
        return _divide_by_sums(counts), line_of


def fit_counting(
    dataset: Dataset, is_known: NDArray[np.bool_], settings: CountingSettings
) -> dict[str, Reference]:
    """Fit the reference with frozen and with live popularity; the keys are the names in tables.

    Args:
        is_known: the events before the test, which the frozen popularity counts; the live one
            counts all.
    """
    everything = np.ones(len(dataset), dtype=np.bool_)
    return {
        COUNTING: Counting.fit(dataset, is_known, settings),
        COUNTING_LIVE: Counting.fit(dataset, everything, settings),
    }


def tune_counting(split: Split, *, exclude_seen: bool) -> CountingSettings:
    """Choose the settings with the best NDCG@10 on the validation questions.

    Popularity is that of the training events. One setting is changed at a time, until no change
    improves the metric. Without validation questions the defaults are returned.

    Args:
        exclude_seen: whether the items of the user's history are left out.
    """
    questions = split.validation
    settings = CountingSettings()
    if not len(questions):
        return settings
    most = min(MOST_QUESTIONS, max(MOST_SCORES // (len(split.dataset.catalog) + 1), 100))
    if len(questions) > most:
        drawn = np.random.default_rng(0).choice(len(questions), most, replace=False)
        questions = questions.select(np.sort(drawn))
    reference = Counting.fit(split.dataset, split.is_training, settings)

    def measure(tried: dict[str, float | None]) -> float:
        settings = CountingSettings.model_validate(tried)
        blocks = score_reference(
            replace(reference, settings=settings), questions, len(split.dataset.catalog)
        )
        ranks = rank_targets(blocks, split.dataset, questions, exclude_seen=exclude_seen)
        return float(ranks.ndcg(10).mean())

    values: dict[str, tuple[float | None, ...]] = {
        "weight": WEIGHTS,
        "half_life_days": HALF_LIVES,
        "window_days": WINDOWS,
    }
    best = search_by_coordinate(values, settings.model_dump(), measure)
    return CountingSettings.model_validate(best)


def _divide_by_sums(counts: Float64[np.ndarray, "lines rows"]) -> Float64[np.ndarray, "lines rows"]:
    """Divide each line by its sum; a line of zeros stays."""
    sums = counts.sum(axis=1, keepdims=True)
    shares: NDArray[np.float64] = np.divide(
        counts, sums, out=np.zeros(counts.shape), where=sums > 0
    )
    return shares
