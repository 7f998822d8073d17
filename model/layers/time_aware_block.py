"""A pre-norm transformer block with time-aware attention."""

from collections.abc import Callable
from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from model.batch import gather_positions, select_positions
from model.layers.damped_basis import DampedBasis
from model.layers.dropout import Dropout
from model.layers.fourier_basis import BasisProjection, Rotation
from model.layers.self_modulation import ModulationInputs, ModulationOutput, SelfModulation
from model.layers.time_aware_attention import (
    AttentionMask,
    EventBasis,
    HeadPhasors,
    KernelScale,
    KeyValues,
    QueryBasis,
    QueryMLP,
    TimeAwareAttention,
    TimeAwareQueryKey,
)


class TimeInputs(NamedTuple):
    """The basis at event times and query times, computed once per batch for all blocks.

    Attributes:
        events, queries: of no frequencies where a kernel encodes time, the content turns, or the
            basis is damped.
        days: times of the events since the first one, for damping.
        event_phasors, query_phasors: by which the content of keys and of queries turns.
        damped: the damped basis of all intervals.
    """

    events: EventBasis
    queries: QueryBasis
    projection: BasisProjection
    days: Float64[Tensor, "#batch len"] | None = None
    event_phasors: HeadPhasors | None = None
    query_phasors: HeadPhasors | None = None
    damped: DampedBasis | None = None

    def select(self, positions: Int64[Tensor, " batch"]) -> "TimeInputs":
        """Keep one query position of each history, and all events."""
        return self.map_queries(lambda states: select_positions(states, positions))

    def map_queries(self, choose: Callable[[Tensor], Tensor]) -> "TimeInputs":
        """Keep the query positions that `choose` takes from the second dimension."""
        queries, phasors, damped = self.queries, self.query_phasors, self.damped
        return self._replace(
            queries=choose(queries),
            query_phasors=None if phasors is None else choose(phasors),
            damped=None if damped is None else damped.map(choose),
        )

    def gather(self, positions: Int64[Tensor, "batch chosen"]) -> "TimeInputs":
        """Keep several query positions of each history, and all events."""
        return self.map_queries(lambda states: gather_positions(states, positions))

    def gather_events(self, positions: Int64[Tensor, "queries chosen"]) -> "TimeInputs":
        """Select events of a single history, several per query; the queries stay."""
        days, phasors = self.days, self.event_phasors
        return self._replace(
            events=self.events[0, positions],
            days=None if days is None else days[0, positions],
            event_phasors=None if phasors is None else phasors[0, positions],
        )

    def build_rotation(self, query_key: TimeAwareQueryKey) -> Rotation | DampedBasis:
        """Build what the heads of an attention layer need of the query times."""
        return query_key.build_rotation(
            self.queries, phasors=self.query_phasors, damped=self.damped
        )


class BlockInputs(NamedTuple):
    """The inputs of a block beside its states, computed once per batch for all blocks.

    Attributes:
        time: the basis at event and query times, or what takes its place.
        event_interval: features of the interval from each query position's own event to its query
            time, projected to `dim`.
        kernel: K(T_q, t_i) of every query and event, where a kernel encodes time.
        modulation: group membership and intervals, where attention is modulated.
    """

    time: TimeInputs
    event_interval: Float[Tensor, "batch queries dim"]
    kernel: Float[Tensor, "batch queries len"] | None = None
    modulation: ModulationInputs | None = None

    def take_last(self) -> "BlockInputs":
        """Keep the last query position, and all events."""
        return BlockInputs(
            self.time.map_queries(lambda states: states[:, -1:]),
            self.event_interval[:, -1:],
            None if self.kernel is None else self.kernel[:, -1:],
            None if self.modulation is None else self.modulation.take_last(),
        )

    def take_first(self) -> "BlockInputs":
        """Keep the query time of the first query position, for all that are of one instant."""
        return self._replace(time=self.time.map_queries(lambda states: states[:, :1]))

    def take_events(self, count: int) -> "BlockInputs":
        """Keep the pairs of the first events with all queries."""
        kernel, damped = self.kernel, self.time.damped
        return self._replace(
            time=self.time._replace(
                damped=None if damped is None else damped.map(lambda pairs: pairs[:, :, :count])
            ),
            kernel=None if kernel is None else kernel[:, :, :count],
        )

    def gather(self, positions: Int64[Tensor, "batch chosen"]) -> "BlockInputs":
        """Keep several query positions of each history, and all events."""
        return BlockInputs(
            self.time.gather(positions),
            gather_positions(self.event_interval, positions),
            None if self.kernel is None else gather_positions(self.kernel, positions),
            None if self.modulation is None else self.modulation.gather(positions),
        )


class KVCache(NamedTuple):
    """Keys and values of events for one block; `modulation` holds the values of its intensities."""

    attention: KeyValues
    modulation: Float[Tensor, "batch heads len head_dim"] | None


class BlockOutput(NamedTuple):
    """The output of a block.

    Attributes:
        states: hidden states of the queries.
        weights: attention weights, modulated where the block modulates; None unless computed.
        modulation: intensities, where the block modulates.
    """

    states: Float[Tensor, "batch queries dim"]
    weights: Float[Tensor, "batch heads queries len"] | None
    modulation: ModulationOutput | None


