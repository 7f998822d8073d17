"""SHAN: attention over the distant past, then over its summary and the last few items."""

from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States

NEVER = torch.finfo(torch.float32).min
"""The logit of what must not be attended to: finite, so that attending to nothing at all is 0."""


class SHANConfig(Config):
    """Two levels of attention, long-term and hybrid."""

    kind: Literal["shan"] = "shan"
    dim: PositiveInt = 64
    recent: PositiveInt = 5
    """Events of the short-term set: the most recent ones; all before are the long-term set."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "SHAN":  # noqa: ARG002
        """The module this describes."""
        return SHAN(dim=self.dim, recent=self.recent, dropout=self.dropout)


@final
class SHAN(SequenceEncoder):
    """Sums up the distant past by attention, then weighs that sum against the last few items.

    With `score_l(x) = u . relu(W_l x + b_l)` for both levels l, the long-term vector is the softmax
    of `score_1` over all events but the last few, and the user vector that of `score_2` over the
    long-term vector and the last few events. What it returns as attention is how much each event
    counts in the user vector; a distant one by both levels. It reads no time, and order only
    through which events are the last few.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Ying et al. 2018, "Sequential Recommender System based on Hierarchical Attention
        Network", eq. 1-5.
    DIFFERS(paper): the vector u that looks for what matters is learned for everyone, not per user,
        so that users unknown at training are answered alike.
    DIFFERS(paper): histories have no sessions; the last few events stand for the current one. With
        no more events than that, there is no long-term vector.
    """

    def __init__(self, *, dim: int, recent: int, dropout: float) -> None:
        super().__init__()
        self.dim, self.recent = dim, recent
        self.wanted = nn.Parameter(torch.empty(dim))
        self.long_term = nn.Linear(dim, dim)
        self.hybrid = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.wanted, std=dim**-0.5)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position; what follows a position never reaches it."""
        every_place = torch.arange(batch.rows.shape[1], device=batch.rows.device)
        read = self.dropout(items)
        return States(self._weights(read, every_place.expand(batch.rows.shape)) @ read)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history, with the weights of all events."""
        read = self.dropout(items)
        weights = self._weights(read, batch.lengths[:, None] - 1)
        return Encoded((weights @ read).squeeze(1), attention=weights)

    def _weights(
        self, items: Float[Tensor, "batch len dim"], asked: Int64[Tensor, "batch queries"]
    ) -> Float[Tensor, "batch queries len"]:
        """How much every event counts at some positions; every position costs len weights."""
        age = asked.unsqueeze(-1) - torch.arange(items.shape[1], device=items.device)
        is_recent, is_distant = (age >= 0) & (age < self.recent), age >= self.recent
        # u is the same for all, so an event's logit is the same wherever it is asked about.
        distant = self._logits(self.long_term, items).unsqueeze(1)
        within = distant.masked_fill(~is_distant, NEVER).softmax(-1) * is_distant
        # The long-term vector is one more candidate beside the recent events.
        summary = self._logits(self.hybrid, within @ items)
        summary = summary.masked_fill(~is_distant.any(-1), NEVER)
        recent = self._logits(self.hybrid, items).unsqueeze(1).masked_fill(~is_recent, NEVER)
        of_both = torch.cat((summary.unsqueeze(-1), recent), dim=-1).softmax(-1)
        return of_both[..., :1] * within + of_both[..., 1:]

    def _logits(self, level: nn.Linear, vectors: Tensor) -> Tensor:
        """How well vectors fit what is looked for: u . relu(W x + b)."""
        fit: Tensor = F.relu(level(vectors)) @ self.wanted
        return fit
