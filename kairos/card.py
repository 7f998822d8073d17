"""One user at one instant as a card: recommended items with reasons, and attention by basket."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kairos.lift import to_colour
from model.catalog import Catalog
from model.clock import to_datetime
from model.history import Query
from model.inference.answers import Recommendation, ScoredItem
from model.inference.sentences import Words, choose_words, write_sentence

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_BASKETS = 12
_MOST_TITLES = 3


class ItemLine(NamedTuple):
    """One recommended item.

    Attributes:
        name: its title, or its id.
        reason: why it is recommended, in a sentence as in the dashboard.
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
        words = choose_words(self.query.history)
        return tuple(
            ItemLine(rank, self._name(item.row), item.score, self._give_reason(item, words))
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
        if self.baskets:
            lines.append("     attention by basket, and per event over the mean:")
        lines += [
            f"     {one.when}  {one.weight:6.1%}  ×{one.lift:.2g}  {one.names}"
            for one in self.baskets
        ]
        return "\n".join([f"Card({self.title})", *lines])

    def _name(self, row: int) -> str:
        return self.catalog.title(row) or self.catalog.item_id(row)

    def _give_reason(self, item: ScoredItem, words: Words) -> str:
        if item.reasons is None:
            return item.reason
        follows = item.reasons.facts.follows_row
        name = None if follows is None else self._name(follows)
        return write_sentence(item, item.reasons, words, name)

    def _list_names(self, rows: tuple[int, ...]) -> str:
        names = ", ".join(map(self._name, rows[:_MOST_TITLES]))
        further = len(rows) - _MOST_TITLES
        return f"{names} and {further} more" if further > 0 else names
