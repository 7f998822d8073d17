"""One history at many query times: how attention and recommendations change with time."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress, groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from model.batch import KnownHistory, collate
from model.bundle.bundle import Bundle
from model.catalog import PADDING_ROW, Catalog
from model.clock import days_between
from model.errors import UnknownHeadError
from model.history import Event, Query, sort_key
from model.inference.answers import Constraints, Sweep, SweptInstant
from model.inference.filling import fill_up
from model.inference.query import count_own_events, list_warnings, read_history
from model.inference.ranking import Ranking, rank_encoded, rank_rows
from model.inference.selection import NO_ROWS, Rows, Selection, select_rows
from model.inference.steps import Steps

AllowedAt = Callable[[int], NDArray[np.bool_] | None]
"""The rows that may be recommended at an instant, as `Constraints.allowed` has them."""

_STEP_EVENTS = 512
"""Events that are encoded side by side, in one step; at least one history is."""

_STEP_PAIRS = 131_072
"""Pairs of events that attend to each other at the query times of one step, where these share the
encoding of all other events."""


class _Group(NamedTuple):
    """Instants that one run of the model ranks, and whether they share one encoding."""

    instants: list["_Instant"]
    is_shared: bool


class HistoryLimits(NamedTuple):
    """How many of a history's events one query time uses, the most recent ones up to it.

    A history that is read for many query times is longer than one that is read for one of them.

    Attributes:
        read: events among which the model finds those that it reads.
        seen: events whose items count as seen.
    """

    read: int
    seen: int


class _Reading(NamedTuple):
    """The events of a history that any query time uses, and where each one's begin and end.

    Attributes:
        history: the known events.
        ranges: per query time, the positions in `history` of the first event among which the model
            reads, and of the end.
        seen: per query time, the rows of the items that are left out as seen.
    """

    history: KnownHistory
    ranges: list[tuple[int, int]]
    seen: list[Rows]


class _Instant(NamedTuple):
    """One query time, and the events that the model reads at it: positions start..end.

    Attributes:
        own: how many of the last ones depend on the query time.
        is_truncated: whether there are known events before the first one.
    """

    query_index: int
    query_time: int
    start: int
    end: int
    own: int
    is_truncated: bool
    selection: Selection

    def count_events(self) -> int:
        """Count the events that are read."""
        return self.end - self.start

    def count_pairs(self) -> int:
        """Count the pairs of events in which one depends on the query time."""
        return self.own * (self.end - self.start + self.own)


def sweep(
    bundle: Bundle,
    query: Query,
    query_times: Sequence[int],
    constraints: Constraints,
    allowed_at: AllowedAt | None,
    limits: HistoryLimits | None,
    head: int | None,
) -> Steps[Sweep]:
    """Rank the catalog for one history at each query time, in steps; see `Predictor.sweep`."""
    reading = _read_windows(bundle, query, query_times, constraints, limits)
    history = reading.history
    yield
    instants = yield from _build_instants(bundle, reading, query_times, constraints, allowed_at)
    rankings: dict[int, Ranking] = {}
    weights: dict[int, list[float] | None] = {}
    withheld = query.query_time_withheld
    for group in _group_instants(bundle, instants, withheld=withheld):
        ranked = yield from _rank_group(bundle, history, group, withheld=withheld)
        indices = [instant.query_index for instant in group.instants]
        rankings.update(zip(indices, ranked, strict=True))
        weights.update(zip(indices, _list_weights(ranked, head), strict=True))
    is_read = np.zeros(len(history.events), dtype=np.bool_)
    for instant in instants:
        is_read[instant.start : instant.end] = True
    positions = np.concatenate(([0], np.cumsum(is_read)))
    swept: list[SweptInstant] = []
    for instant in instants:
        index = instant.query_index
        swept.append(
            _build_swept_instant(
                bundle, instant, rankings.get(index), weights.get(index), constraints, positions
            )
        )
        yield
    has_intensities = any(instant.intensities is not None for instant in swept)
    return Sweep(
        events=tuple(compress(history.events, is_read)),
        rows=tuple(history.rows[is_read].tolist()),
        instants=tuple(swept),
        unknown_item_ids=history.unknown_item_ids,
        normalised=bundle.recommender.encoder.is_normalised,
        groups=bundle.manifest.recommender.groups if has_intensities else None,
        warnings=tuple(dict.fromkeys(code for instant in swept for code in instant.warnings)),
    )


def _read_windows(
    bundle: Bundle,
    query: Query,
    query_times: Sequence[int],
    constraints: Constraints,
    limits: HistoryLimits | None,
) -> _Reading:
    """Look up the events that any query time uses."""
    events = query.history
    read, seen = limits or (len(events), len(events))
    times = [event.at for event in events]
    ends = [bisect_right(times, query_time) for query_time in query_times]
    is_used = np.zeros(len(events), dtype=np.bool_)
    for end in ends:
        is_used[max(0, end - read) : end] = True
    used = replace(query, history=tuple(compress(events, is_used)))
    history = read_history(bundle, used, max_history=max(len(used.history), 1))

    def find(position: int) -> int:
        """Find the first known event that is not before an event of the query."""
        return bisect_left(history.events, sort_key(events[position]), key=sort_key)

    ranges = [
        (
            find(max(0, end - read)),
            bisect_right(history.events, events[end - 1].at, key=attrgetter("at")),
        )
        if end
        else (0, 0)
        for end in ends
    ]
    return _Reading(history, ranges, _find_seen(bundle.catalog, events, ends, constraints, seen))


def _find_seen(
    catalog: Catalog, events: Sequence[Event], ends: Sequence[int], constraints: Constraints, n: int
) -> list[Rows]:
    """Find the rows of the items of the last `n` events before each end, if they are left out."""
    if not constraints.exclude_seen:
        return [NO_ROWS] * len(ends)
    rows = np.array([catalog.find(event.item_id) or PADDING_ROW for event in events], np.int64)
    found = {end: np.setdiff1d(rows[max(0, end - n) : end], PADDING_ROW) for end in set(ends)}
    return [found[end] for end in ends]


def _build_instants(
    bundle: Bundle,
    reading: _Reading,
    query_times: Sequence[int],
    constraints: Constraints,
    allowed_at: AllowedAt | None,
) -> Steps[list[_Instant]]:
    catalog, max_history = bundle.catalog, bundle.manifest.max_history
    encoder = bundle.recommender.encoder
    known_times = [event.at for event in reading.history.events]
    instants = []
    for query_index, query_time in enumerate(query_times):
        if allowed_at is not None:
            constraints = replace(constraints, allowed=allowed_at(query_time))
        selection = select_rows(
            catalog,
            reading.seen[query_index],
            constraints,
            has_item_space=encoder.has_item_space,
        )
        first, end = reading.ranges[query_index]
        start = max(first, end - max_history)
        own = count_own_events(encoder, known_times, start, end)
        instants.append(
            _Instant(query_index, query_time, start, end, own, start > first, selection)
        )
        yield
    return instants


def _group_instants(
    bundle: Bundle, instants: Sequence[_Instant], *, withheld: bool
) -> Iterator[_Group]:
    """Group the instants that one run of the model can rank; those before any event need none.

    Instants share an encoding that begins at the same event, and ends at the same event unless
    the recommender sweeps prefixes.
    """
    recommender = bundle.recommender
    single: list[_Instant] = []
    reading = (one for one in instants if one.count_events())
    read = sorted(reading, key=lambda one: (one.start, one.end))

    def find_shared(one: _Instant) -> tuple[int, int]:
        return one.start, 0 if recommender.sweeps_prefixes else one.end

    for _, same_events in groupby(read, key=find_shared):
        group = list(same_events)
        if recommender.sweeps_share_history and len(group) > 1 and not withheld:
            for part in _divide(group, _Instant.count_pairs, _STEP_PAIRS):
                yield _Group(part, is_shared=True)
        else:
            single += group
    # Sorted by length, so that little is padded.
    single.sort(key=lambda one: one.end)
    for part in _divide(single, _Instant.count_events, _STEP_EVENTS):
        yield _Group(part, is_shared=False)


def _divide(
    instants: Sequence[_Instant], count: Callable[[_Instant], int], most: int
) -> Iterator[list[_Instant]]:
    """Divide instants into groups of at most so much work, if each is padded to the largest."""
    group: list[_Instant] = []
    largest = 0
    for instant in instants:
        largest = max(largest, count(instant))
        if group and largest * (len(group) + 1) > most:
            yield group
            group, largest = [], count(instant)
        group.append(instant)
    if group:
        yield group


def _rank_group(
    bundle: Bundle, history: KnownHistory, group: _Group, *, withheld: bool
) -> Steps[list[Ranking]]:
    """Rank the catalog for each instant of a group, in steps."""
    instants, recommender = group.instants, bundle.recommender
    selections = [instant.selection for instant in instants]
    times = [instant.query_time for instant in instants]
    if not group.is_shared:
        histories = [_cut(history, instant.start, instant.end) for instant in instants]
        batch = collate(histories, times, [withheld] * len(times))
        return (yield from rank_rows(recommender, bundle.index, batch, selections))
    start, last = instants[0].start, instants[-1].end
    longest = _cut(history, start, last)
    batch = collate([longest], times[-1:])
    with torch.inference_mode():
        days = days_between(longest.events[0].at, np.array(times, dtype=np.int64))
        ends = torch.tensor([instant.end - start for instant in instants])
        encoded = recommender.sweep(
            batch, torch.from_numpy(days), ends if recommender.sweeps_prefixes else None
        )
    yield
    return (yield from rank_encoded(recommender, bundle.index, batch, encoded, selections))


def _list_weights(rankings: Sequence[Ranking], head: int | None) -> list[list[float] | None]:
    """List the attention of each ranking, averaged over heads or of one; a group has one shape."""
    attention = [one.attention for one in rankings if one.attention is not None]
    if not attention:
        return [None] * len(rankings)
    heads = torch.stack(attention)
    if head is not None and head >= heads.shape[1]:
        raise UnknownHeadError(
            f"a head must be one of the {heads.shape[1]} of the model, but number {head + 1} is "
            "requested; choose a smaller number, or none for the mean over heads"
        )
    chosen = iter((heads.mean(1) if head is None else heads[:, head]).tolist())
    return [None if one.attention is None else next(chosen) for one in rankings]


def _cut(history: KnownHistory, start: int, end: int) -> KnownHistory:
    return history._replace(
        events=history.events[start:end],
        rows=history.rows[start:end],
        actions=history.actions[start:end],
    )


def _build_swept_instant(
    bundle: Bundle,
    instant: _Instant,
    ranking: Ranking | None,
    averaged: list[float] | None,
    constraints: Constraints,
    positions: NDArray[np.int64],
) -> SweptInstant:
    """Build one instant of the sweep.

    Args:
        averaged: the mean over heads of the attention of its ranking, if it has any.
        positions: per event of the history, and at its end, how many before it the sweep has.
    """
    weights = intensities = None
    if averaged is not None:
        weights = tuple(averaged[: instant.count_events()])
    if ranking is not None and ranking.intensity is not None:
        intensities = tuple(ranking.intensity.tolist())
    items, fallback = fill_up(bundle.catalog, instant.selection, ranking, strict=constraints.strict)
    return SweptInstant(
        query_time=instant.query_time,
        history_used=instant.count_events(),
        first_event=int(positions[instant.start]),
        weights=weights,
        intensities=intensities,
        items=items,
        fallback=fallback,
        warnings=list_warnings(
            bundle.manifest.data_window, instant.query_time, truncated=instant.is_truncated
        ),
    )
