"""What the user chose often and lately, and what all users choose now: counted, not learned."""

import math
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, SequenceEncoder
from model.layers.item_counts import WindowDays, compute_recent_popularity_bias


class CountingConfig(Config):
    """The user's own items, halved with age, plus the items that are popular now."""

    kind: Literal["counting"] = "counting"
    half_life_days: PositiveFloat | None = 120.0
    """Days after which an event of the history weighs half; null, in TOML 1e9, for no decay."""
    weight: PositiveFloat = 3.0
    """Weight of an item's share of all events beside its share in the history."""
    window_days: WindowDays | None = 28.0
    """Days before the last training event whose events count as popularity; null, in TOML
    100000, for all."""
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 1_000
    """Events counted, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Counting":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return Counting(
            items=items,
            half_life_days=self.half_life_days,
            weight=self.weight,
            window_days=self.window_days,
        )


@final
class Counting(SequenceEncoder):
    """Ranks items by their decayed share in the history plus weighted recent popularity.

    The attention weight of an event is its share of the score of the history: half after every
    half-life, divided by the sum over all events. All events decay alike, so the shares do not
    depend on the query time. A score is the logarithm of the sum; it is that of the reference of
    `training.evaluation.counting` with frozen popularity, but for a millionth that breaks ties.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one repeat score per event
    """

    has_item_space: ClassVar[bool] = False

    def __init__(
        self,
        *,
        items: int,
        half_life_days: float | None,
        weight: float,
        window_days: float | None,
    ) -> None:
        super().__init__()
        self.dim, self.catalog_size = 1, items
        self.half_life_days = half_life_days
        self.weight, self.window_days = weight, window_days

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the share of every event of each history."""
        is_event = torch.arange(batch.rows.shape[1], device=items.device) < batch.lengths[:, None]
        decay = 0.0 if self.half_life_days is None else math.log(2) / self.half_life_days
        log_weights = (batch.times * decay).masked_fill(~is_event, float("-inf"))
        log_shares = log_weights.log_softmax(-1).to(items.dtype)
        return EncoderOutput(
            user=items.new_zeros(len(items), self.dim),
            attention=log_shares.exp().unsqueeze(1),
            repeat_scores=log_shares,
        )

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],  # noqa: ARG002
    ) -> Float[Tensor, " rows"]:
        """Return the logarithm of every item's weighted share of the events in the window."""
        return compute_recent_popularity_bias(
            rows,
            times,
            items=self.catalog_size,
            weight=self.weight,
            window_days=self.window_days,
        )
