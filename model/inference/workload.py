"""How much work a query is, in units that are known before it runs."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from model.bundle.bundle import Bundle
from model.inference.query import count_own_events
from model.inference.ranking import DIVERSE_POOL
from model.inference.reranking import CANDIDATES


class Workload(NamedTuple):
    """Counts of what a query makes a model do. The time it takes is about linear in them.

    Attributes:
        calls: 1.
        encodings: histories that the encoder reads.
        events: events of these histories.
        pairs: pairs of events, or of a candidate and an event, that attend to each other.
        rows: catalog rows that are searched.
        items: items that are returned.
        comparisons: pairs of items whose vectors are compared.
    """

    calls: float = 1
    encodings: float = 0
    events: float = 0
    pairs: float = 0
    rows: float = 0
    items: float = 0
    comparisons: float = 0


def count_recommendation(
    bundle: Bundle,
    events: int,
    n: int,
    *,
    diverse: bool = False,
    left_out: int = 0,
    reasons: bool = False,
) -> Workload:
    """Count the work of one recommendation.

    Args:
        events: of the history; the model reads at most its `max_history`.
        left_out: events or baskets that occlusion leaves out in turn.
        reasons: whether the scores are attributed to the events.
    """
    read = min(events, bundle.manifest.max_history)
    encodings = 1 + (left_out + 1 if left_out else 0)
    # Weighing the events once more takes about as long as encoding them.
    encodings += reasons
    candidates = CANDIDATES if bundle.recommender.scores_candidates else 0
    return Workload(
        encodings=encodings,
        events=encodings * read,
        pairs=encodings * read * read + candidates * read,
        rows=len(bundle.catalog),
        items=2 * n if reasons else n,
        comparisons=n * max(DIVERSE_POOL * n, 50) if diverse else 0,
    )


def count_ranking(bundle: Bundle, events: int, items: int) -> Workload:
    """Count the work of ranking given items."""
    read = min(events, bundle.manifest.max_history)
    candidates = items if bundle.recommender.scores_candidates else 0
    return Workload(
        encodings=1, events=read, pairs=read * read + candidates * read, rows=items, items=items
    )


def count_sweep(
    bundle: Bundle,
    event_times: Sequence[int],
    query_times: Sequence[int],
    n: int,
    *,
    withheld: bool = False,
) -> Workload:
    """Count the work of a sweep.

    Args:
        event_times: of the history, ascending.
        withheld: whether the query times are withheld from the model.
    """
    recommender, longest = bundle.recommender, bundle.manifest.max_history
    shares = recommender.sweeps_share_history and not withheld
    instants = Counter(bisect_right(event_times, query_time) for query_time in query_times)
    # One encoding serves all that read from the first event on.
    prefix = max((end for end in instants if end <= longest), default=0)
    encodings = events = pairs = read_in_all = 0
    for end, times in instants.items():
        if not end:
            continue
        read = min(end, longest)
        passes = 1 if shares else times
        if shares and recommender.sweeps_prefixes and end < prefix:
            passes = 0
        encodings += passes
        events += passes * read
        pairs += passes * read * read
        read_in_all += times * read
        if shares:
            # What depends on the query time attends to all events that are read.
            own = count_own_events(recommender.encoder, event_times, end - read, end)
            pairs += times * own * (read + own)
    candidates = CANDIDATES if recommender.scores_candidates else 0
    return Workload(
        encodings=encodings,
        events=events,
        pairs=pairs + candidates * read_in_all,
        rows=len(query_times) * len(bundle.catalog),
        items=len(query_times) * n,
    )


def count_listing(rows: int, items: int) -> Workload:
    """Count the work of finding and returning items without a history."""
    return Workload(rows=rows, items=items)


def add_workloads(workloads: Iterable[Workload]) -> Workload:
    """Add up the work of queries that one call answers."""
    return Workload(*map(sum, zip(Workload(), *workloads, strict=True)))
