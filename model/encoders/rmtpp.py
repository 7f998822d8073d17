"""RMTPP: a recurrent point process that predicts the next item and the time of the next event."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.catalog import PADDING_ROW
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout
from model.layers.interval_distribution import (
    Gompertz,
    ZeroInflated,
    build_zero_logit,
    soft_clamp_max,
)

MAX_RATE_PER_DAY = MICROSECONDS_PER_DAY / MICROSECONDS_PER_SECOND
"""Upper bound of the hazard right after an event: one event per second."""


class RMTPPConfig(Config):
    """A recurrent marked temporal point process."""

    kind: Literal["rmtpp"] = "rmtpp"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: PositiveInt = 64
    """Width of the hidden state."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors and of hidden states."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    time_scale: PositiveFloat = 30.0
    """Days per unit of the hazard; about the mean interval of the data is best."""

    def build(self, *, items: int = 0, actions: int = 0) -> "RMTPP":  # noqa: ARG002
        """Build the module for a catalog of `items` and `actions` known actions."""
        return RMTPP(**self.model_dump(exclude={"kind", "max_history"}), actions=actions)


@final
class RMTPP(SequenceEncoder):
    """A ReLU recurrence over events and the intervals between them.

    Its hidden state gives the user vector, the probability that the next event is at the same
    instant, and else the hazard of the next event: `exp(v . h + b + w d)` after `d` days without
    one, with one `w` for all. The query time is not used: the item is
    predicted for the next event at any time, and that time is predicted separately.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Du et al. 2016, "Recurrent Marked Temporal Point Processes", eq. 9-12.
    DIFFERS(paper): the input is log(1 + days) since the previous event, and action embeddings are
        added to the items; markers are scored by the item table, not by an output matrix; intervals
        of 0 have a probability of their own, which a density cannot give them; the initial hazard
        is bounded by one event per second.
    DIFFERS(code): the density is of the interval after the event; tf_rmtpp uses the one before it.
        No lower bound on |w|: a series replaces the formula near 0.
    """

    predicts_next_time = True

    def __init__(
        self, *, dim: int, hidden: int, dropout: float, time_scale: float, actions: int
    ) -> None:
        super().__init__()
        self.dim = dim
        self.time_scale = time_scale
        self.actions = nn.Embedding(actions + 1, dim, padding_idx=0) if actions else None
        self.recurrence = nn.RNN(dim + 1, hidden, nonlinearity="relu", batch_first=True)
        self.out_proj = nn.Linear(hidden, dim)
        self.log_rate = nn.Linear(hidden, 1)
        self.zero_interval = build_zero_logit(hidden)
        self.growth = nn.Parameter(torch.tensor(0.0))
        self.dropout = Dropout(dropout)
        if self.actions is not None:
            nn.init.normal_(self.actions.weight, std=dim**-0.5)

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute user vectors and next-time distributions at every position."""
        hidden = self._compute_hidden_states(batch, items)
        return PositionOutputs(self.out_proj(hidden), next_time=self._predict_next_time(hidden))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute user vectors and next-time distributions after each history's last event."""
        last = batch.lengths - 1
        hidden = select_positions(self._compute_hidden_states(batch, items), last).squeeze(1)
        return EncoderOutput(self.out_proj(hidden), next_time=self._predict_next_time(hidden))

    def _compute_hidden_states(self, batch: SequenceBatch, items: Tensor) -> Tensor:
        content = items if self.actions is None else items + self.actions(batch.actions)
        gaps = torch.diff(batch.times, prepend=batch.times[:, :1])
        log_gaps = gaps.masked_fill(batch.rows == PADDING_ROW, 0).log1p().float()
        inputs = torch.cat((self.dropout(content), log_gaps.unsqueeze(-1)), dim=-1)
        hidden, _ = self.recurrence(inputs)
        dropped: Tensor = self.dropout(hidden)
        return dropped

    def _predict_next_time(self, hidden: Tensor) -> ZeroInflated:
        max_log_rate = math.log(self.time_scale * MAX_RATE_PER_DAY)
        log_rate = soft_clamp_max(self.log_rate(hidden).squeeze(-1).double(), max_log_rate)
        return ZeroInflated(
            self.zero_interval(hidden).squeeze(-1).double(),
            Gompertz(log_rate, self.growth.double(), self.time_scale),
        )
