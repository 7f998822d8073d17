"""UP-CF@r: the items of the user's last baskets, and those of similar users."""

from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, RepeatParts, SequenceEncoder
from model.layers.added_scores import AddedScores
from model.layers.basket_items import BasketItems
from model.layers.nearest_users import compute_in_slices, order_users, select_largest
from model.layers.ordered_scores import PopularityOrder
from model.layers.sparse_matrix import SparseMatrix, SparseRows, build_sparse_rows


class UPCFConfig(Config):
    """The shares of the last baskets that hold an item, of the user and of similar users."""

    kind: Literal["up_cf"] = "up_cf"
    recency: NonNegativeInt = 5
    """Last baskets of a user that are counted; 0 for all."""
    neighbours: NonNegativeInt | None = None
    """Most similar users that count, all by default; 0 for the user's own baskets alone."""
    locality: PositiveFloat = 5.0
    """Exponent of a similarity: the larger, the less do dissimilar users count."""
    asymmetry: Annotated[float, Field(ge=0, le=1)] = 0.75
    """Exponent of the user's own number of items in a similarity; the other user's has the rest."""
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 1_000
    """Events counted, the most recent ones; of the stored users all events count."""

    def build(self, *, items: int = 0, actions: int = 0) -> "UPCF":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return UPCF(
            items=items,
            recency=self.recency,
            neighbours=self.neighbours,
            locality=self.locality,
            asymmetry=self.asymmetry,
        )


@final
class UPCF(SequenceEncoder):
    """Ranks items by their share of a user's last baskets, summed over similar users.

    The popularity of an item for a user is the share of the user's last `recency` baskets (of all,
    if there are fewer) that hold it. A score is the user's own popularity, plus that of every other
    user times the similarity of the two users to the power of `locality`. A similarity is the
    number of items that both users have, divided by the product of their numbers of items, with
    `asymmetry` and the rest to one as exponents. All other items follow by popularity among all
    users, which also orders equal scores.

    The items of all training users are stored, in an order that only their events decide, with
    their popularity for the user.
    With `neighbours` of 0 nothing is stored, and the method is UP@r. Only baskets are counted, so
    times have no effect beyond their order.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one repeat score per item
        with a positive score

    Paper: Faggioli, Polato and Aiolli, Recency Aware Collaborative Filtering for Next Basket
        Recommendation, UMAP 2020. Our names: `recency` r, `locality` q, `asymmetry` alpha.

    DIFFERS(paper): a query has no user here, so a user who was trained on counts once as of now,
        with a similarity of one, and once as of the training; there, once. `neighbours` is not in
        the paper; public implementations have it.
    DIFFERS(code): of equally similar users the first stored are chosen.
    """

    has_item_space: ClassVar[bool] = False

    def __init__(
        self,
        *,
        items: int,
        recency: int,
        neighbours: int | None,
        locality: float,
        asymmetry: float,
    ) -> None:
        super().__init__()
        self.dim, self.catalog_size = 1, items
        self.recency, self.neighbours = recency, neighbours
        self.locality, self.asymmetry = locality, asymmetry
        # An item of a user's earlier baskets alone is an entry of zero.
        self.users = SparseMatrix(width=items + 1)
        self.order = PopularityOrder(items=items)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the scores of all items that a history or a similar user has."""
        own = self._compute_popularity(BasketItems.of_batch(batch))
        scores = own
        if len(self.users):
            scores = own + compute_in_slices(self._sum_similar, own, users=len(self.users))
        ordered = self.order(scores, items)
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
        """Divide scores into the own popularity, of which each event has a part, and others'."""
        baskets = BasketItems.of_batch(batch)
        counted, is_counted = self._select_counted(baskets)
        own = baskets.divide_own(batch, is_counted / counted[0], rows)
        if not len(self.users):
            return RepeatParts(own)
        similar = self._sum_similar(self._compute_popularity(baskets))
        return RepeatParts(
            own, neighbours=torch.from_numpy(similar.toarray()[0, rows.cpu().numpy()])
        )

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> Float[Tensor, " rows"]:
        """Store the items of all users; return the popularity bias."""
        if self.neighbours != 0:
            self.users.store(
                self._compute_popularity(BasketItems.of_events(*order_users(rows, times, users)))
            )
        return self.order.fit_counts(rows)

    def _compute_popularity(self, baskets: BasketItems) -> SparseRows:
        """Compute the share of the last baskets that hold an item, 0 for items of earlier ones."""
        counted, is_counted = self._select_counted(baskets)
        places = (baskets.histories, baskets.rows)
        shape = (len(counted), self.catalog_size + 1)
        held = build_sparse_rows((is_counted.astype(np.float64), places), shape)
        held.data /= np.repeat(counted, np.diff(held.indptr))
        return held

    def _select_counted(
        self, baskets: BasketItems
    ) -> tuple[Int64[np.ndarray, " histories"], Bool[np.ndarray, " entries"]]:
        """Select the entries of the last baskets; also return how many baskets these are."""
        counts = baskets.counts
        counted = counts.clip(max=self.recency) if self.recency else counts
        return counted, baskets.from_end < counted[baskets.histories]

    def _sum_similar(self, own: SparseRows) -> SparseRows:
        """Sum the popularity for the users that count, each times the similarity."""
        return self._compute_similarities(own) @ self.users.matrix

    def _compute_similarities(self, own: SparseRows) -> SparseRows:
        """Compute the similarity of each history with the users that count, to the power."""
        common = _mark(own) @ _mark(self.users.transposed)
        sizes, user_sizes = np.diff(own.indptr), np.diff(self.users.matrix.indptr)
        rows = np.repeat(np.arange(len(sizes)), np.diff(common.indptr))
        common.data /= sizes[rows] ** self.asymmetry
        common.data /= user_sizes[common.indices] ** (1 - self.asymmetry)
        common.data **= self.locality
        if self.neighbours is not None and self.neighbours < len(self.users):
            common = common.multiply(select_largest(common.toarray(), self.neighbours)).tocsr()
        return common


def _mark(matrix: SparseRows) -> SparseRows:
    """Put 1 for every entry, also for those that are zero."""
    ones = np.ones(len(matrix.data))
    return build_sparse_rows((ones, matrix.indices, matrix.indptr), matrix.shape)
