"""TimeJoint: an LSTM over events and their durations that predicts the next event's time."""

from typing import Literal, final

import torch
from jaxtyping import Bool, Float, Float64
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout
from model.layers.interval_distribution import LogNormal, ZeroInflated, build_zero_logit
from model.layers.interval_features import compute_interval_to_query

MIN_SPREAD = 0.01
"""Lower bound of the standard deviation of log(1 + d)."""


class TimeJointConfig(Config):
    """An LSTM over events joined with their durations."""

    kind: Literal["time_joint"] = "time_joint"
    form: Literal["joint", "mask"] = "joint"
    """Average an event with an embedding of its duration, or mask it by its duration."""
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    hidden: PositiveInt = 64
    """Width of the hidden state."""
    projections: PositiveInt = 32
    """Soft classes of durations; in the form "mask", hidden width of the mask's network."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of item vectors and of hidden states."""
    max_history: PositiveInt = 200
    """Events of a history in use, the most recent ones."""
    time_scale: PositiveFloat = 1.0
    """Days `s` in `log(1 + d/s)`, the normally distributed transform of the next interval `d`."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TimeJoint":  # noqa: ARG002
        """Build the module for a catalog of `items` and `actions` known actions."""
        duration = JoinedDuration if self.form == "joint" else DurationMask
        return TimeJoint(
            duration=duration(dim=self.dim, projections=self.projections),
            dim=self.dim,
            hidden=self.hidden,
            dropout=self.dropout,
            time_scale=self.time_scale,
            actions=actions,
        )


@final
class JoinedDuration(nn.Module):
    """The mean of an event and its duration, embedded as a mixture of learned vectors.

    Shape: contents (batch, len, dim), durations (batch, len, 1) -> (batch, len, dim)

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
        """Join events with their durations in log(1 + days), where these are given."""
        embedded = self.embeddings(self.projection(durations).softmax(-1))
        return (contents + torch.where(given.unsqueeze(-1), embedded, self.withheld)) / 2


@final
class DurationMask(nn.Module):
    """An event multiplied by a sigmoid mask of its duration.

    Shape: contents (batch, len, dim), durations (batch, len, 1) -> (batch, len, dim)

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
        """Mask events by their durations in log(1 + days), where these are given."""
        mask = self.mask(self.context(durations).relu())
        return contents * torch.where(given.unsqueeze(-1), mask, self.withheld).sigmoid()


@final
class TimeJoint(SequenceEncoder):
    """An LSTM over events, each with its duration: the time until the next event.

    The duration of a position's own event ends at its query time, which in training is the next
    event's time. The next-time distribution must not depend on it: it is computed from the event
    and the hidden state before it, so it never depends on the position's own query time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Li, Du and Bengio 2017, "Time-dependent representation for neural event sequence
        prediction".
    DIFFERS(paper): durations are log(1 + days), which does not saturate a softmax; action
        embeddings are added to the items, and items are scored by the item table.
    DIFFERS(paper): the next duration is predicted from the event too, beside the state before it;
        the squared error is replaced by the density of a normal distribution of log(1 + d) with a
        learned spread, truncated to d >= 0, beside a probability of durations of 0.
    """

    predicts_next_time = True

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
        self.out_proj = nn.Linear(hidden, dim)
        self.next_duration = nn.Linear(hidden + dim, 1)
        self.zero_duration = build_zero_logit(hidden + dim)
        self.spread = nn.Parameter(torch.tensor(0.0))
        self.dropout = Dropout(dropout)
        if self.actions is not None:
            nn.init.normal_(self.actions.weight, std=dim**-0.5)

    def encode_positions(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> PositionOutputs:
        """Compute user vectors and next-time distributions at every position."""
        contents, hidden = self._compute_hidden_states(batch, items)
        next_time = self._predict_next_time(_shift_right(hidden), contents)
        return PositionOutputs(self.out_proj(hidden), next_time=next_time)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute user vectors and next-time distributions after each history's last event."""
        contents, hidden = self._compute_hidden_states(batch, items)
        content, state, previous = (
            select_positions(part, batch.lengths - 1).squeeze(1)
            for part in (contents, hidden, _shift_right(hidden))
        )
        return EncoderOutput(
            self.out_proj(state), next_time=self._predict_next_time(previous, content)
        )

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> EncoderOutput:
        """Encode one history at many query times (days since its first event).

        Only the last step depends on the query time, so the earlier ones run once.
        """
        count, length = len(query_times), items.shape[1]
        contents = self._embed(batch, items)
        intervals = (query_times - batch.times[0, -1])[:, None]
        last_input = self.duration(
            contents[:, -1:].expand(count, -1, -1),
            _log_days(intervals),
            batch.query_given[:, -1:].expand(count, -1),
        )
        previous = items.new_zeros(1, count, self.recurrence.hidden_size)
        cells = previous
        if length > 1:
            inputs = self.duration(
                contents, _log_days(compute_interval_to_query(batch)), batch.query_given
            )
            _, state = self.recurrence(inputs[:, :-1])
            previous, cells = (part.expand(-1, count, -1).contiguous() for part in state)
        hidden, _ = self.recurrence(last_input, (previous, cells))
        next_time = self._predict_next_time(previous[0], contents[:, -1].expand(count, -1))
        return EncoderOutput(self.out_proj(hidden.squeeze(1)), next_time=next_time)

    def _compute_hidden_states(self, batch: SequenceBatch, items: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the embedded events, and the hidden state after each with its duration."""
        contents = self._embed(batch, items)
        durations = _log_days(compute_interval_to_query(batch))
        hidden, _ = self.recurrence(self.duration(contents, durations, batch.query_given))
        return contents, self.dropout(hidden)

    def _embed(self, batch: SequenceBatch, items: Tensor) -> Tensor:
        content = items if self.actions is None else items + self.actions(batch.actions)
        dropped: Tensor = self.dropout(content)
        return dropped

    def _predict_next_time(self, previous: Tensor, contents: Tensor) -> ZeroInflated:
        inputs = torch.cat((previous, contents), dim=-1)
        spread = MIN_SPREAD + functional.softplus(self.spread.double())
        return ZeroInflated(
            self.zero_duration(inputs).squeeze(-1).double(),
            LogNormal(self.next_duration(inputs).squeeze(-1).double(), spread, self.time_scale),
        )


def _shift_right(hidden: Tensor) -> Tensor:
    """Return the hidden state before each position; zeros at the first."""
    return torch.cat((torch.zeros_like(hidden[:, :1]), hidden[:, :-1]), dim=1)


def _log_days(durations: Tensor) -> Tensor:
    """Compute log(1 + days) as one feature: batch, len -> batch, len, 1."""
    return durations.log1p().float().unsqueeze(-1)
