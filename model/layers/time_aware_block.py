"""One block of a time-aware transformer, and what it knows of time."""

from typing import NamedTuple, final

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from model.layers.feed_forward import FeedForward
from model.layers.fourier_basis import ReadOut
from model.layers.time_aware_attention import Asked, Events, KeyValues, TimeAwareAttention


class TimeView(NamedTuple):
    """The trigonometry of a batch, worked out once and shared by all blocks."""

    events: Events
    asked: Asked
    read_out: ReadOut

    def at(self, positions: Int64[Tensor, " batch"]) -> "TimeView":
        """The same events, asked about at one position of each history."""
        return self._replace(asked=at_positions(self.asked, positions))


@final
class TimeAwareBlock(nn.Module):
    """Attention, then a position-wise transform, each normalised before and added after."""

    def __init__(
        self, *, dim: int, heads: int, feed_forward: int, dropout: float, time_dim: int
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = TimeAwareAttention(dim=dim, heads=heads, time_dim=time_dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim=dim, hidden=feed_forward, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def remember(self, states: Tensor, view: TimeView) -> KeyValues:
        """What later queries of this block will read of these positions."""
        return self.attention.remember(self.attention_norm(states), view.events, view.read_out)

    def read(
        self,
        states: Tensor,
        memory: KeyValues,
        view: TimeView,
        *,
        is_causal: bool = False,
        visible: Tensor | None = None,
        weights_wanted: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The block's states at the positions of `states`, and its weights where wanted."""
        attended = self.attention.read(
            self.attention_norm(states),
            memory,
            view.asked,
            view.read_out,
            is_causal=is_causal,
            visible=visible,
            weights_wanted=weights_wanted,
        )
        states = states + self.dropout(attended.states)
        transformed = self.feed_forward(self.feed_forward_norm(states))
        return states + self.dropout(transformed), attended.weights

    def read_all(self, states: Tensor, view: TimeView) -> Tensor:
        """The block over every position, each seeing itself and what came before."""
        read, _ = self.read(states, self.remember(states, view), view, is_causal=True)
        return read


def at_positions(states: Tensor, positions: Tensor) -> Tensor:
    """batch, len, dim -> batch, 1, dim: one position of each history."""
    return states[torch.arange(len(states), device=states.device), positions].unsqueeze(1)
