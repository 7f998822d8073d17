"""The most popular items, the same for every history."""

from typing import ClassVar, Literal, final

from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.clock import MICROSECONDS_PER_DAY
from model.config import Config
from model.interfaces import EncoderOutput, SequenceEncoder
from model.layers.item_counts import compute_popularity_bias

WEEK = 7 * MICROSECONDS_PER_DAY


class PopularityConfig(Config):
    """The items with the most events, the same for every user."""

    kind: Literal["popularity"] = "popularity"
    window: Literal["all_time", "last_week"] = "all_time"
    """last_week: the seven days before the last training event."""
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 200
    """Events of a history in use; none has an effect."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Popularity":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return Popularity(window=self.window, items=items)


@final
class Popularity(SequenceEncoder):
    """Ranks items by their number of events, the same for every user.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero: the item bias is the score.
    """

    has_item_space: ClassVar[bool] = False

    def __init__(self, *, window: Literal["all_time", "last_week"], items: int) -> None:
        super().__init__()
        self.dim, self.window, self.catalog_size = 1, window, items

    def forward(
        self,
        batch: SequenceBatch,  # noqa: ARG002
        items: Float[Tensor, "batch len dim"],
    ) -> EncoderOutput:
        """Return zero user vectors, so that only the item bias counts."""
        return EncoderOutput(user=items.new_zeros(len(items), self.dim))

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],  # noqa: ARG002
    ) -> Float[Tensor, " rows"]:
        """Count the events of the window; return the popularity bias."""
        if self.window == "last_week":
            rows = rows[times > times.max() - WEEK]
        return compute_popularity_bias(rows, items=self.catalog_size)
