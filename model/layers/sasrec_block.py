"""One block of SASRec, which may read time beside content and let intensities modulate it."""

from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from model.layers.fourier_basis import rotate
from model.layers.self_modulating import Modulated, ModulationView, SelfModulation
from model.layers.time_aware_attention import (
    KeyValues,
    TimeAwareMatch,
    TimeProjection,
    beside_basis,
    on_basis,
)
from model.layers.time_aware_block import BlockRead, Memory, TimeView, at_positions


class SASRecView(NamedTuple):
    """What blocks read of a batch beside their states, worked out once.

    Attributes:
        time: the trigonometry of events and query times; of no frequencies in plain SASRec.
        since_last: the time features of the interval from each query's own event to its query time.
        modulation: groups and intervals, where attention is modulated.
    """

    time: TimeView
    since_last: Float[Tensor, "batch queries time_dim"]
    modulation: ModulationView | None

    def at(self, positions: Int64[Tensor, " batch"]) -> "SASRecView":
        """The same events, asked about at one position of each history."""
        return SASRecView(
            self.time.at(positions),
            at_positions(self.since_last, positions),
            None if self.modulation is None else self.modulation.at(positions),
        )


@final
class SASRecBlock(nn.Module):
    """Attention whose queries alone are normalised, then two linear maps with a ReLU between them.

    Both halves add their result to what they normalised, not to what came in:

        q = norm(x),  y = q + attention(q; x),  z = norm(y),  out = z + W_2 relu(W_1 z)

    With time features, keys and values are linear in `[x_i, phi(T_q - t_i)]` and the query reads
    `phi(T_q - t_q)`, its own interval, as well. With modulation, weights are scaled before they are
    dropped out.

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
        self.since_last = TimeProjection(time_dim=time_dim, dim=dim)
        self.match = TimeAwareMatch(dim=dim, heads=heads, time_dim=time_dim)
        self.value = nn.Linear(dim, dim)
        self.time_value = TimeProjection(time_dim=time_dim, dim=dim)
        self.modulation = modulation
        self.feed_forward_norm = nn.LayerNorm(dim, eps=1e-8)
        self.inner = nn.Linear(dim, dim)
        self.outer = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def remember(self, states: Float[Tensor, "batch len dim"], view: SASRecView) -> Memory:
        """What later queries of this block will read of these positions."""
        events, _, read_out = view.time
        values = self.value(states) + self.time_value(read_out.offset)
        keys = self.match.keys(states, events, read_out)
        return Memory(
            KeyValues(keys, beside_basis(values, events, self.heads)),
            None if self.modulation is None else self.modulation.remember(states),
        )

    def read(
        self,
        states: Float[Tensor, "batch queries dim"],
        memory: Memory,
        view: SASRecView,
        *,
        visible: Bool[Tensor, "batch #queries len"] | None = None,
        weights_wanted: bool = False,
    ) -> BlockRead:
        """The block at the queries of `view`, whose states these are.

        `visible` says which events each query may see; without it, query i sees the first i + 1.
        """
        queries = self.attention_norm(states) + self.since_last(view.since_last)
        match = self.match.queries(queries, view.time.asked, view.time.read_out)
        keys, values = memory.attention
        weights: Tensor | None = None
        modulated: Modulated | None = None
        if weights_wanted or self.modulation is not None:
            weights = _distribution(match @ keys.transpose(-1, -2), visible)
            if self.modulation is not None:
                modulated = self.modulation(weights, memory.modulation, view.modulation)
                weights = modulated.weights
            answer = self.dropout(weights) @ values
        else:
            answer = F.scaled_dot_product_attention(
                match,
                keys,
                values,
                attn_mask=None if visible is None else visible.unsqueeze(1),
                dropout_p=self.dropout.p if self.training else 0.0,
                is_causal=visible is None,
                scale=1.0,
            )
        between = self.feed_forward_norm(queries + self._joined(answer, view.time))
        inner = self.dropout(F.relu(self.inner(between)))
        return BlockRead(between + self.dropout(self.outer(inner)), weights, modulated)

    def read_all(self, states: Float[Tensor, "batch len dim"], view: SASRecView) -> BlockRead:
        """The block over every position, each seeing itself and what came before."""
        return self.read(states, self.remember(states, view), view)

    def _joined(self, answer: Tensor, time: TimeView) -> Tensor:
        """Heads side by side, their sums over the basis turned to the query time and read out."""
        of_basis = on_basis(self.time_value, time.read_out, self.heads)
        content, of_events = torch.split(answer, list(of_basis.shape[1:]), dim=-1)
        of_time = rotate(of_events, time.asked.unsqueeze(1)) @ of_basis.transpose(-1, -2)
        return (content + of_time).transpose(1, 2).flatten(2)


def _distribution(logits: Tensor, visible: Tensor | None) -> Tensor:
    if visible is None:
        mask = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
    else:
        mask = visible.unsqueeze(1)
    return logits.masked_fill(~mask, float("-inf")).softmax(-1)