@final
class FeedForward(nn.Module):
    """The position-wise network of a transformer block: two linear maps with a GELU between them.

    Shape: states (*, dim) -> (*, dim)
    """

    def __init__(self, *, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.up_proj = nn.Linear(dim, hidden)
        self.down_proj = nn.Linear(hidden, dim)
        self.activation = nn.GELU()
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
        """Transform every position separately."""
        transformed: Tensor = self.down_proj(self.dropout(self.activation(self.up_proj(states))))
        return transformed


@final
class TimeAwareBlock(nn.Module):
    """Time-aware attention and a feed-forward network, each pre-normalised and residual.

    A time kernel may be added to the logits, and intensities may modulate the weights. With
    `query="mlp"`, a query is a perceptron of the normalised state and of the features of its own
    interval side by side; with "sum", the interval enters only as a summand of the state.

    Shape: states (batch, queries, dim) -> (batch, queries, dim)
    """

    def __init__(
        self,
        *,
        dim: int,
        heads: int,
        feed_forward: int,
        dropout: float,
        time_dim: int,
        query: Literal["sum", "mlp"] = "sum",
        damping: bool = False,
        uses_kernel: bool = False,
        modulation: SelfModulation | None = None,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.query = query
        self.attention = TimeAwareAttention(
            dim=dim,
            heads=heads,
            time_dim=time_dim,
            query=QueryMLP(dim=dim) if query == "mlp" else None,
            damping=damping,
        )
        self.kernel_scale = KernelScale(heads=heads) if uses_kernel else None
        self.modulation = modulation
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim=dim, hidden=feed_forward, dropout=dropout)
        self.dropout = Dropout(dropout)

    def project_kv(self, states: Float[Tensor, "batch len dim"], time: TimeInputs) -> KVCache:
        """Project positions to the keys and values that queries of this block attend to."""
        return self._project_kv(self.attention_norm(states), time)

    def _project_kv(self, normed: Tensor, time: TimeInputs) -> KVCache:
        return KVCache(
            self.attention.project_kv(
                normed, time.events, time.projection, time.days, time.event_phasors
            ),
            None if self.modulation is None else self.modulation.project_values(normed),
        )

    def attend(
        self,
        states: Float[Tensor, "batch queries dim"],
        cache: KVCache,
        inputs: BlockInputs,
        *,
        is_causal: bool = False,
        visible: Bool[Tensor, "batch #queries len"] | None = None,
        need_weights: bool = False,
    ) -> BlockOutput:
        """Run the block at the queries of `inputs`, whose states are `states`.

        Args:
            is_causal: query i attends to the first i + 1 events.
            visible: true where a query may attend to an event; without either, to all.
            need_weights: also compute the attention weights.
        """
        mask = AttentionMask(visible, is_causal)
        return self._attend(states, self.attention_norm(states), cache, inputs, mask, need_weights)

    def _attend(
        self,
        states: Tensor,
        normed: Tensor,
        cache: KVCache,
        inputs: BlockInputs,
        mask: AttentionMask,
        need_weights: bool,
    ) -> BlockOutput:
        query_inputs = self._build_query_inputs(normed, inputs)
        if self.kernel_scale is not None:
            mask = mask._replace(bias=self.kernel_scale(inputs.kernel))
        key_values, projection = cache.attention, inputs.time.projection
        rotation = inputs.time.build_rotation(self.attention.query_key)
        weights: Tensor | None = None
        modulation: ModulationOutput | None = None
        if need_weights or self.modulation is not None:
            weights = self.attention.attention_weights(
                query_inputs, key_values, rotation, projection, mask
            )
            if self.modulation is not None:
                modulation = self.modulation(weights, cache.modulation, inputs.modulation)
                weights = modulation.weights
            attended = self.attention.apply_weights(weights, key_values, rotation, projection)
        else:
            attended = self.attention.attend(query_inputs, key_values, rotation, projection, mask)
        return BlockOutput(self._add_attended(states, attended), weights, modulation)

    def attend_causally(
        self, states: Float[Tensor, "batch len dim"], inputs: BlockInputs
    ) -> BlockOutput:
        """Run the block at every position, over the events up to and including it."""
        normed = self.attention_norm(states)
        cache = self._project_kv(normed, inputs.time)
        mask = AttentionMask(is_causal=True)
        return self._attend(states, normed, cache, inputs, mask, need_weights=False)

    def attend_shared(
        self,
        states: Float[Tensor, "queries positions dim"],
        shared: KVCache,
        own: KVCache,
        inputs: BlockInputs,
        visible: Bool[Tensor, "queries 1 all_events"],
    ) -> BlockOutput:
        """Run the block at several positions of each query of one history, without modulation.

        Args:
            shared: of the history.
            own: of the events of each query that depend on its query time.
            inputs: of the queries; a kernel is of the events of the history, then of its own.
            visible: which events a query attends to: of the history, then of its own.
        """
        attended, weights = self.attention.attend_shared(
            self._build_query_inputs(self.attention_norm(states), inputs),
            shared.attention,
            own.attention,
            inputs.time.build_rotation(self.attention.query_key),
            inputs.time.projection,
            visible,
            None if self.kernel_scale is None else self.kernel_scale(inputs.kernel),
        )
        return BlockOutput(self._add_attended(states, attended), weights, None)

    def _build_query_inputs(self, normed: Tensor, inputs: BlockInputs) -> Tensor:
        if self.query == "sum":
            return normed
        return torch.cat((normed, inputs.event_interval.expand_as(normed)), dim=-1)

    def _add_attended(self, states: Tensor, attended: Tensor) -> Tensor:
        states = states + self.dropout(attended)
        transformed = self.feed_forward(self.feed_forward_norm(states))
        added: Tensor = states + self.dropout(transformed)
        return added
