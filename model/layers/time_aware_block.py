"""One block of a time-aware transformer, and what it knows of time."""

from typing import Literal, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from model.layers.feed_forward import FeedForward
from model.layers.fourier_basis import ReadOut
from model.layers.kernel_scale import KernelScale
from model.layers.query_mlp import QueryMLP
from model.layers.self_modulating import Modulated, ModulationView, SelfModulation
from model.layers.time_aware_attention import (
    Asked,
    Events,
    KeyValues,
    Sight,
    TimeAwareAttention,
)


class TimeView(NamedTuple):
    """The trigonometry of a batch, worked out once and shared by all blocks."""

    events: Events
    asked: Asked
    read_out: ReadOut

    def at(self, positions: Int64[Tensor, " batch"]) -> "TimeView":
        """The same events, asked about at one position of each history."""
        return self._replace(asked=at_positions(self.asked, positions))

    def of_last(self) -> "TimeView":
        """The last event alone, asked about the same instants."""
        return self._replace(events=self.events[:, -1:])


class BlockView(NamedTuple):
    """What blocks read of a batch beside their states, worked out once and shared by all blocks.

    Attributes:
        time: events and query times as trigonometry; of no frequencies where a kernel tells time.
        told: what each query knows of the interval from its own event to its query time.
        kernel: K(T_q, t_i) of every query and event, where a kernel tells time.
        modulation: groups and intervals, where attention is modulated.
    """

    time: TimeView
    told: Float[Tensor, "batch queries dim"]
    kernel: Float[Tensor, "batch queries len"] | None = None
    modulation: ModulationView | None = None

    def at(self, positions: Int64[Tensor, " batch"]) -> "BlockView":
        """The same events, asked about at one position of each history."""
        return BlockView(
            self.time.at(positions),
            at_positions(self.told, positions),
            None if self.kernel is None else at_positions(self.kernel, positions),
            None if self.modulation is None else self.modulation.at(positions),
        )

    def before_last(self) -> "BlockView":
        """All positions of each history but the last."""
        events, asked, read_out = self.time
        return BlockView(
            TimeView(events[:, :-1], asked[:, :-1], read_out),
            self.told[:, :-1],
            None if self.kernel is None else self.kernel[:, :-1, :-1],
            None
            if self.modulation is None
            else ModulationView(*(part[:, :-1] for part in self.modulation)),
        )


class Memory(NamedTuple):
    """What queries of a block read of each event; `modulation` is for its intensities."""

    attention: KeyValues
    modulation: Float[Tensor, "batch heads len head_dim"] | None

    def followed_by(self, own: "Memory") -> "Memory":
        """One history's memory, once per row of `own`, followed by that row's."""
        keys, values = (_then(*parts) for parts in zip(self.attention, own.attention, strict=True))
        if self.modulation is None or own.modulation is None:
            return Memory(KeyValues(keys, values), None)
        return Memory(KeyValues(keys, values), _then(self.modulation, own.modulation))


class BlockRead(NamedTuple):
    """A block's states, and what its attention was where that was worked out.

    Attributes:
        states: of the queries.
        weights: modulated where the block modulates.
        modulated: how, where the block modulates.
    """

    states: Float[Tensor, "batch queries dim"]
    weights: Float[Tensor, "batch heads queries len"] | None
    modulated: Modulated | None


@final
class TimeAwareBlock(nn.Module):
    """Attention, then a position-wise transform, each normalised before and added after.

    Attention may be told time by a kernel, and scaled by intensities, beside what it reads of
    features. With `query="mlp"`, a query reads the interval to its query time beside its state
    rather than only within it.
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
        reads_kernel: bool = False,
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
        )
        self.kernel_scale = KernelScale(heads=heads) if reads_kernel else None
        self.modulation = modulation
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim=dim, hidden=feed_forward, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def remember(self, states: Float[Tensor, "batch len dim"], time: TimeView) -> Memory:
        """What later queries of this block will read of these positions."""
        normed = self.attention_norm(states)
        return Memory(
            self.attention.remember(normed, time.events, time.read_out),
            None if self.modulation is None else self.modulation.remember(normed),
        )

    def read(
        self,
        states: Float[Tensor, "batch queries dim"],
        memory: Memory,
        view: BlockView,
        *,
        is_causal: bool = False,
        visible: Bool[Tensor, "batch #queries len"] | None = None,
        weights_wanted: bool = False,
    ) -> BlockRead:
        """The block at the queries of `view`, whose states these are.

        `visible` says which events each query may see, `is_causal` that query i sees the first
        i + 1; neither: all of them.
        """
        known = self.attention_norm(states)
        if self.query == "mlp":
            known = torch.cat((known, view.told), dim=-1)
        bias = None if self.kernel_scale is None else self.kernel_scale(view.kernel)
        sight = Sight(visible, is_causal, bias)
        events, (_, asked, read_out) = memory.attention, view.time
        weights: Tensor | None = None
        modulated: Modulated | None = None
        if weights_wanted or self.modulation is not None:
            weights = self.attention.weigh(known, events, asked, read_out, sight)
            if self.modulation is not None:
                modulated = self.modulation(weights, memory.modulation, view.modulation)
                weights = modulated.weights
            attended = self.attention.read_weighed(weights, events, asked, read_out)
        else:
            attended = self.attention.read(known, events, asked, read_out, sight)
        states = states + self.dropout(attended)
        transformed = self.feed_forward(self.feed_forward_norm(states))
        return BlockRead(states + self.dropout(transformed), weights, modulated)

    def read_all(self, states: Float[Tensor, "batch len dim"], view: BlockView) -> BlockRead:
        """The block over every position, each seeing itself and what came before."""
        return self.read(states, self.remember(states, view.time), view, is_causal=True)


def at_positions(states: Tensor, positions: Tensor) -> Tensor:
    """batch, len, dim -> batch, 1, dim: one position of each history."""
    return states[torch.arange(len(states), device=states.device), positions].unsqueeze(1)


def _then(before: Tensor, own: Tensor) -> Tensor:
    """1, heads, len, width and instants, heads, 1, width -> instants, heads, len + 1, width."""
    return torch.cat((before.expand(len(own), -1, -1, -1), own), dim=2)
