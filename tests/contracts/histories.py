"""Random histories with intervals from seconds to years, for tests of encoders."""

import numpy as np

from model.batch import KnownHistory, SequenceBatch, collate, look_up_history
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from model.history import Event, Query

ITEMS = 20
CATALOG = Catalog.from_ids([f"i{number}" for number in range(ITEMS)])
ACTIONS = {"view": 1, "buy": 2}
START = 1_500_000_000 * MICROSECONDS_PER_SECOND
DAY = MICROSECONDS_PER_DAY
YEAR = 365 * DAY


def draw_query(rng: np.random.Generator, length: int) -> Query:
    """Draw a history of zero and log-uniform gaps, from a second to ten years in all."""
    gaps = np.exp(rng.uniform(np.log(1e6), np.log(10 * YEAR / (length + 1)), length))
    gaps[rng.random(length) < 0.25] = 0
    times = START + np.cumsum(gaps.astype(np.int64)) - int(gaps[0])
    actions = (None, "view", "buy")
    events = [Event(f"i{rng.integers(ITEMS)}", int(at), actions[rng.integers(3)]) for at in times]
    interval = int(np.exp(rng.uniform(np.log(1e6), np.log(YEAR))))
    return Query.as_of(events, events[-1].at + interval)


def draw_queries(*lengths: int, seed: int = 0) -> list[Query]:
    """Draw one query per length."""
    rng = np.random.default_rng(seed)
    return [draw_query(rng, length) for length in lengths]


def full_history(query: Query) -> KnownHistory:
    """Look up the whole history of a query."""
    return look_up_history(query, CATALOG, ACTIONS, max_history=1000)


def collate_queries(*queries: Query) -> SequenceBatch:
    """Collate queries into one batch."""
    return collate(
        [full_history(query) for query in queries],
        [query.query_time for query in queries],
        [query.query_time_withheld for query in queries],
    )


def shift_times(query: Query, by: int) -> Query:
    """Shift all times of a query by some microseconds."""
    shifted = tuple(Event(event.item_id, event.at + by, event.action) for event in query.history)
    return Query(shifted, query.query_time + by, query_time_withheld=query.query_time_withheld)


def at_query_time(query: Query, query_time: int, *, withheld: bool = False) -> Query:
    """Replace the query time."""
    return Query(query.history, query_time, query_time_withheld=withheld)


def prefix(query: Query, count: int) -> Query:
    """Keep the first events of a history, with the next event's time as the query time."""
    following = query.history[count].at if count < len(query.history) else query.query_time
    return Query(query.history[:count], following)
