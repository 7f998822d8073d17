"""Popularity over time: how often each item was chosen before any instant, over several half-lives.

What sells this month is in no single history. Events are counted per item and span of time; the
counts, halved every quarter of a day, day, 4, 16, 64 and 256 days, and never, become shares of all
events. Their logarithms are features of an item's score.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from numpy.typing import NDArray
from torch import Tensor

from model.clock import MICROSECONDS_PER_DAY

HALF_LIVES = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
"""Days after which a counted event weighs half; the last feature halves nothing."""

FEATURES = len(HALF_LIVES) + 2
"""Per item: the log share at each half-life, that of all time, and 1 if it was never counted."""

_WIDTHS = (1 / 1440, 1 / 96, 1 / 24, 0.25, 0.5, 1.0, 7.0, 28.0, 84.0, 364.0)
"""Widths of spans, in days, of which the shortest that the budgets allow is chosen."""

MOST_SPANS = 3_000
"""Spans of a data set, at most."""

_LEAST_SPANS = 4
"""Spans of a window whose events are counted, at least."""

MOST_FEATURES = 60_000_000
"""Features of all items at all spans, at most: 240 MB while a model is trained."""


class DecayedCounts(NamedTuple):
    """Events per item up to an instant, one line per half-life, the last without decay.

    Attributes:
        at: epoch microseconds; events at it are not counted.
        counts: column 0 is padding.
    """

    at: int
    counts: Float64[np.ndarray, "lines rows"]

    @classmethod
    def start(cls, at: int, rows: int) -> "DecayedCounts":
        """Begin to count at an instant, for `rows` catalog rows including padding."""
        return cls(at, np.zeros((len(HALF_LIVES) + 1, rows)))

    def advance(self, at: int, events: "CountedSpans") -> "DecayedCounts":
        """Decay the counts up to a later instant, and add events from before it."""
        days = (at - self.at) / MICROSECONDS_PER_DAY
        counts = self.counts * _decay(np.float64(days))[:, None]
        if len(events.items):
            # Those of a span have one time, and an exponential takes several times a copy.
            decay = _decay((at - events.middles) / MICROSECONDS_PER_DAY)
            decayed = np.repeat(decay, np.diff(events.offsets), axis=1) * events.counts
            for line, added in enumerate(decayed):
                counts[line] += np.bincount(events.items, added, minlength=counts.shape[1])
        return DecayedCounts(at, counts)

    def features(self) -> Float[Tensor, "features rows"]:
        """Compute the features of every item.

        A share is that of the item among the events of its half-life, blended with its share at the
        next longer one; the longest is blended with equal shares. The blend's weight is the number
        of different items among the events (Witten and Bell 1991): where most events are of
        items not seen before, shares say little.
        """
        lines, rows = self.counts.shape
        features = np.empty((FEATURES, rows), dtype=np.float32)
        share = np.full(rows, 1 / max(rows - 1, 1))
        # Exponentials and logarithms as float32: those of float64 take several times as long.
        unseen = np.exp(-self.counts.astype(np.float32)).sum(axis=1, dtype=np.float64)
        different = np.maximum(rows - unseen, 1.0)
        totals = self.counts.sum(axis=1) + different
        for line in reversed(range(lines)):
            share *= different[line]
            share += self.counts[line]
            share /= totals[line]
            features[line] = share
        np.log(features[:lines], out=features[:lines])
        features[-1] = self.counts[-1] < 0.5
        features[:, 0] = 0.0
        return torch.from_numpy(features)


class CountedSpans(NamedTuple):
    """Consecutive spans of time, and the events of items that were counted in each.

    Attributes:
        middles: of each span that has events, epoch microseconds; it stands for their times.
        offsets: where the counts of each span begin, and where those of the last one end.
        items: catalog rows.
        counts: events of the item in the span.
    """

    middles: NDArray[np.int64]
    offsets: NDArray[np.int64]
    items: NDArray[np.int32]
    counts: NDArray[np.int32]


class Checkpoint(NamedTuple):
    """The decayed counts at one snapshot, from which later ones are computed."""

    snapshot: int
    state: DecayedCounts


class CountedEvents(NamedTuple):
    """Events of items, counted per catalog row and span of time.

    Attributes:
        items: catalog rows.
        times: an instant within the span, epoch microseconds.
        counts: events of the item in the span.
        last_at: the last event's time, epoch microseconds.
    """

    items: NDArray[np.int32]
    times: NDArray[np.int64]
    counts: NDArray[np.int32]
    last_at: int


@final
@dataclass(frozen=True, eq=False)
class Popularity:
    """Events counted per item and span of time.

    A *snapshot* is the popularity as of the start of a span, from the events strictly before it;
    the last one is that of all events. Immutable, and shared by copies of a model.

    Attributes:
        first_at: start of the first span, epoch microseconds.
        end_at: just after the last event, epoch microseconds.
        width: microseconds of a span.
        rows: catalog rows, padding included.
        spans: the span of each count, ascending.
        items: the catalog row of each count.
        counts: events of the item in the span.
    """

    first_at: int
    end_at: int
    width: int
    rows: int
    spans: NDArray[np.int32] = field(repr=False)
    items: NDArray[np.int32] = field(repr=False)
    counts: NDArray[np.int32] = field(repr=False)

    @classmethod
    def count(
        cls, items: NDArray[np.int32], times: NDArray[np.int64], *, rows: int
    ) -> "Popularity":
        """Count events in spans as short as the budgets allow.

        A few events long before all others count as if they were at the time of the first of those:
        spans would become too long to show any change.

        Args:
            items: the catalog row of each event; 0 is not counted.
            times: epoch microseconds.
            rows: catalog rows, padding included.
        """
        known = items > 0
        items, times = items[known], times[known]
        if not len(items):
            return cls(0, 0, MICROSECONDS_PER_DAY, rows, *(np.zeros(0, np.int32) for _ in range(3)))
        times = _clip_stray(times)
        end = int(times.max()) + 1
        width = _choose_width(end - int(times.min()), rows)
        # Whole spans since the epoch, so that a day is a day of UTC.
        first = int(times.min()) // width * width
        keys = (times - first) // width * rows + items
        distinct, counts = np.unique(keys, return_counts=True)
        return cls(
            first_at=first,
            end_at=end,
            width=width,
            rows=rows,
            spans=(distinct // rows).astype(np.int32),
            items=(distinct % rows).astype(np.int32),
            counts=counts.astype(np.int32),
        )

    def __deepcopy__(self, memo: dict[int, object]) -> "Popularity":
        return self

    def extend(self, later: CountedEvents) -> "Popularity":
        """Count later events too, in spans of the same width.

        Args:
            later: events at or after `end_at`.
        """
        if not len(later.items):
            return self
        spans = (later.times - self.first_at) // self.width
        order = np.argsort(spans, kind="stable")
        return Popularity(
            first_at=self.first_at,
            end_at=max(later.last_at + 1, self.end_at),
            width=self.width,
            rows=self.rows,
            spans=np.append(self.spans, spans[order].astype(np.int32)),
            items=np.append(self.items, later.items[order]),
            counts=np.append(self.counts, later.counts[order]),
        )

    @property
    def snapshots(self) -> int:
        """The number of snapshots."""
        return -(-(self.end_at - self.first_at) // self.width) + 1

    @property
    def last(self) -> int:
        """The snapshot of all events."""
        return self.snapshots - 1

    def find(self, instants: Int64[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
        """Find the latest snapshot at or before each instant; the first one if there is none.

        Args:
            instants: epoch microseconds.
        """
        spans = torch.div(instants - self.first_at, self.width, rounding_mode="floor")
        spans = spans.clamp(0, max(self.last - 1, 0))
        return torch.where(instants >= self.end_at, self.last, spans)

    def compute_features(
        self, snapshots: Sequence[int]
    ) -> Float[Tensor, "snapshots features rows"]:
        """Compute the features of all items at some snapshots, ascending, in one pass."""
        features = torch.empty(len(snapshots), FEATURES, self.rows)
        for index, reached in enumerate(self.iter_checkpoints(snapshots)):
            features[index] = reached.state.features()
        return features

    def iter_checkpoints(
        self, snapshots: Iterable[int], checkpoint: "Checkpoint | None" = None
    ) -> Iterator["Checkpoint"]:
        """Yield the decayed counts at some snapshots, ascending, in one pass.

        Args:
            checkpoint: to begin from, at or before the first of the snapshots.
        """
        reached, state = checkpoint or Checkpoint(0, DecayedCounts.start(self.first_at, self.rows))
        for snapshot in snapshots:
            if reached < snapshot:
                end = min(self.first_at + snapshot * self.width, self.end_at)
                state = state.advance(end, self._select_spans(reached, snapshot))
                reached = snapshot
            yield Checkpoint(reached, state)

    def compute_state(self) -> DecayedCounts:
        """Compute the decayed counts of all events, to continue from."""
        state = DecayedCounts.start(self.first_at, self.rows)
        return state.advance(self.end_at, self._select_spans(0, self.snapshots))

    def count_recent(self, days: float) -> Int64[np.ndarray, " items"]:
        """Count the events of every item in the last days up to `end_at`.

        Returns:
            Events per item, without padding, of all spans that reach into these days.
        """
        since = self.end_at - days * MICROSECONDS_PER_DAY
        recent = self.first_at + (self.spans.astype(np.int64) + 1) * self.width > since
        counts = np.bincount(self.items[recent], self.counts[recent], minlength=self.rows)
        return counts[1:].astype(np.int64)

    def count_windows(
        self, rows: NDArray[np.int64], before: int, days: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Count the events of some items in the last days before an instant, and in those before.

        Only whole spans are counted: the windows end with the last one that has ended by then.

        Args:
            before: epoch microseconds.

        Returns:
            The recent and the earlier events of each item; None where the counts do not reach over
            both windows, or spans are longer than a quarter of one.
        """
        width = round(days * MICROSECONDS_PER_DAY / self.width)
        end = (min(before, self.end_at) - self.first_at) // self.width
        # The first span may begin before the data.
        if width < _LEAST_SPANS or end - 2 * width < 1:
            return None
        bounds = np.searchsorted(self.spans, (end - 2 * width, end - width, end)).tolist()
        earlier, recent = (
            np.bincount(self.items[part], self.counts[part], minlength=self.rows)[rows]
            for part in (slice(*bounds[:2]), slice(*bounds[1:]))
        )
        return recent.astype(np.int64), earlier.astype(np.int64)

    def _select_spans(self, begin: int, end: int) -> CountedSpans:
        """Select the spans from `begin` to before `end` that have counts."""
        first, last = np.searchsorted(self._spans_with_counts, (begin, end)).tolist()
        spans = self._spans_with_counts[first:last]
        begins = self.first_at + spans.astype(np.int64) * self.width
        offsets = self._offsets[first : last + 1]
        part = slice(offsets[0], offsets[-1])
        return CountedSpans(
            middles=(begins + np.minimum(begins + self.width, self.end_at)) // 2,
            offsets=offsets,
            items=self.items[part],
            counts=self.counts[part],
        )

    @cached_property
    def first_counts(self) -> Int64[Tensor, " rows"]:
        """Count the events of every item in the first span that has any; 0 without events."""
        counts = np.zeros(self.rows, dtype=np.int64)
        items, first = np.unique(self.items, return_index=True)
        counts[items] = self.counts[first]
        return torch.from_numpy(counts)

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        """Find where the counts of each span that has any begin, and where the last ones end."""
        begins = np.flatnonzero(np.diff(self.spans, prepend=-1))
        return np.append(begins, len(self.spans))

    @cached_property
    def _spans_with_counts(self) -> NDArray[np.int32]:
        return self.spans[self._offsets[:-1]]


def _decay(days: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
    """Compute the weights after some days: one line per half-life, the last of ones."""
    half_lives = np.array((*HALF_LIVES, np.inf))
    weights: NDArray[np.float64] = np.exp2(-np.divide.outer(days, half_lives)).T
    return weights


def _clip_stray(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Move the earliest thousandth of the events later, if they make up most of the span."""
    begin = int(np.partition(times, len(times) // 1_000)[len(times) // 1_000])
    end = int(times.max())
    is_stray = end - int(times.min()) > 2 * (end - begin)
    return np.maximum(times, begin) if is_stray else times


def _choose_width(span: int, rows: int) -> int:
    most = max(min(MOST_SPANS, MOST_FEATURES // (FEATURES * rows)), 1)
    for days in _WIDTHS:
        width = round(days * MICROSECONDS_PER_DAY)
        if span // width + 2 <= most:
            return width
    return -(-span // most) + 1
