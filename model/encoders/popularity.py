"""What everybody met most often: the answer that needs no history."""

from typing import ClassVar, Literal, final

from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.clock import MICROSECONDS_PER_DAY
from model.config import Config
from model.interfaces import Counted, Encoded, SequenceEncoder
from model.layers.item_counts import popularity_bias

WEEK = 7 * MICROSECONDS_PER_DAY


class PopularityConfig(Config):
    """Over which stretch of time events are counted."""

    kind: Literal["popularity"] = "popularity"
    window: Literal["all_time", "last_week"] = "all_time"
    """last_week: the seven days before the last training event."""
    dim: Literal[1] = 1
    max_history: PositiveInt = 200
    """Events looked at; none of them matters."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Popularity":  # noqa: ARG002
        """The module this describes, for a catalogue of `items`."""
        return Popularity(window=self.window, items=items)


@final
class Popularity(SequenceEncoder):
    """Every history is answered alike: by the items with the most events.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero: all is in the item bias.
    """

    places_items: ClassVar[bool] = False

    def __init__(self, *, window: Literal["all_time", "last_week"], items: int) -> None:
        super().__init__()
        self.dim, self.window, self.catalogue_size = 1, window, items

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:  # noqa: ARG002
        """Nothing beside the item bias."""
        return Encoded(user=items.new_zeros(len(items), self.dim))

    def count(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],  # noqa: ARG002
    ) -> Counted:
        """Count the events of the window."""
        if self.window == "last_week":
            rows = rows[times > times.max() - WEEK]
        return Counted(popularity_bias(rows, items=self.catalogue_size))
