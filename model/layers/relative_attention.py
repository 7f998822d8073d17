"""Self-attention with relative time intervals as keys and values (TiSASRec)."""

from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from model.batch import select_positions
from model.layers.dropout import Dropout
from model.layers.heads import split_heads

Table = Float[Tensor, "entries dim"]


class RelationTables(NamedTuple):
    """Embeddings of relations and positions, added to keys and values; shared by all blocks."""

    relation_keys: Table
    relation_values: Table
    position_keys: Table
    position_values: Table


class Relations(NamedTuple):
    """The relation of every query position to every event.

    Attributes:
        indices: entries of the relation tables; arbitrary where `visible` is false.
        visible: which events each query may attend to.
    """

    indices: Int64[Tensor, "batch queries len"]
    visible: Bool[Tensor, "#batch queries len"]

    def select(self, positions: Int64[Tensor, " batch"]) -> "Relations":
        """Keep one query position of each history."""
        visible = self.visible.expand(self.indices.shape)
        return Relations(
            select_positions(self.indices, positions), select_positions(visible, positions)
        )


class RelativeOutput(NamedTuple):
    """Hidden states at the query positions, and the attention weights before dropout."""

    states: Float[Tensor, "batch queries dim"]
    weights: Float[Tensor, "batch heads queries len"]


@final
class RelativeAttention(nn.Module):
    """Attention whose keys and values include an event's position and its relation to the query.

        logit(q, i) = Q_q . (K_i + P^K_i + R^K_r(q,i)) / sqrt(head_dim)
        output(q) = sum_i a_qi (V_i + P^V_i + R^V_r(q,i))

    There are few relations and many pairs, so no vector is materialised per pair: each query is
    multiplied with every relation key once, and each pair gathers its logit from these products;
    the weights of events of one relation are summed before its value is added.

    Shape: states (batch, queries, dim) and (batch, len, dim) -> (batch, queries, dim)

    Raises:
        ValueError: if `heads` does not divide `dim`.
    """

    def __init__(self, *, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"heads must divide dim, but {dim=}, {heads=}; change one of them")
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.query_proj = nn.Linear(dim, dim)
        self.key_proj = nn.Linear(dim, dim)
        self.value_proj = nn.Linear(dim, dim)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        queries: Float[Tensor, "batch queries dim"],
        states: Float[Tensor, "batch len dim"],
        tables: RelationTables,
        relations: Relations,
    ) -> RelativeOutput:
        """Attend from the queries to the events; the output has the heads side by side."""
        query_heads = split_heads(self.query_proj(queries) * self.scale, self.heads)
        keys = split_heads(self.key_proj(states) + tables.position_keys, self.heads)
        values = split_heads(self.value_proj(states) + tables.position_values, self.heads)
        indices = relations.indices.unsqueeze(1).expand(-1, self.heads, -1, -1)

        relation_logits = query_heads @ self._split_by_head(tables.relation_keys).transpose(-1, -2)
        logits = query_heads @ keys.transpose(-1, -2) + relation_logits.gather(-1, indices)
        logits = logits.masked_fill(~relations.visible.unsqueeze(1), float("-inf"))
        weights = logits.softmax(-1)

        dropped = self.dropout(weights)
        per_relation = torch.zeros_like(relation_logits).scatter_add(-1, indices, dropped)
        output = dropped @ values + per_relation @ self._split_by_head(tables.relation_values)
        return RelativeOutput(output.transpose(1, 2).flatten(2), weights)

    def _split_by_head(self, table: Table) -> Float[Tensor, "heads entries head_dim"]:
        return table.view(len(table), self.heads, -1).transpose(0, 1)


@final
class RelativeBlock(nn.Module):
    """Relative attention and a ReLU feed-forward network, arranged as in SASRec.

    Each residual connection adds the normalised input of its sublayer, not the raw one:

        q = norm(x),  y = q + attention(q; x),  z = norm(y),  out = z + W_2 relu(W_1 z)

    Shape: states (batch, len, dim) -> (batch, queries, dim)

    Paper: Li et al. 2020, section III, as coded by its authors: no output projection.
    """

    def __init__(self, *, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim, eps=1e-8)
        self.attention = RelativeAttention(dim=dim, heads=heads, dropout=dropout)
        self.feed_forward_norm = nn.LayerNorm(dim, eps=1e-8)
        self.linear1 = nn.Linear(dim, dim)
        self.linear2 = nn.Linear(dim, dim)
        self.dropout = Dropout(dropout)

    def attend(
        self,
        query_states: Float[Tensor, "batch queries dim"],
        states: Float[Tensor, "batch len dim"],
        tables: RelationTables,
        relations: Relations,
    ) -> RelativeOutput:
        """Run the block at some positions, whose states are `query_states`, over all states."""
        queries = self.attention_norm(query_states)
        attended: RelativeOutput = self.attention(queries, states, tables, relations)
        normed = self.feed_forward_norm(queries + attended.states)
        inner = self.dropout(F.relu(self.linear1(normed)))
        return RelativeOutput(normed + self.dropout(self.linear2(inner)), attended.weights)

    def attend_causally(
        self,
        states: Float[Tensor, "batch len dim"],
        tables: RelationTables,
        relations: Relations,
    ) -> Float[Tensor, "batch len dim"]:
        """Run the block at every position."""
        return self.attend(states, states, tables, relations).states
