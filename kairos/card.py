"""One user at one instant as a card: recommended items with reasons, and attention by basket."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import exp
from pathlib import Path
from typing import NamedTuple, final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kairos.lift import to_colour
from model.catalog import Catalog
from model.clock import to_datetime
from model.history import Query
from model.inference.answers import PartName, Recommendation, ScorePart

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_BASKETS = 12
_MOST_TITLES = 3
_LEAST_SHARE = 0.005
"""A smaller part of a score would be shown as 0 %."""
_PARTS: dict[PartName, str] = {
    "base": "model",
    "repeats": "chosen before",
    "followers": "follows the last events",
}


class ItemLine(NamedTuple):
    """One recommended item.

    Attributes:
        name: its title, or its id.
        reason: the parts of its score in words.
    """

    rank: int
    name: str
    score: float
    reason: str


class BasketLine(NamedTuple):
    """The attention on one basket.

    Attributes:
        when: its instant, in minutes, UTC.
        names: of some of its items.
        lift: the weight over that of as many events if all had the same.
        width: of the bar, per cent of the largest.
        colour: of the bar.
    """

    when: str
    names: str
    weight: float
    lift: float
    width: float
    colour: str


@final
@dataclass(frozen=True)
class Card:
    """A recommendation as HTML without scripts, for notebooks, and as text."""

    query: Query
    answer: Recommendation
    catalog: Catalog
    version: str

    @cached_property
    def items(self) -> tuple[ItemLine, ...]:
        """The recommended items, best first."""
        return tuple(
            ItemLine(
                rank, self._name(item.row), item.score, describe_score(item.reason, item.parts)
            )
            for rank, item in enumerate(self.answer.items, start=1)
        )

    @cached_property
    def baskets(self) -> tuple[BasketLine, ...]:
        """The baskets with the largest weights, in order of time."""
        attention = self.answer.attention
        if attention is None:
            return ()
        total = sum(attention.weights) or 1.0
        read = len(attention.events)
        events = zip(attention.events, attention.rows, attention.weights, strict=True)
        found = []
        for at, basket in groupby(events, key=lambda one: one[0].at):
            _, rows, weights = zip(*basket, strict=True)
            share = sum(weights) / total
            found.append((at, rows, share, share * read / len(rows)))
        largest = max(share for _, _, share, _ in found)
        shown = sorted(sorted(found, key=lambda one: -one[2])[:_MOST_BASKETS])
        return tuple(
            BasketLine(
                f"{to_datetime(at):%Y-%m-%d %H:%M}",
                self._list_names(rows),
                share,
                lift,
                100 * share / largest if largest else 0.0,
                to_colour(lift),
            )
            for at, rows, share, lift in shown
        )

    @property
    def title(self) -> str:
        """The user and the query time."""
        at = f"{to_datetime(self.query.query_time):%Y-%m-%d %H:%M} UTC"
        return f"{self.query.user_id or 'history'} at {at}"

    def _repr_html_(self) -> str:
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined
        )
        return environment.get_template("card.html").render(card=self)

    def __repr__(self) -> str:
        lines = [f"{one.rank:>3}  {one.name}  ({one.reason})" for one in self.items]
        return "\n".join([f"Card({self.title})", *lines])

    def _name(self, row: int) -> str:
        return self.catalog.title(row) or self.catalog.item_id(row)

    def _list_names(self, rows: tuple[int, ...]) -> str:
        names = ", ".join(map(self._name, rows[:_MOST_TITLES]))
        further = len(rows) - _MOST_TITLES
        return f"{names} and {further} more" if further > 0 else names


def describe_score(reason: str, parts: tuple[ScorePart, ...] | None) -> str:
    """Describe in words what a score consists of."""
    if reason == "popular":
        return "popular"
    if parts is None:
        return "model"
    texts = []
    for part in parts:
        if part.share < _LEAST_SHARE:
            continue
        terms = ", ".join(f"{term.name} \u00d7{exp(term.effect):.2g}" for term in part.terms)
        texts.append(f"{_PARTS[part.name]} {part.share:.0%}" + (f" ({terms})" if terms else ""))
    return " \u00b7 ".join(texts)
