"""TiSASRec: self-attention over items, positions, and the intervals between events."""

from typing import Literal, cast, final

import torch
from jaxtyping import Float, Float64
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.relative_attention import Relations, RelationTables, RelativeBlock

Relation = Literal["personal", "to_query"]


class TiSASRecConfig(Config):
    """Self-attention over items and positions, and over which relation in time events have."""

    kind: Literal["tisasrec"] = "tisasrec"
    dim: PositiveInt = 64
    heads: PositiveInt = 1
    layers: PositiveInt = 2
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    relation: Relation = "personal"
    """personal: the interval between two events, in units of the history's own smallest one;
    to_query: that from an event to the query time, in units of `time_scale`.
    """
    time_scale: PositiveFloat = 1.0
    """Days per unit of `to_query`."""
    time_span: PositiveInt = 256
    """The largest relation; all longer intervals count as this one."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TiSASRec":  # noqa: ARG002
        """The module this describes."""
        return TiSASRec(**self.model_dump(exclude={"kind"}))


@final
class TiSASRec(SequenceEncoder):
    """Reads which items came in which order, and how far apart in time, by causal self-attention.

    A relation is a whole number of units of time; each has vectors of its own, which are added to
    the keys and values of the events that a position is related to by it. In the form "personal"
    the query time is not read.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Li, Wang and McAuley 2020, "Time Interval Aware Self-Attention for Sequential
        Recommendation". The form "to_query" is that of Chen et al. 2023 (EasyDGL), who compare
        with it.
    DIFFERS(code): the unit of "personal" is the smallest interval up to the position itself; the
        code takes it from the whole history, events to be predicted included.
    DIFFERS(code): where the query time is withheld, "to_query" counts from the position's own
        event, to which it has a relation apart.
    DIFFERS(code): dropout falls on the tables of relations and places, not on what every pair
        looks up in them; the pairs' vectors are never laid out, which changes nothing else.
    DIFFERS(code): places are counted from the oldest event read; the code counts from the most
        recent place of a window padded on the left.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        layers: int,
        dropout: float,
        max_history: int,
        relation: Relation,
        time_scale: float,
        time_span: int,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.relation = relation
        self.time_scale, self.time_span = time_scale, time_span
        relations = time_span + (2 if relation == "to_query" else 1)
        self.relation_keys = nn.Embedding(relations, dim)
        self.relation_values = nn.Embedding(relations, dim)
        self.place_keys = nn.Embedding(max_history, dim)
        self.place_values = nn.Embedding(max_history, dim)
        for table in (
            self.relation_keys,
            self.relation_values,
            self.place_keys,
            self.place_values,
        ):
            nn.init.normal_(table.weight, std=dim**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            RelativeBlock(dim=dim, heads=heads, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim, eps=1e-8)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; what follows a position never reaches it."""
        tables, relations = self._tables(items.shape[1]), self._relations(batch)
        states = self.dropout(items * self.dim**0.5)
        for block in self._stack:
            states = block.read_all(states, tables, relations)
        return States(self.norm(states))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors at the last event of each history, with the last block's weights there."""
        tables, relations = self._tables(items.shape[1]), self._relations(batch)
        states = self.dropout(items * self.dim**0.5)
        *earlier, final_block = self._stack
        for block in earlier:
            states = block.read_all(states, tables, relations)
        last = batch.lengths - 1
        asking = states[torch.arange(len(last), device=last.device), last].unsqueeze(1)
        read = final_block.read(asking, states, tables, relations.at(last))
        users: Tensor = self.norm(read.states)
        return Encoded(user=users.squeeze(1), attention=read.weights.squeeze(2))

    def _tables(self, length: int) -> RelationTables:
        return RelationTables(
            self.dropout(self.relation_keys.weight),
            self.dropout(self.relation_values.weight),
            self.dropout(self.place_keys.weight[:length]),
            self.dropout(self.place_values.weight[:length]),
        )

    def _relations(self, batch: SequenceBatch) -> Relations:
        length = batch.rows.shape[1]
        square = torch.ones(length, length, dtype=torch.bool, device=batch.rows.device)
        if self.relation == "personal":
            related = personal_relations(batch.times)
        else:
            lags = batch.query_times.unsqueeze(-1) - batch.times.unsqueeze(1)
            related = (lags / self.time_scale).floor()
        related = related.clamp(0, self.time_span).long()
        if self.relation == "to_query":
            untold = ~batch.query_given.unsqueeze(-1) & square.tril().triu()
            related = related.masked_fill(untold, self.time_span + 1)
        return Relations(related, square.tril().unsqueeze(0))

    @property
    def _stack(self) -> list[RelativeBlock]:
        return [cast("RelativeBlock", block) for block in self.blocks]


def personal_relations(
    times: Float64[Tensor, "batch len"],
) -> Float64[Tensor, "batch len len"]:
    """Intervals from every event to every one before, in units of the smallest until then.

    The smallest interval that is not zero, among the events up to each position. Times are rounded
    to units before they are subtracted, as in the code.
    """
    gaps = times.diff(dim=1, prepend=times[:, :1])
    unit = gaps.where(gaps > 0, torch.inf).cummin(1).values
    # As long as all events are of one time, any unit gives the relation 0.
    placed = (times.unsqueeze(1) / unit.unsqueeze(-1)).round()
    return placed.diagonal(dim1=1, dim2=2).unsqueeze(-1) - placed
