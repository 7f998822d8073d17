"""A GRU with additive attention over its own hidden states."""

from typing import Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.catalog import PADDING_ROW
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.additive_attention import AdditiveAttention
from model.layers.dropout import Dropout


class RNNAttentionConfig(Config):
    """A GRU over item vectors, and attention over its hidden states."""

    kind: Literal["rnn_attention"] = "rnn_attention"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: PositiveInt = 64
    """Width of the hidden state and of the attention."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors and of hidden states."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "RNNAttention":  # noqa: ARG002
        """Build the module."""
        return RNNAttention(dim=self.dim, hidden=self.hidden, dropout=self.dropout)


@final
class RNNAttention(SequenceEncoder):
    """Encodes items in their order by a GRU, then attends from the last state to all states.

    The last state `h` and its context vector `c` give the user vector `[h; c] B`. The encoder uses
    the order of the items only: neither event times nor the query time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: the RNN+attention row of Xu et al. 2019, which does not define it; the form is that of
        NARM, Li et al. 2017, "Neural Attentive Session-based Recommendation".
    DIFFERS(paper): softmax over tanh scores, the usual additive attention; one recurrence computes
        both the last state and the states that are attended to.
    """

    def __init__(self, *, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = Dropout(dropout)
        self.recurrence = nn.GRU(dim, hidden, batch_first=True)
        self.attention = AdditiveAttention(hidden=hidden)
        self.out_proj = nn.Linear(2 * hidden, dim, bias=False)

    def encode_positions(
        self,
        batch: SequenceBatch,  # noqa: ARG002
        items: Float[Tensor, "batch len dim"],
    ) -> PositionOutputs:
        """Compute the user vector at every position, attending from that position's state."""
        hidden = self._compute_hidden_states(items)
        return PositionOutputs(self._project_users(hidden, self.attention(hidden)))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector and the attention weights after each history's last event."""
        hidden = self._compute_hidden_states(items)
        last = select_positions(hidden, batch.lengths - 1)
        visible = (batch.rows != PADDING_ROW).unsqueeze(1)
        context, weights = self.attention.attend(last, hidden, visible)
        return EncoderOutput(self._project_users(last, context).squeeze(1), attention=weights)

    def _compute_hidden_states(self, items: Tensor) -> Tensor:
        """Compute the recurrent state after every event."""
        hidden, _ = self.recurrence(self.dropout(items))
        states: Tensor = hidden
        return states

    def _project_users(self, hidden: Tensor, context: Tensor) -> Tensor:
        users: Tensor = self.out_proj(self.dropout(torch.cat((hidden, context), dim=-1)))
        return users
