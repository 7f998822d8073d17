"""One history at many instants: how weights and answers move while the clock runs."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from model.batch import KnownHistory, collate
from model.clock import days_between
from model.history import Query
from model.inference.answers import Constraints, Sweep, SweptInstant
from model.inference.ranking import Ranking, Selection, rank, rank_encoded
from model.interfaces import QuerySweep

if TYPE_CHECKING:
    from model.inference.predictor import Predictor

AllowedAt = Callable[[int], NDArray[np.bool_] | None]
"""Which catalogue rows may be answered at an instant, as `Constraints.allowed` has it."""

_BATCH = 32
"""Histories that are encoded side by side."""


class _Instant(NamedTuple):
    """One instant, and the part of the history that the model reads at it: places start..end."""

    place: int
    query: Query
    start: int
    end: int
    wanted: Selection


def sweep(
    bundle: "Predictor",
    query: Query,
    query_times: Sequence[int],
    constraints: Constraints,
    allowed_at: AllowedAt | None,
) -> Sweep:
    """Ask a bundle about one history at each of `query_times`; see `Bundle.sweep`."""
    history = bundle.look_up(query, max_history=max(len(query.history), 1))
    instants = _instants(bundle, query, history, query_times, constraints, allowed_at)
    rankings: dict[int, Ranking] = {}
    for together in _groups(bundle, instants):
        for instant, ranking in zip(together, _rank(bundle, history, together), strict=True):
            rankings[instant.place] = ranking
    read = [instant for instant in instants if instant.end > instant.start]
    first = min((instant.start for instant in read), default=0)
    last = max((instant.end for instant in read), default=0)
    told = tuple(
        _told(bundle, instant, rankings.get(instant.place), constraints, (first, last))
        for instant in instants
    )
    return Sweep(
        events=history.events[first:last],
        instants=told,
        unknown_item_ids=history.unknown_item_ids,
        normalised=bundle.recommender.encoder.is_normalised,
        groups=(
            bundle.manifest.recommender.groups
            if any(instant.intensities is not None for instant in told)
            else None
        ),
        warnings=tuple(dict.fromkeys(code for instant in told for code in instant.warnings)),
    )


def _instants(
    bundle: "Predictor",
    query: Query,
    history: KnownHistory,
    query_times: Sequence[int],
    constraints: Constraints,
    allowed_at: AllowedAt | None,
) -> list[_Instant]:
    happened = [event.at for event in query.history]
    known = [event.at for event in history.events]
    instants = []
    for place, query_time in enumerate(query_times):
        past = query.history[: bisect_right(happened, query_time)]
        asked = Query(past, query_time, query.user_id, query.query_time_withheld)
        end = bisect_right(known, query_time)
        start = max(0, end - bundle.manifest.max_history)
        if allowed_at is not None:
            constraints = replace(constraints, allowed=allowed_at(query_time))
        instants.append(_Instant(place, asked, start, end, bundle.wanted(asked, constraints)))
    return instants


def _groups(bundle: "Predictor", instants: Sequence[_Instant]) -> Iterator[list[_Instant]]:
    """Instants that one run of the model can answer; those before the first event need none."""
    sweeps = isinstance(bundle.recommender.encoder, QuerySweep)
    apart: list[_Instant] = []
    by_end = sorted((one for one in instants if one.end), key=lambda one: one.end)
    for _, reading_the_same in groupby(by_end, key=lambda one: one.end):
        group = list(reading_the_same)
        if sweeps and len(group) > 1 and not group[0].query.query_time_withheld:
            yield group
        else:
            apart += group
    # By length already, so that little is padded.
    for begin in range(0, len(apart), _BATCH):
        yield apart[begin : begin + _BATCH]


def _rank(
    bundle: "Predictor", history: KnownHistory, together: Sequence[_Instant]
) -> list[Ranking]:
    """The rankings of one group."""
    recommender = bundle.recommender
    wanted = [instant.wanted for instant in together]
    ends = {instant.end for instant in together}
    shared = len(ends) == 1 and len(together) > 1 and isinstance(recommender.encoder, QuerySweep)
    histories = [
        _part(history, instant.start, instant.end)
        for instant in (together[:1] if shared else together)
    ]
    times = [
        min(instant.query.query_time, bundle.latest_query_time(histories[0 if shared else number]))
        for number, instant in enumerate(together)
    ]
    withheld = [instant.query.query_time_withheld for instant in together]
    batch = collate(histories, times[: len(histories)], withheld[: len(histories)])
    if not shared or any(withheld):
        return rank(recommender, bundle.index, batch, wanted)
    with torch.inference_mode():
        days = days_between(histories[0].events[0].at, np.array(times, dtype=np.int64))
        encoded = recommender.sweep(batch, torch.from_numpy(days))
    return rank_encoded(recommender, bundle.index, batch, encoded, wanted)


def _part(history: KnownHistory, start: int, end: int) -> KnownHistory:
    return history._replace(
        events=history.events[start:end],
        rows=history.rows[start:end],
        actions=history.actions[start:end],
    )


def _told(
    bundle: "Predictor",
    instant: _Instant,
    ranking: Ranking | None,
    constraints: Constraints,
    told: tuple[int, int],
) -> SweptInstant:
    first, last = told
    weights = intensities = None
    if ranking is None:
        items = []
    else:
        items = bundle.scored(ranking.rows, ranking.scores, "model")
        if ranking.attention is not None:
            read = ranking.attention.mean(0)[: instant.end - instant.start].tolist()
            before, after = instant.start - first, last - instant.end
            weights = (0.0,) * before + tuple(read) + (0.0,) * after
        if ranking.intensity is not None:
            intensities = tuple(ranking.intensity.tolist())
    items, fallback = bundle.filled(
        items, constraints, instant.wanted, has_history=ranking is not None
    )
    return SweptInstant(
        query_time=instant.query.query_time,
        history_used=instant.end - instant.start,
        weights=weights,
        intensities=intensities,
        items=tuple(items),
        fallback=fallback,
        warnings=tuple(bundle.warnings(instant.query.query_time, truncated=instant.start > 0)),
    )
