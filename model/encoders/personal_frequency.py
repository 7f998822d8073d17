"""The most frequent items of the user's own history, a strong baseline where users return."""

from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, SequenceEncoder
from model.layers.item_counts import compute_popularity_bias


class PersonalFrequencyConfig(Config):
    """The user's own most frequent items."""

    kind: Literal["personal_frequency"] = "personal_frequency"
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 1_000
    """Events counted, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "PersonalFrequency":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return PersonalFrequency(items=items, max_history=self.max_history)


@final
class PersonalFrequency(SequenceEncoder):
    """Ranks items by their number of events in the history, ties by the most recent event.

    Every event adds a weight of one to its own item (`EncoderOutput.repeat_scores`); the last event
    of an item adds up to a quarter more, the more recent the more. All other items follow by
    popularity.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one repeat score per event
    """

    has_item_space: ClassVar[bool] = False

    def __init__(self, *, items: int, max_history: int) -> None:
        super().__init__()
        self.dim, self.catalog_size, self.max_history = 1, items, max_history

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute one repeat score per event."""
        length = batch.rows.shape[1]
        positions = torch.arange(length, device=items.device)
        is_event = positions < batch.lengths[:, None]
        same_item = (batch.rows[:, :, None] == batch.rows[:, None, :]) & is_event[:, None, :]
        is_last = ~(same_item & (positions > positions[:, None])).any(-1)
        age = batch.lengths[:, None] - positions
        recency = 0.25 * (1 - age / (self.max_history + 1))
        scores = torch.where(is_last, 1 + recency, 1.0).log()
        return EncoderOutput(
            user=items.new_zeros(len(items), self.dim),
            repeat_scores=scores.masked_fill(~is_event, float("-inf")),
        )

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],  # noqa: ARG002
        users: Int64[Tensor, " events"],  # noqa: ARG002
    ) -> Float[Tensor, " rows"]:
        """Return the popularity bias; everything else is computed from the history."""
        return compute_popularity_bias(rows, items=self.catalog_size, at_most=1e-6)
