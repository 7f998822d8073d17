"""One block of SASRec, optionally with time features and self-modulation."""

from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from model.batch import select_positions
from model.layers.composed_maps import TimeProjection, compose_output
from model.layers.derived import DerivingModule
from model.layers.dropout import Dropout
from model.layers.fourier_basis import BasisProjection
from model.layers.heads import split_last
from model.layers.self_modulation import ModulationInputs, ModulationOutput, SelfModulation
from model.layers.time_aware_attention import (
    KeyValues,
    TimeAwareQueryKey,
    append_basis,
)
from model.layers.time_aware_block import BlockOutput, KVCache, TimeInputs


class SASRecInputs(NamedTuple):
    """The inputs of a block beside its states, computed once per batch for all blocks.

    Attributes:
        time: the basis at event and query times; of no frequencies in plain SASRec.
        event_interval: time features of the interval from each query position's own event to its
            query time.
        modulation: group membership and intervals, where attention is modulated.
    """

    time: TimeInputs
    event_interval: Float[Tensor, "batch queries time_dim"]
    modulation: ModulationInputs | None

    def select(self, positions: Int64[Tensor, " batch"]) -> "SASRecInputs":
        """Keep one query position of each history, and all events."""
        return SASRecInputs(
            self.time.select(positions),
            select_positions(self.event_interval, positions),
            None if self.modulation is None else self.modulation.select(positions),
        )


@final
class SASRecBlock(DerivingModule):
    """Attention with normalised queries only, and a ReLU feed-forward network.

    Each residual connection adds the normalised input of its sublayer, not the raw one:

        q = norm(x),  y = q + attention(q; x),  z = norm(y),  out = z + W_2 relu(W_1 z)

    With time features, keys and values are linear in `[x_i, phi(T_q - t_i)]`, and `phi(T_q - t_q)`,
    the query's own interval, is added to the query. With modulation, weights are scaled before
    dropout.

    Shape: states (batch, len, dim) -> (batch, queries, dim)

    Paper: Kang and McAuley 2018, section III, as coded by its authors: no output projection.
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        dropout: float,
        time_dim: int = 0,
        modulation: SelfModulation | None = None,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(dim, eps=1e-8)
        self.interval_proj = TimeProjection(time_dim=time_dim, dim=dim)
        self.query_key = TimeAwareQueryKey(dim=dim, heads=heads, time_dim=time_dim)
        self.value_proj = nn.Linear(dim, dim)
        self.time_value_proj = TimeProjection(time_dim=time_dim, dim=dim)
        self.modulation = modulation
        self.feed_forward_norm = nn.LayerNorm(dim, eps=1e-8)
        self.linear1 = nn.Linear(dim, dim)
        self.linear2 = nn.Linear(dim, dim)
        self.dropout = Dropout(dropout)

    def project_kv(self, states: Float[Tensor, "batch len dim"], inputs: SASRecInputs) -> KVCache:
        """Project positions to the keys and values that queries of this block attend to."""
        events, projection = inputs.time.events, inputs.time.projection
        values = self.value_proj(states) + self.time_value_proj(projection.bias)
        keys = self.query_key.project_keys(states, events, projection)
        return KVCache(
            KeyValues(
                keys,
                append_basis(split_last(values, self.heads), events, self.query_key.content),
            ),
            None if self.modulation is None else self.modulation.project_values(states),
        )

    def attend(
        self,
        states: Float[Tensor, "batch queries dim"],
        cache: KVCache,
        inputs: SASRecInputs,
        *,
        visible: Bool[Tensor, "batch #queries len"] | None = None,
        need_weights: bool = False,
    ) -> BlockOutput:
        """Run the block at the queries of `inputs`, whose states are `states`.

        Args:
            visible: true where a query may attend to an event; without it, query i attends to the
                first i + 1 events.
            need_weights: also compute the attention weights.
        """
        residual = self.attention_norm(states) + self.interval_proj(inputs.event_interval)
        projection = inputs.time.projection
        rotation = self.query_key.build_rotation(inputs.time.queries)
        queries = self.query_key.project_queries(residual, rotation, projection)
        keys, values = cache.attention
        weights: Tensor | None = None
        modulation: ModulationOutput | None = None
        if need_weights or self.modulation is not None:
            weights = _masked_softmax(queries @ keys.transpose(-1, -2), visible)
            if self.modulation is not None:
                modulation = self.modulation(weights, cache.modulation, inputs.modulation)
                weights = modulation.weights
            output = self.dropout(weights) @ values
        else:
            output = F.scaled_dot_product_attention(
                queries,
                keys,
                values,
                attn_mask=None if visible is None else visible.unsqueeze(1),
                dropout_p=self.dropout.p if self.training else 0.0,
                is_causal=visible is None,
                scale=1.0,
            )
        composed = self.derive("output", lambda: self._compose_output(projection))
        merged = F.linear(rotation.rotate_back(output.transpose(1, 2)).flatten(2), composed)
        normed = self.feed_forward_norm(residual + merged)
        inner = self.dropout(F.relu(self.linear1(normed)))
        return BlockOutput(normed + self.dropout(self.linear2(inner)), weights, modulation)

    def _compose_output(self, projection: BasisProjection) -> Tensor:
        """Compose the map from weighted sums to values; nothing projects these any further."""
        weight = self.time_value_proj.weight
        identity = torch.eye(len(weight), device=weight.device)
        return compose_output(
            identity, self.time_value_proj, projection, self.heads, self.query_key.content
        )

    def attend_causally(
        self, states: Float[Tensor, "batch len dim"], inputs: SASRecInputs
    ) -> BlockOutput:
        """Run the block at every position, over the events up to and including it."""
        return self.attend(states, self.project_kv(states, inputs), inputs)


def _masked_softmax(logits: Tensor, visible: Tensor | None) -> Tensor:
    if visible is None:
        mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    else:
        mask = visible.unsqueeze(1)
    return logits.masked_fill(~mask, float("-inf")).softmax(-1)
