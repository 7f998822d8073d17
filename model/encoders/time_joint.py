"""TimeJoint: an LSTM whose events carry how long they last, and which says when the next comes."""

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Float64
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from model.batch import SequenceBatch
from model.catalog import PADDING_ROW
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.next_time import LogNormal
from model.layers.time_aware_block import at_positions

NARROWEST = 0.01
"""Least spread of the next interval's logarithm; equal times alone would take all of it away."""


class TimeJointConfig(Config):
    """An LSTM over events joined with their durations."""

    kind: Literal["time_joint"] = "time_joint"
    form: Literal["joint", "mask"] = "joint"
    """Average an event with an embedding of its duration, or mask it by its duration."""
    dim: PositiveInt = 64
    hidden: PositiveInt = 64
    """Width of the recurrent state."""
    projections: PositiveInt = 32
    """Soft classes of durations that are embedded; in the form "mask", width of what it reads."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events read of a history, the most recent ones."""
    time_scale: PositiveFloat = 1.0
    """Days beyond which the next interval is told by its logarithm rather than by its length."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TimeJoint":  # noqa: ARG002
        """The module this describes, for a catalogue of `items` and so many known `actions`."""
        joins = JoinedDuration if self.form == "joint" else DurationMask
        return TimeJoint(
            duration=joins(dim=self.dim, projections=self.projections),
            dim=self.dim,
            hidden=self.hidden,
            dropout=self.dropout,
            time_scale=self.time_scale,
            actions=actions,
        )


@final
class JoinedDuration(nn.Module):
    """The mean of an event and its duration, embedded as a mixture of learned vectors.

    Paper: Li et al. 2017, section 3.2 (event-time joint embedding).
    """

    def __init__(self, *, dim: int, projections: int) -> None:
        super().__init__()
        self.projection = nn.Linear(1, projections)
        self.embeddings = nn.Linear(projections, dim, bias=False)
        self.withheld = nn.Parameter(torch.zeros(dim))
        nn.init.normal_(self.embeddings.weight, std=dim**-0.5)

    def forward(
        self,
        contents: Float[Tensor, "batch len dim"],
        durations: Float[Tensor, "batch len 1"],
        given: Bool[Tensor, "batch len"],
    ) -> Float[Tensor, "batch len dim"]:
        """Events with their durations, given as log(1 + days)."""
        embedded = self.embeddings(self.projection(durations).softmax(-1))
        return (contents + torch.where(given.unsqueeze(-1), embedded, self.withheld)) / 2


@final
class DurationMask(nn.Module):
    """An event whose features its duration lets through or holds back.

    Paper: Li et al. 2017, section 3.1 (time mask).
    """

    def __init__(self, *, dim: int, projections: int) -> None:
        super().__init__()
        self.context = nn.Linear(1, projections)
        self.mask = nn.Linear(projections, dim)
        self.withheld = nn.Parameter(torch.zeros(dim))

    def forward(
        self,
        contents: Float[Tensor, "batch len dim"],
        durations: Float[Tensor, "batch len 1"],
        given: Bool[Tensor, "batch len"],
    ) -> Float[Tensor, "batch len dim"]:
        """Events with their durations, given as log(1 + days)."""
        mask = self.mask(self.context(durations).relu())
        return contents * torch.where(given.unsqueeze(-1), mask, self.withheld).sigmoid()


@final
class TimeJoint(SequenceEncoder):
    """An LSTM over events, each read together with its duration: the time until the next one.

    The duration of a position's own event lasts until its query time, which in training is the next
    event's. When the next event comes must be said without it: that is read off the event and the
    state before it, so it never depends on the position's own query time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Li, Du and Bengio 2017, "Time-dependent representation for neural event sequence
        prediction".
    DIFFERS(paper): durations are read as log(1 + days), of which a softmax does not saturate; the
        next duration is read off the event, too, beside the state before it; instead of a squared
        error it has a density, of log(1 + d) with a learned spread, restricted to d >= 0.
    """

    says_when = True

    def __init__(
        self,
        *,
        duration: JoinedDuration | DurationMask,
        dim: int,
        hidden: int,
        dropout: float,
        time_scale: float,
        actions: int,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.time_scale = time_scale
        self.actions = nn.Embedding(actions + 1, dim, padding_idx=0) if actions else None
        self.duration = duration
        self.recurrence = nn.LSTM(dim, hidden, batch_first=True)
        self.read_out = nn.Linear(hidden, dim)
        self.next_duration = nn.Linear(hidden + dim, 1)
        self.spread = nn.Parameter(torch.tensor(0.0))
        self.dropout = nn.Dropout(dropout)
        if self.actions is not None:
            nn.init.normal_(self.actions.weight, std=dim**-0.5)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:
        """User vectors at every position, and when each position's next event comes."""
        contents, read = self._read(batch, items)
        return States(self.read_out(read), next_time=self._next_time(_before(read), contents))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history, and when the next one comes."""
        contents, read = self._read(batch, items)
        content, state, before = (
            at_positions(part, batch.lengths - 1).squeeze(1)
            for part in (contents, read, _before(read))
        )
        return Encoded(self.read_out(state), next_time=self._next_time(before, content))

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Encoded:
        """One history asked about many instants: only its last step is taken for each."""
        count, length = len(query_times), items.shape[1]
        contents = self._content(batch, items)
        waits = (query_times - batch.times[0, -1])[:, None]
        final_step = self.duration(
            contents[:, -1:].expand(count, -1, -1),
            _read_as(waits),
            batch.query_given[:, -1:].expand(count, -1),
        )
        before = items.new_zeros(1, count, self.recurrence.hidden_size)
        memory = before
        if length > 1:
            inputs = self.duration(contents, _read_as(_durations(batch)), batch.query_given)
            _, state = self.recurrence(inputs[:, :-1])
            before, memory = (part.expand(-1, count, -1).contiguous() for part in state)
        read, _ = self.recurrence(final_step, (before, memory))
        next_time = self._next_time(before[0], contents[:, -1].expand(count, -1))
        return Encoded(self.read_out(read.squeeze(1)), next_time=next_time)

    def _read(self, batch: SequenceBatch, items: Tensor) -> tuple[Tensor, Tensor]:
        """What happened at every position, and the state after reading it with its duration."""
        contents = self._content(batch, items)
        durations = _read_as(_durations(batch))
        read, _ = self.recurrence(self.duration(contents, durations, batch.query_given))
        return contents, self.dropout(read)

    def _content(self, batch: SequenceBatch, items: Tensor) -> Tensor:
        content = items if self.actions is None else items + self.actions(batch.actions)
        dropped: Tensor = self.dropout(content)
        return dropped

    def _next_time(self, before: Tensor, contents: Tensor) -> LogNormal:
        mean = self.next_duration(torch.cat((before, contents), dim=-1)).squeeze(-1).double()
        spread = NARROWEST + functional.softplus(self.spread.double())
        return LogNormal(mean, spread, self.time_scale)


def _before(read: Tensor) -> Tensor:
    """The state that each position found: its predecessor's, and zeros at the first."""
    return torch.cat((torch.zeros_like(read[:, :1]), read[:, :-1]), dim=1)


def _durations(batch: SequenceBatch) -> Tensor:
    return (batch.query_times - batch.times).masked_fill(batch.rows == PADDING_ROW, 0)


def _read_as(durations: Tensor) -> Tensor:
    """Days as the encoder reads them: batch, len -> batch, len, 1."""
    return durations.log1p().float().unsqueeze(-1)
