"""A recurrent network over events and their intervals to the query time."""

from typing import final

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.layers.dropout import Dropout
from model.layers.interval_features import IntervalFeatures, compute_interval_to_query


@final
class IntervalRecurrence(nn.Module):
    """A recurrent network with dropout and an output projection to user vectors.

    Args:
        recurrence: a `torch.nn.LSTM` with `batch_first=True`, or a module of the same call
            signature. Its input is the item vector followed by the interval features.
        interval: the interval features; None for a network that does not use time.
        hidden: width of the recurrent output.
        dim: width of the user vectors.
        dropout: probability, for item vectors and for outputs.

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
        self.out_proj = nn.Linear(hidden, dim)
        self.dropout = Dropout(dropout)

    def forward(
        self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]
    ) -> Float[Tensor, "batch len dim"]:
        """Compute the user vector at every position, from the events up to it."""
        hidden, _ = self.recurrence(
            self._build_inputs(items, compute_interval_to_query(batch), batch.query_given)
        )
        users: Tensor = self.out_proj(self.dropout(hidden))
        return users

    def sweep(
        self,
        batch: SequenceBatch,
        items: Float[Tensor, "1 len dim"],
        query_times: Float64[Tensor, " query_times"],
    ) -> Float[Tensor, "query_times dim"]:
        """Compute the user vector of one history at many query times (days since its first event).

        Only the last step depends on the query time, so the earlier ones run once.
        """
        count = len(query_times)
        given = batch.query_given
        last_input = self._build_inputs(
            items[:, -1:].expand(count, -1, -1),
            (query_times - batch.times[0, -1]).unsqueeze(-1),
            given[:, -1:].expand(count, -1),
        )
        state = None
        if items.shape[1] > 1:
            earlier = self._build_inputs(items, compute_interval_to_query(batch), given)[:, :-1]
            _, final_state = self.recurrence(earlier)
            state = tuple(part.expand(-1, count, -1).contiguous() for part in final_state)
        hidden, _ = self.recurrence(last_input, state)
        users: Tensor = self.out_proj(self.dropout(hidden.squeeze(1)))
        return users

    def _build_inputs(self, items: Tensor, intervals: Tensor, given: Tensor) -> Tensor:
        dropped: Tensor = self.dropout(items)
        if self.interval is None:
            return dropped
        return torch.cat((dropped, self.interval(intervals, given)), dim=-1)
