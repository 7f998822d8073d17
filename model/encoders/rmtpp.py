"""RMTPP: a recurrent network that says what comes next, and when."""

import math
from typing import Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.next_time import Gompertz, at_most
from model.layers.time_aware_block import at_positions

MOST_PER_DAY = MICROSECONDS_PER_DAY / MICROSECONDS_PER_SECOND
"""The most a hazard starts at: one a second."""


class RMTPPConfig(Config):
    """A recurrent marked temporal point process."""

    kind: Literal["rmtpp"] = "rmtpp"
    dim: PositiveInt = 64
    hidden: PositiveInt = 64
    """Width of the recurrent state."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    time_scale: PositiveFloat = 30.0
    """Days that count as one unit of the hazard; about the mean interval of the data is best."""

    def build(self, *, items: int = 0, actions: int = 0) -> "RMTPP":  # noqa: ARG002
        """The module this describes, for a catalogue of `items` and so many known `actions`."""
        return RMTPP(**self.model_dump(exclude={"kind", "max_history"}), actions=actions)


@final
class RMTPP(SequenceEncoder):
    """A relu recurrence over events and the intervals between them.

    Its state gives the user vector, and the hazard of the next event: `exp(v . h + b + w d)` after
    `d` days without one, where `w` is one number for all. It does not read the query time: what
    comes next is said of the next event whenever that is, and when it is, is said beside it.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Du et al. 2016, "Recurrent Marked Temporal Point Processes", eq. 9-12.
    DIFFERS(paper): the recurrence reads log(1 + days) since the event before; markers are scored by
        the item table rather than by an output matrix of their own; the hazard starts at less than
        one event a second, without which equal times would drive it to infinity.
    DIFFERS(code): the density is of the interval that follows the event; tf_rmtpp puts in the one
        before it. No lower bound on |w|: a series takes over near 0.
    """

    says_when = True

    def __init__(
        self, *, dim: int, hidden: int, dropout: float, time_scale: float, actions: int
    ) -> None:
        super().__init__()
        self.dim = dim
        self.time_scale = time_scale
        self.actions = nn.Embedding(actions + 1, dim, padding_idx=0) if actions else None
        self.recurrence = nn.RNN(dim + 1, hidden, nonlinearity="relu", batch_first=True)
        self.read_out = nn.Linear(hidden, dim)
        self.log_rate = nn.Linear(hidden, 1)
        self.growth = nn.Parameter(torch.tensor(0.0))
        self.dropout = nn.Dropout(dropout)
        if self.actions is not None:
            nn.init.normal_(self.actions.weight, std=dim**-0.5)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position, and when each position's next event comes."""
        read = self._read(batch, items)
        return States(self.read_out(read), next_time=self._next_time(read))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history, and when the next one comes."""
        read = at_positions(self._read(batch, items), batch.lengths - 1).squeeze(1)
        return Encoded(self.read_out(read), next_time=self._next_time(read))

    def _read(self, batch: SequenceBatch, items: Tensor) -> Tensor:
        content = items if self.actions is None else items + self.actions(batch.actions)
        intervals = torch.diff(batch.times, prepend=batch.times[:, :1])
        known = intervals.masked_fill(batch.rows == PADDING_ROW, 0).log1p().float()
        read, _ = self.recurrence(torch.cat((self.dropout(content), known.unsqueeze(-1)), dim=-1))
        dropped: Tensor = self.dropout(read)
        return dropped

    def _next_time(self, read: Tensor) -> Gompertz:
        fastest = math.log(self.time_scale * MOST_PER_DAY)
        log_rate = at_most(self.log_rate(read).squeeze(-1).double(), fastest)
        return Gompertz(log_rate, self.growth.double(), self.time_scale)
