"""Attention that reads how far apart two events are, as one of finitely many relations."""

from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from model.layers.time_aware_attention import split_heads
from model.layers.time_aware_block import at_positions

Table = Float[Tensor, "entries dim"]


class RelationTables(NamedTuple):
    """What relations and places add to keys and values; shared by all blocks."""

    relation_keys: Table
    relation_values: Table
    place_keys: Table
    place_values: Table


class Relations(NamedTuple):
    """How every query position is related to every event.

    Attributes:
        of: entries of the relation tables; of events a query may not see, any.
        visible: which events each query may see.
    """

    of: Int64[Tensor, "batch queries len"]
    visible: Bool[Tensor, "#batch queries len"]

    def at(self, positions: Int64[Tensor, " batch"]) -> "Relations":
        """The same events, asked about at one position of each history."""
        every = self.visible.expand(self.of.shape)
        return Relations(at_positions(self.of, positions), at_positions(every, positions))


class Related(NamedTuple):
    """A block's states at the query positions, and its weights before dropout."""

    states: Float[Tensor, "batch queries dim"]
    weights: Float[Tensor, "batch heads queries len"]


@final
class RelativeAttention(nn.Module):
    """Attention whose keys and values hold an event's place and its relation to the query.

        logit(q, i) = Q_q . (K_i + P^K_i + R^K_r(q,i)) / sqrt(head_dim)
        answer(q) = sum_i a_qi (V_i + P^V_i + R^V_r(q,i))

    Relations are few and pairs are many, so no vector is ever laid out per pair: the query is
    matched with every relation once, and each pair picks its own from these products; and the
    weights that a query gives to events of one relation are added up before its vector is read.

    Shape: states (batch, queries, dim) and (batch, len, dim) -> (batch, queries, dim)
    """

    def __init__(self, *, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"heads must divide dim, however: {dim=}, {heads=}")
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        queries: Float[Tensor, "batch queries dim"],
        states: Float[Tensor, "batch len dim"],
        tables: RelationTables,
        relations: Relations,
    ) -> Related:
        """What queries read of events, heads side by side."""
        asked = split_heads(self.query(queries) * self.scale, self.heads)
        keys = split_heads(self.key(states) + tables.place_keys, self.heads)
        values = split_heads(self.value(states) + tables.place_values, self.heads)
        related = relations.of.unsqueeze(1).expand(-1, self.heads, -1, -1)

        of_relations = asked @ self._by_head(tables.relation_keys).transpose(-1, -2)
        logits = asked @ keys.transpose(-1, -2) + of_relations.gather(-1, related)
        logits = logits.masked_fill(~relations.visible.unsqueeze(1), float("-inf"))
        weights = logits.softmax(-1)

        counted = self.dropout(weights)
        per_relation = torch.zeros_like(of_relations).scatter_add(-1, related, counted)
        answer = counted @ values + per_relation @ self._by_head(tables.relation_values)
        return Related(answer.transpose(1, 2).flatten(2), weights)

    def _by_head(self, table: Table) -> Float[Tensor, "heads entries head_dim"]:
        return table.view(len(table), self.heads, -1).transpose(0, 1)


@final
class RelativeBlock(nn.Module):
    """Relative attention, then two linear maps with a ReLU between them, arranged as in SASRec.

    Both halves add their result to what they normalised, not to what came in:

        q = norm(x),  y = q + attention(q; x),  z = norm(y),  out = z + W_2 relu(W_1 z)

    Shape: states (batch, len, dim) -> (batch, queries, dim)

    Paper: Li et al. 2020, section III, as coded by its authors: no output projection.
    """

    def __init__(self, *, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim, eps=1e-8)
        self.attention = RelativeAttention(dim=dim, heads=heads, dropout=dropout)
        self.feed_forward_norm = nn.LayerNorm(dim, eps=1e-8)
        self.inner = nn.Linear(dim, dim)
        self.outer = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def read(
        self,
        asking: Float[Tensor, "batch queries dim"],
        states: Float[Tensor, "batch len dim"],
        tables: RelationTables,
        relations: Relations,
    ) -> Related:
        """The block at some positions, whose states are `asking`, over the states of all."""
        queries = self.attention_norm(asking)
        related: Related = self.attention(queries, states, tables, relations)
        between = self.feed_forward_norm(queries + related.states)
        inner = self.dropout(F.relu(self.inner(between)))
        return Related(between + self.dropout(self.outer(inner)), related.weights)

    def read_all(
        self,
        states: Float[Tensor, "batch len dim"],
        tables: RelationTables,
        relations: Relations,
    ) -> Float[Tensor, "batch len dim"]:
        """The block over every position."""
        return self.read(states, states, tables, relations).states
