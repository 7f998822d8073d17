"""Facts about recommended items: their events in a history, and how often all users chose them.

Facts are of the query time, also where the model does not read it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from model.actions import is_purchase, is_undoing
from model.bundle.bundle import Bundle
from model.clock import MICROSECONDS_PER_DAY
from model.history import Event, Query
from model.inference.answers import Contribution, ItemFacts
from model.inference.selection import Rows

WINDOW_DAYS = 28
"""Days whose events are compared with those of as many days before."""

_MOST_STALE = 7 * MICROSECONDS_PER_DAY
"""From the last counted event to the query time: the windows end with the counts."""


def find_facts(
    bundle: Bundle,
    query: Query,
    read: Sequence[Event],
    rows: Rows,
    contributions: Sequence[tuple[Contribution, ...]],
) -> list[ItemFacts]:
    """Find the facts about some items.

    Args:
        read: the events that the model read.
        contributions: to each item's score.
    """
    item_ids = [bundle.catalog.item_id(row) for row in rows.tolist()]
    of_items = _group_events(query.history, read, frozenset(item_ids))
    recent, earlier = _count_windows(bundle, query, rows)
    facts = []
    for index, item_id in enumerate(item_ids):
        action, events = select_standing(of_items[item_id])
        facts.append(
            ItemFacts(
                action=action,
                times=len(events),
                last_days=(query.query_time - events[-1].at) // MICROSECONDS_PER_DAY
                if events
                else None,
                recent_events=recent[index],
                earlier_events=earlier[index],
                trained_events=int(bundle.catalog.popularity[rows[index] - 1]),
                follows_row=_find_followed(contributions[index], int(rows[index])),
            )
        )
    return facts


def _group_events(
    history: Iterable[Event], read: Sequence[Event], item_ids: frozenset[str]
) -> defaultdict[str, list[Event]]:
    """Group the events that the model read by item, and those since the first that undo others."""
    of_items: defaultdict[str, list[Event]] = defaultdict(list)
    kept = {*read}
    for event in history:
        if event.item_id not in item_ids or not read or event.at < read[0].at:
            continue
        # A model may ignore cancellations; what they undo is undone all the same.
        if event in kept or is_undoing(event.action):
            of_items[event.item_id].append(event)
    return of_items


def select_standing(events: Iterable[Event]) -> tuple[str | None, list[Event]]:
    """Select the events of one item that say most: purchases, else those of the commonest action.

    An event that undoes others takes back the latest purchase before it that is not taken back yet,
    or the latest event of another kind where there is none.

    Args:
        events: oldest first.

    Returns:
        The action, and its events that are not taken back. None and no event if there are none.
    """
    standing: list[Event] = []
    for event in sorted(events, key=lambda one: (one.at, is_undoing(one.action))):
        if not is_undoing(event.action):
            standing.append(event)
        elif standing:
            bought = [one for one in standing if is_purchase(one.action)]
            standing.remove((bought or standing)[-1])
    bought = [one for one in standing if is_purchase(one.action)]
    if bought:
        return bought[-1].action, bought
    actions = [one.action for one in standing]
    # Of equally common actions the latest.
    action = max(reversed(actions), key=actions.count, default=None)
    return action, [one for one in standing if one.action == action]


def _count_windows(
    bundle: Bundle, query: Query, rows: Rows
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Count each item's events of all users in both windows, where the counts reach so far."""
    unknown = [None] * len(rows)
    counts = bundle.recommender.counts
    if counts is None:
        return unknown, unknown
    popularity, at = counts.popularity.popularity, query.query_time
    if at - popularity.end_at > _MOST_STALE:
        return unknown, unknown
    counted = popularity.count_windows(rows, at, WINDOW_DAYS)
    return (unknown, unknown) if counted is None else (counted[0].tolist(), counted[1].tolist())


def _find_followed(contributions: Iterable[Contribution], row: int) -> int | None:
    """Find the item that contributes most by what followed it, other than the item itself."""
    followed: defaultdict[int, float] = defaultdict(float)
    for contribution in contributions:
        if contribution.kind == "followers":
            for one in contribution.events:
                followed[one.row] += one.value
    followed.pop(row, None)
    return max(followed, key=followed.__getitem__, default=None)
