"""A gated recurrent unit with attention over its own states."""

from typing import Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.additive_attention import AdditiveAttention
from model.layers.time_aware_block import at_positions


class RNNAttentionConfig(Config):
    """A GRU over item vectors, and attention over its states."""

    kind: Literal["rnn_attention"] = "rnn_attention"
    dim: PositiveInt = 64
    hidden: PositiveInt = 64
    """Width of the recurrent state, and of what attention compares."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "RNNAttention":  # noqa: ARG002
        """The module this describes."""
        return RNNAttention(dim=self.dim, hidden=self.hidden, dropout=self.dropout)


@final
class RNNAttention(SequenceEncoder):
    """Reads items one after another, then looks back from the last state at all of them.

    The last state and what it takes from the past, side by side, give the user vector `[h; c] B`.
    It reads the order of the items alone: not when they came, nor when it is asked.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: the RNN+attention row of Xu et al. 2019, which does not define it; the form is that of
        NARM, Li et al. 2017, "Neural Attentive Session-based Recommendation".
    DIFFERS(paper): weights are a softmax of tanh comparisons, as is usual for additive attention;
        one recurrence serves both the last state and the states attended over.
    """

    def __init__(self, *, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = nn.Dropout(dropout)
        self.recurrence = nn.GRU(dim, hidden, batch_first=True)
        self.attention = AdditiveAttention(hidden=hidden)
        self.read_out = nn.Linear(2 * hidden, dim, bias=False)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:  # noqa: ARG002
        """User vectors at every position, each looking back from its own state."""
        read = self._read(items)
        return States(self._user(read, self.attention(read)))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history, with the weights of its look back."""
        read = self._read(items)
        last = at_positions(read, batch.lengths - 1)
        taken, weights = self.attention.read(last, read, (batch.rows != PADDING_ROW).unsqueeze(1))
        return Encoded(self._user(last, taken).squeeze(1), attention=weights)

    def _read(self, items: Tensor) -> Tensor:
        """The recurrent state after every event."""
        read, _ = self.recurrence(self.dropout(items))
        states: Tensor = read
        return states

    def _user(self, asking: Tensor, taken: Tensor) -> Tensor:
        users: Tensor = self.read_out(self.dropout(torch.cat((asking, taken), dim=-1)))
        return users
