"""TiSASRec: self-attention over items, positions, and the intervals between events."""

from typing import Literal, cast, final

import torch
from jaxtyping import Float, Float64
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout
from model.layers.relative_attention import Relations, RelationTables, RelativeBlock

Relation = Literal["personal", "to_query"]


class TiSASRecConfig(Config):
    """Self-attention over items and positions, with relations in time between events."""

    kind: Literal["tisasrec"] = "tisasrec"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    heads: PositiveInt = 1
    """Attention heads; their number must divide `dim`."""
    layers: PositiveInt = 2
    """Blocks of attention and a feed-forward network."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the embedded events and within blocks."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    relation: Relation = "personal"
    """personal: the interval between two events, in units of the history's own smallest interval;
    to_query: the interval from an event to the query time, in units of `time_scale`.
    """
    time_scale: PositiveFloat = 1.0
    """Days per unit of `to_query`."""
    time_span: PositiveInt = 256
    """The largest relation; longer intervals are clipped to it."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TiSASRec":  # noqa: ARG002
        """Build the module."""
        return TiSASRec(**self.model_dump(exclude={"kind"}))


@final
class TiSASRec(SequenceEncoder):
    """Encodes items in their order by causal self-attention with relative time intervals.

    A relation is a whole number of units of time. Each has learned vectors that are added to the
    keys and values of the events with that relation to the query position. The form "personal" does
    not use the query time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Li, Wang and McAuley 2020, "Time Interval Aware Self-Attention for Sequential
        Recommendation". The form "to_query" is that of Chen et al. 2023 (EasyDGL), who compare
        with it.
    DIFFERS(code): the unit of "personal" is the smallest interval up to the position itself; the
        code computes it from the whole history, events to be predicted included.
    DIFFERS(code): where the query time is withheld, "to_query" counts from the position's own
        event, which gets a separate relation.
    DIFFERS(code): dropout applies to the tables of relations and positions, not to the vectors of
        each pair, which are never materialised.
    DIFFERS(code): positions count from the oldest event in use; the code counts from the most
        recent position of a window padded on the left.
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
        self.position_keys = nn.Embedding(max_history, dim)
        self.position_values = nn.Embedding(max_history, dim)
        for table in (
            self.relation_keys,
            self.relation_values,
            self.position_keys,
            self.position_values,
        ):
            nn.init.normal_(table.weight, std=dim**-0.5)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(
            RelativeBlock(dim=dim, heads=heads, dropout=dropout) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim, eps=1e-8)

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        tables, relations = self._build_tables(items.shape[1]), self._compute_relations(batch)
        states = self.dropout(items * self.dim**0.5)
        for block in self._blocks:
            states = block.attend_causally(states, tables, relations)
        return PositionOutputs(self.norm(states))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector and the last block's weights at each history's last event."""
        tables, relations = self._build_tables(items.shape[1]), self._compute_relations(batch)
        states = self.dropout(items * self.dim**0.5)
        *earlier, final_block = self._blocks
        for block in earlier:
            states = block.attend_causally(states, tables, relations)
        last = batch.lengths - 1
        output = final_block.attend(
            select_positions(states, last), states, tables, relations.select(last)
        )
        users: Tensor = self.norm(output.states)
        return EncoderOutput(user=users.squeeze(1), attention=output.weights.squeeze(2))

    def _build_tables(self, length: int) -> RelationTables:
        return RelationTables(
            self.dropout(self.relation_keys.weight),
            self.dropout(self.relation_values.weight),
            self.dropout(self.position_keys.weight[:length]),
            self.dropout(self.position_values.weight[:length]),
        )

    def _compute_relations(self, batch: SequenceBatch) -> Relations:
        length = batch.rows.shape[1]
        square = torch.ones(length, length, dtype=torch.bool, device=batch.rows.device)
        if self.relation == "personal":
            indices = compute_personal_relations(batch.times)
        else:
            intervals = batch.query_times.unsqueeze(-1) - batch.times.unsqueeze(1)
            indices = (intervals / self.time_scale).floor()
        indices = indices.clamp(0, self.time_span).long()
        if self.relation == "to_query":
            is_withheld = ~batch.query_given.unsqueeze(-1) & square.tril().triu()
            indices = indices.masked_fill(is_withheld, self.time_span + 1)
        return Relations(indices, square.tril().unsqueeze(0))

    @property
    def _blocks(self) -> list[RelativeBlock]:
        return [cast("RelativeBlock", block) for block in self.blocks]


def compute_personal_relations(
    times: Float64[Tensor, "batch len"],
) -> Float64[Tensor, "batch len len"]:
    """Compute the intervals between events (days) in units of the smallest one up to the later.

    The unit is the smallest non-zero interval among the events up to each position. Times are
    rounded to units before they are subtracted, as in the authors' code.
    """
    gaps = times.diff(dim=1, prepend=times[:, :1])
    unit = gaps.where(gaps > 0, torch.inf).cummin(1).values
    # While all events have the same time, the unit is inf and every relation 0.
    rounded = (times.unsqueeze(1) / unit.unsqueeze(-1)).round()
    return rounded.diagonal(dim1=1, dim2=2).unsqueeze(-1) - rounded
