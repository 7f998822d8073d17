"""A first-order Markov chain: the most frequent successors of the last item."""

from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, RepeatParts, SequenceEncoder
from model.layers.added_scores import AddedScores
from model.layers.item_counts import compute_popularity_bias


class MarkovConfig(Config):
    """The most frequent successors of the last item."""

    kind: Literal["markov"] = "markov"
    successors: PositiveInt = 200
    """Successors stored per item, the most frequent ones."""
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 200
    """Events of a history in use; only the last one has an effect."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Markov":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return Markov(successors=self.successors, items=items)


@final
class Markov(SequenceEncoder):
    """Ranks items by how often they directly followed the last item, then by popularity.

    Counts of successors are returned as repeat scores of the successors' rows
    (`EncoderOutput.repeat_scores`), so serving needs no items x items table. Successors beyond the
    `successors` most frequent are ranked by popularity only.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and `successors` repeat scores
    """

    has_item_space: ClassVar[bool] = False

    following: Tensor
    log_counts: Tensor

    def __init__(self, *, successors: int, items: int) -> None:
        super().__init__()
        self.dim, self.catalog_size = 1, items
        shape = (items + 1, successors)
        self.register_buffer("following", torch.zeros(shape, dtype=torch.int64))
        self.register_buffer("log_counts", torch.full(shape, float("-inf")))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Look up the successors of the last item of each history."""
        last = batch.rows.gather(1, batch.lengths[:, None] - 1).squeeze(1)
        return EncoderOutput(
            user=items.new_zeros(len(items), self.dim),
            repeat_scores=self.log_counts[last],
            repeat_rows=self.following[last],
        )

    def divide_repeats(
        self,
        batch: SequenceBatch,
        added: AddedScores,  # noqa: ARG002
        rows: Int64[Tensor, " items"],
    ) -> RepeatParts:
        """Attribute every successor to the last event."""
        followers = torch.zeros(len(rows), batch.rows.shape[1], dtype=torch.float64)
        followers[:, -1] = 1.0
        return RepeatParts(followers=followers)

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],  # noqa: ARG002
        users: Int64[Tensor, " events"],
    ) -> Float[Tensor, " rows"]:
        """Count pairs of successive events of each user; return the popularity bias."""
        same_user = users[1:] == users[:-1]
        pairs = torch.stack((rows[:-1][same_user], rows[1:][same_user]), dim=1)
        distinct, counts = torch.unique(pairs, dim=0, return_counts=True)
        # By item, the most frequent successor first: the second sort is stable.
        order = counts.argsort(descending=True, stable=True)
        order = order[distinct[order, 0].argsort(stable=True)]
        first, second, counts = distinct[order, 0], distinct[order, 1], counts[order]
        ranks = torch.arange(len(first)) - torch.searchsorted(first, first)
        kept = ranks < self.following.shape[1]
        self.following[first[kept], ranks[kept]] = second[kept]
        self.log_counts[first[kept], ranks[kept]] = counts[kept].double().log().float()
        return compute_popularity_bias(rows, items=self.catalog_size)
