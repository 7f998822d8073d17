"""Histories to put to encoders and recommenders: irregular, from seconds to years."""

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
    """A history whose gaps are nothing, or anything from a second to ten years in all."""
    gaps = np.exp(rng.uniform(np.log(1e6), np.log(10 * YEAR / (length + 1)), length))
    gaps[rng.random(length) < 0.25] = 0
    times = START + np.cumsum(gaps.astype(np.int64)) - int(gaps[0])
    actions = (None, "view", "buy")
    events = tuple(
        Event(f"i{rng.integers(ITEMS)}", int(at), actions[rng.integers(3)]) for at in times
    )
    waited = int(np.exp(rng.uniform(np.log(1e6), np.log(YEAR))))
    return Query(events, events[-1].at + waited)


def draw_queries(*lengths: int, seed: int = 0) -> list[Query]:
    """One query per length."""
    rng = np.random.default_rng(seed)
    return [draw_query(rng, length) for length in lengths]


def known(query: Query) -> KnownHistory:
    """The whole of a query's history."""
    return look_up_history(query, CATALOG, ACTIONS, max_history=1000)


def collate_queries(*queries: Query) -> SequenceBatch:
    """Queries side by side, as the service lays out one."""
    return collate(
        [known(query) for query in queries],
        [query.query_time for query in queries],
        [query.query_time_withheld for query in queries],
    )


def shift_times(query: Query, by: int) -> Query:
    """The same history and question, everything later by some microseconds."""
    moved = tuple(Event(event.item_id, event.at + by, event.action) for event in query.history)
    return Query(moved, query.query_time + by, query_time_withheld=query.query_time_withheld)


def at_query_time(query: Query, query_time: int, *, withheld: bool = False) -> Query:
    """The same history, asked about at another instant."""
    return Query(query.history, query_time, query_time_withheld=withheld)


def prefix(query: Query, count: int) -> Query:
    """The first events of a history, asked about when the next one happened."""
    following = query.history[count].at if count < len(query.history) else query.query_time
    return Query(query.history[:count], following)
