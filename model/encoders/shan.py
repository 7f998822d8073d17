"""SHAN: attention over the older events, then over their summary and the most recent ones."""

from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout

MASKED_LOGIT = torch.finfo(torch.float32).min
"""The logit of a masked event: finite, so that a softmax over masked events only is not NaN."""


class SHANConfig(Config):
    """Two levels of attention, long-term and hybrid."""

    kind: Literal["shan"] = "shan"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    recent: PositiveInt = 5
    """Events of the short-term set: the most recent ones; all earlier are the long-term set."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "SHAN":  # noqa: ARG002
        """Build the module."""
        return SHAN(dim=self.dim, recent=self.recent, dropout=self.dropout)


@final
class SHAN(SequenceEncoder):
    """Summarises the older events by attention, then attends to that summary and the recent ones.

    With `score_l(x) = u . relu(W_l x + b_l)` for both levels l, the long-term vector is the
    `score_1`-softmax average of all events but the most recent ones, and the user vector is the
    `score_2`-softmax average of the long-term vector and the most recent events. The returned
    attention is the total weight of each event in the user vector; that of an older event is the
    product of both levels. The encoder uses no times, and the order only through which events are
    the most recent.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Ying et al. 2018, "Sequential Recommender System based on Hierarchical Attention
        Network", eq. 1-5.
    DIFFERS(paper): the attention query u is one learned vector, not one per user, so that users
        unknown in training are served alike.
    DIFFERS(paper): histories have no sessions; the most recent events stand for the current one.
        Without any earlier event, there is no long-term vector.
    """

    def __init__(self, *, dim: int, recent: int, dropout: float) -> None:
        super().__init__()
        self.dim, self.recent = dim, recent
        self.attention_query = nn.Parameter(torch.empty(dim))
        self.long_term = nn.Linear(dim, dim)
        self.hybrid = nn.Linear(dim, dim)
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.attention_query, std=dim**-0.5)

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        positions = torch.arange(batch.rows.shape[1], device=batch.rows.device)
        dropped = self.dropout(items)
        return PositionOutputs(
            self._compute_weights(dropped, positions.expand(batch.rows.shape)) @ dropped
        )

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector and the weights of all events after each history's last event."""
        dropped = self.dropout(items)
        weights = self._compute_weights(dropped, batch.lengths[:, None] - 1)
        return EncoderOutput((weights @ dropped).squeeze(1), attention=weights)

    def _compute_weights(
        self, items: Float[Tensor, "batch len dim"], positions: Int64[Tensor, "batch queries"]
    ) -> Float[Tensor, "batch queries len"]:
        """Compute the total weight of every event at some positions."""
        age = positions.unsqueeze(-1) - torch.arange(items.shape[1], device=items.device)
        is_recent, is_older = (age >= 0) & (age < self.recent), age >= self.recent
        # The attention query is the same at all positions, and so is an event's logit.
        long_term_logits = self._compute_logits(self.long_term, items).unsqueeze(1)
        long_term = long_term_logits.masked_fill(~is_older, MASKED_LOGIT).softmax(-1) * is_older
        # The long-term vector is one more candidate beside the recent events.
        summary = self._compute_logits(self.hybrid, long_term @ items)
        summary = summary.masked_fill(~is_older.any(-1), MASKED_LOGIT)
        recent = (
            self._compute_logits(self.hybrid, items)
            .unsqueeze(1)
            .masked_fill(~is_recent, MASKED_LOGIT)
        )
        hybrid = torch.cat((summary.unsqueeze(-1), recent), dim=-1).softmax(-1)
        return hybrid[..., :1] * long_term + hybrid[..., 1:]

    def _compute_logits(self, level: nn.Linear, vectors: Tensor) -> Tensor:
        """Compute u . relu(W x + b)."""
        logits: Tensor = F.relu(level(vectors)) @ self.attention_query
        return logits
