"""One sentence for each recommended item, written from facts alone."""

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

from model.actions import is_purchase, is_undoing, names_act
from model.history import Event
from model.inference.answers import ContributionKind, ItemFacts, Reasons, ScoredItem


class Words(NamedTuple):
    """What the users of a service are called, and what they do."""

    person: str
    people: str
    chose: str


_SHOP = Words("customer", "customers", "bought")
_NEUTRAL = Words("user", "users", "chose")


class _Act(NamedTuple):
    """An act, by the words of an action's name.

    Attributes:
        beside: further words that may stand beside its names.
    """

    verb: str
    names: frozenset[str]
    beside: frozenset[str] = frozenset()


_ACTS = (
    _Act(
        "viewed",
        frozenset({"click", "clicked", "open", "opened", "view", "viewed", "visit", "visited"}),
        frozenset({"detail", "details", "page"}),
    ),
    _Act("watched", frozenset({"watch", "watched"})),
    _Act("played", frozenset({"listen", "listened", "play", "played", "stream", "streamed"})),
    _Act("read", frozenset({"read"})),
    _Act("rated", frozenset({"rate", "rated", "rating", "review", "reviewed"})),
    _Act(
        "put in the basket",
        frozenset({"basket", "cart"}),
        frozenset({"add", "added", "in", "into", "put", "to"}),
    ),
)

_TREND = 1.5
_STANDARD_ERRORS = 2.0
_LEAST_SHARE = 0.2
"""Of all that speaks for an item, for what others chose to be named beside the own events."""


def choose_words(history: Iterable[Event]) -> Words:
    """Choose the words for a history: those of a shop if it holds purchases alone."""
    actions = {event.action for event in history if not is_undoing(event.action)}
    return _SHOP if actions and all(map(is_purchase, actions)) else _NEUTRAL


def write_sentence(item: ScoredItem, reasons: Reasons, words: Words, followed: str | None) -> str:
    """Write why an item is in a list, for people who know nothing of models.

    Args:
        followed: the title of the item that it followed, if any.
    """
    facts = reasons.facts
    if item.reason == "popular":
        return _write_popularity(round(item.score), facts, words)
    follows = None
    if followed is not None:
        follows = f"among what {words.people} choose after {followed}"
    clauses: list[str | None] = []
    if facts.times:
        clauses.append(_describe_events(facts, words))
        if _speaks_for(reasons, "followers") >= _LEAST_SHARE:
            clauses.append(follows)
        if _speaks_for(reasons, "neighbours") >= _LEAST_SHARE:
            clauses.append(_describe_neighbours(words))
    else:
        clauses.append(_describe_largest(reasons, words, follows))
    clauses.append(_describe_trend(facts, words))
    sentence = "; ".join(clause for clause in clauses if clause)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _write_popularity(recent: int, facts: ItemFacts, words: Words) -> str:
    if recent:
        return f"Chosen {_count(recent)} by all {words.people} in the last week of the data."
    return f"Chosen {_count(facts.trained_events)} by all {words.people} in the training data."


def _describe_events(facts: ItemFacts, words: Words) -> str:
    """Describe the user's own events of the item."""
    days = facts.last_days or 0
    ago = f"{days} day{'' if days == 1 else 's'} ago" if days else "less than a day ago"
    last = ago if facts.times == 1 else f"last {ago}"
    return f"{_name_events(facts.action, words)} {_count(facts.times)}, {last}"


def _name_events(action: str | None, words: Words) -> str:
    if is_purchase(action):
        return "bought"
    for verb, names, beside in _ACTS:
        if names_act(action, names, beside=beside):
            return verb
    return f"in this {words.person}'s history"


def _describe_largest(reasons: Reasons, words: Words, follows: str | None) -> str:
    """Describe what speaks most for an item that the user has not chosen."""
    largest = next((one for one in reasons.contributions if one.kind != "average"), None)
    has_average = any(one.kind == "average" for one in reasons.contributions)
    fits = f"fits what this {words.person} {words.chose} most recently"
    if not has_average:
        # Nothing to compare with: even the last item has such a score.
        return f"ranked by how well it {fits}"
    if largest is None or largest.value <= 0:
        return "ranked by the model, but nothing in particular speaks for it"
    # Counts that end before the query time say nothing about it.
    when = "in the latest data" if reasons.facts.recent_events is None else "at this time"
    described: dict[ContributionKind, str] = {
        "state": fits,
        "bias": "chosen more often than most items",
        "popularity": f"popular with all {words.people} {when}",
        "calendar": "fits the time of the day, the week or the year",
        "repeats": f"in this {words.person}'s history, but taken back since",
        "followers": follows or fits,
        "neighbours": _describe_neighbours(words),
    }
    return described[largest.kind]


def _describe_neighbours(words: Words) -> str:
    return f"chosen by similar {words.people}"


def _describe_trend(facts: ItemFacts, words: Words) -> str | None:
    """Describe how often all users choose the item now and before, if the difference is no chance.

    Counts of independent events differ by twice the root of their sum in one of twenty cases.
    """
    ratio = facts.popularity_ratio
    if ratio is None or facts.recent_events is None or facts.earlier_events is None:
        return None
    recent, earlier = facts.recent_events, facts.earlier_events
    if abs(recent - earlier) <= _STANDARD_ERRORS * sqrt(recent + earlier):
        return None
    chosen = f"chosen by all {words.people}"
    if ratio >= _TREND:
        factor = "twice" if f"{ratio:.1f}" == "2.0" else f"{ratio:.1f} times"
        return f"{chosen} {factor} as often as in the four weeks before"
    if ratio <= 1 / _TREND:
        return f"{chosen} {1 - ratio:.0%} less often than in the four weeks before"
    return None


def _speaks_for(reasons: Reasons, kind: ContributionKind) -> float:
    """Return the share of a kind in all contributions that speak for an item."""
    values = {one.kind: max(one.value, 0.0) for one in reasons.contributions}
    values.pop("average", None)
    return values.get(kind, 0.0) / max(sum(values.values()), 1e-12)


def _count(times: int) -> str:
    return "once" if times == 1 else f"{times:,} times"
