"""What this user met most often: hard to beat where people come back."""

from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Counted, Encoded, SequenceEncoder
from model.layers.item_counts import popularity_bias


class PersonalFrequencyConfig(Config):
    """How much of a history is counted."""

    kind: Literal["personal_frequency"] = "personal_frequency"
    dim: Literal[1] = 1
    max_history: PositiveInt = 1_000
    """Events counted, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "PersonalFrequency":  # noqa: ARG002
        """The module this describes, for a catalogue of `items`."""
        return PersonalFrequency(items=items, max_history=self.max_history)


@final
class PersonalFrequency(SequenceEncoder):
    """Items by how often the history holds them, the latest met first among equals.

    Every event points at its own item with mass one (`Encoded.repeats`); the last event of an item
    has up to a quarter more, the later the more. All other items follow by popularity.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one mass per event
    """

    places_items: ClassVar[bool] = False

    def __init__(self, *, items: int, max_history: int) -> None:
        super().__init__()
        self.dim, self.catalogue_size, self.max_history = 1, items, max_history

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """One mass per event, and a little more where an item was last met."""
        length = batch.rows.shape[1]
        places = torch.arange(length, device=items.device)
        is_event = places < batch.lengths[:, None]
        again = (batch.rows[:, :, None] == batch.rows[:, None, :]) & is_event[:, None, :]
        is_last = ~(again & (places > places[:, None])).any(-1)
        age = batch.lengths[:, None] - places
        recency = 0.25 * (1 - age / (self.max_history + 1))
        mass = torch.where(is_last, 1 + recency, 1.0).log()
        return Encoded(
            user=items.new_zeros(len(items), self.dim),
            repeats=mass.masked_fill(~is_event, float("-inf")),
        )

    def count(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],  # noqa: ARG002
        users: Int64[Tensor, " events"],  # noqa: ARG002
    ) -> Counted:
        """Count popularity; all else is in the histories."""
        return Counted(popularity_bias(rows, items=self.catalogue_size, at_most=1e-6))
