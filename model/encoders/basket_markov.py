"""A Markov chain of baskets: the items that follow the items of the last basket."""

from typing import ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, RepeatParts, SequenceEncoder
from model.layers.added_scores import AddedScores
from model.layers.basket_items import BasketItems
from model.layers.ordered_scores import PopularityOrder
from model.layers.sparse_matrix import SparseMatrix, build_sparse_rows


class BasketMarkovConfig(Config):
    """The items that are in the basket after one with the items of the last basket."""

    kind: Literal["basket_markov"] = "basket_markov"
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 1_000
    """Events of a history in use; only its last basket has an effect."""

    def build(self, *, items: int = 0, actions: int = 0) -> "BasketMarkov":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return BasketMarkov(items=items)


@final
class BasketMarkov(SequenceEncoder):
    """Ranks items by how likely they are to follow the items of the last basket.

    The probability that an item follows another one is the share of the other one's baskets, but
    for the last of each user, whose next basket holds the item. A score is the mean probability
    over the items of the last basket; one that was never followed adds nothing. All other items
    follow by popularity, which also orders equal scores.

    All pairs of items that followed one another are stored, with their counts. Users have no
    effect, and times none beyond the order of baskets.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one repeat score per item
        with a positive score

    Paper: the Markov chain of baskets of Rendle, Freudenthaler and Schmidt-Thieme, Factorizing
        Personalized Markov Chains for Next-Basket Recommendation, WWW 2010, section 4, estimated
        by maximum likelihood.
    """

    has_item_space: ClassVar[bool] = False

    followed: Tensor

    def __init__(self, *, items: int) -> None:
        super().__init__()
        self.dim, self.catalog_size = 1, items
        self.followers = SparseMatrix(width=items + 1, height=items + 1, dtype=torch.int32)
        # Baskets with the item of each row that another basket of the user follows.
        self.register_buffer("followed", torch.zeros(items + 1, dtype=torch.int64))
        self.order = PopularityOrder(items=items)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the scores of all items that have followed an item of the last basket."""
        baskets = BasketItems.of_batch(batch)
        is_last = baskets.from_end == 0
        histories, rows = baskets.histories[is_last], baskets.rows[is_last]
        followers = self.followers.matrix[rows].astype(np.float64)
        followed = self._count_followed(rows)
        sizes = np.bincount(histories)
        weights = build_sparse_rows(
            (1 / (followed * sizes[histories]), (histories, np.arange(len(rows)))),
            (len(sizes), len(rows)),
        )
        ordered = self.order(weights @ followers, items)
        return EncoderOutput(
            user=items.new_zeros(len(items), self.dim),
            repeat_scores=ordered.log_scores,
            repeat_rows=ordered.rows,
        )

    def divide_repeats(
        self,
        batch: SequenceBatch,
        added: AddedScores,  # noqa: ARG002
        rows: Int64[Tensor, " items"],
    ) -> RepeatParts:
        """Divide scores among the events of the last basket, by how often the items followed."""
        baskets = BasketItems.of_batch(batch)
        is_last = baskets.from_end == 0
        held = baskets.rows[is_last]
        weights = np.zeros((len(baskets.rows), len(rows)))
        followers = self.followers.matrix[held][:, rows.cpu().numpy()].toarray()
        weights[is_last] = followers / self._count_followed(held)[:, None]
        return RepeatParts(followers=baskets.divide_by_event(batch, weights).T)

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> Float[Tensor, " rows"]:
        """Count the pairs of items in successive baskets; return the popularity bias."""
        baskets = BasketItems.of_events(rows, times, users)
        begins = baskets.counts.cumsum() - baskets.counts
        ones = np.ones(len(baskets.rows), dtype=np.int32)
        held = build_sparse_rows(
            (ones, (begins[baskets.histories] + baskets.baskets, baskets.rows)),
            (int(baskets.counts.sum()), self.catalog_size + 1),
        )
        # A basket that begins a history follows none.
        following = np.setdiff1d(np.arange(held.shape[0]), begins)
        before = held[following - 1]
        self.followers.store(before.T.tocsr() @ held[following])
        self.followed.copy_(torch.from_numpy(before.sum(axis=0)))
        return self.order.fit_counts(rows)

    def _count_followed(self, rows: Int64[np.ndarray, " entries"]) -> Int64[np.ndarray, " entries"]:
        """Count the baskets with each item that another one follows, 1 where there are none."""
        followed: Int64[np.ndarray, " entries"] = self.followed.cpu().numpy()[rows].clip(min=1)
        return followed
