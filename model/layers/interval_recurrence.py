"""A recurrence over events, each read together with the time until its query time."""

from typing import final

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.layers.interval_features import IntervalFeatures, until_asked


@final
class IntervalRecurrence(nn.Module):
    """User vectors off a recurrence over events and their intervals to the query time.

    Args:
        recurrence: a `torch.nn.LSTM` that takes the batch first, or what is called like it. It
            reads item vectors, each with the features of its interval behind it.
        interval: those features; None where time is not read.
        hidden: width of the recurrence's output.
        dim: width of the user vectors.
        dropout: of the item vectors, and of the outputs.

    Shape: items (batch, len, dim) -> users (batch, len, dim)
    """

    def __init__(
        self,
        recurrence: nn.Module,
        interval: IntervalFeatures | None,
        *,
        hidden: int,
        dim: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.recurrence = recurrence
        self.interval = interval
        self.read_out = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> Float[Tensor, "batch len dim"]:
        """User vectors at every position; what follows a position never reaches it."""
        read, _ = self.recurrence(self._inputs(items, until_asked(batch), batch.query_given))
        users: Tensor = self.read_out(self.dropout(read))
        return users

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Float[Tensor, "query_times dim"]:
        """One history asked about many instants: only its last step is taken for each."""
        count = len(query_times)
        given = batch.query_given
        final_step = self._inputs(
            items[:, -1:].expand(count, -1, -1),
            (query_times - batch.times[0, -1]).unsqueeze(-1),
            given[:, -1:].expand(count, -1),
        )
        memory = None
        if items.shape[1] > 1:
            earlier = self._inputs(items, until_asked(batch), given)[:, :-1]
            _, carried = self.recurrence(earlier)
            memory = tuple(part.expand(-1, count, -1).contiguous() for part in carried)
        read, _ = self.recurrence(final_step, memory)
        users: Tensor = self.read_out(self.dropout(read.squeeze(1)))
        return users

    def _inputs(self, items: Tensor, intervals: Tensor, given: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(items)
        if self.interval is None:
            return dropped
        return torch.cat((dropped, self.interval(intervals, given)), dim=-1)
