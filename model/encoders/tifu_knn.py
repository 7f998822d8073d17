"""TIFU-KNN: what the user bought often and lately, and what the nearest users did."""

from typing import Annotated, ClassVar, Literal, final

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from pydantic import Field, PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import EncoderOutput, RepeatParts, SequenceEncoder
from model.layers.added_scores import AddedScores
from model.layers.basket_items import BasketItems
from model.layers.nearest_users import compute_in_slices, order_users, select_largest
from model.layers.ordered_scores import PopularityOrder
from model.layers.sparse_matrix import SparseMatrix, SparseRows, build_sparse_rows

Decay = Annotated[float, Field(gt=0, le=1)]


class TIFUKNNConfig(Config):
    """The decayed item frequencies of the user and of the nearest users."""

    kind: Literal["tifu_knn"] = "tifu_knn"
    form: Literal["paper", "code"] = "paper"
    """Baskets decay within their group, as in the paper, or up to the last one, as its authors code
    it."""
    neighbours: PositiveInt = 300
    """Nearest users whose vectors are averaged."""
    basket_decay: Decay = 0.9
    """Weight of a basket relative to the next one."""
    group_decay: Decay = 0.7
    """Weight of a group of baskets relative to the next one."""
    groups: Annotated[int, Field(ge=1, le=1_000)] = 7
    """Groups that the baskets of a history are divided into."""
    own_share: Annotated[float, Field(ge=0, le=1)] = 0.7
    """Share of the user's own vector in a score; with 1, no other user's vector is stored."""
    dim: Literal[1] = 1
    """Fixed: a model of counts has no vectors."""
    max_history: PositiveInt = 1_000
    """Events counted, the most recent ones; of the stored users all events count."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TIFUKNN":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return TIFUKNN(
            items=items,
            form=self.form,
            neighbours=self.neighbours,
            basket_decay=self.basket_decay,
            group_decay=self.group_decay,
            groups=self.groups,
            own_share=self.own_share,
        )


@final
class TIFUKNN(SequenceEncoder):
    """Ranks items by decayed frequencies, the user's own plus those of the nearest users.

    The baskets of a history (its events of one instant, each item once) are divided into groups of
    equal size; the last groups hold one more where they do not divide evenly, and a history of
    fewer baskets than groups has a group for each. A group's vector is the mean of its baskets,
    a user's vector the mean of the groups, each with its decay. A score is the user's own vector
    plus the mean vector of the nearest users by Euclidean distance, weighted. All other items
    follow by popularity, which also orders equal scores.

    The vectors of all training users are stored, in an order that only their events decide. Only
    baskets are counted, so times have no effect beyond their order.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one repeat score per item
        with a positive score

    Paper: Hu, He, Gao and Zhang, Modeling Personalized Item Frequency Information for Next-basket
        Recommendation, SIGIR 2020. Our names: `neighbours` k, `basket_decay` r_b, `group_decay`
        r_g, `groups` m, `own_share` alpha.

    DIFFERS(code): in the form "paper", baskets decay within their group and groups up to the last
        one that the history has; in the form "code", as coded by the authors, baskets decay up to
        the last basket of the history, and the groups of a history with fewer baskets than groups
        as if the missing ones followed. Scores and distances are of vectors with groups, as in the
        paper, in the latest released script and in Li et al. 2023 (A Next Basket Recommendation
        Reality Check); an earlier revision leaves groups out of the scores.
    DIFFERS(paper): users are split into training and test users there, so nobody is their own
        neighbour. A query has no user here: a user who was trained on finds the own vector as of
        the training among the nearest, one of `neighbours`.
    DIFFERS(code): of equally near users the first stored are chosen, where scikit-learn decides.
    """

    has_item_space: ClassVar[bool] = False

    def __init__(
        self,
        *,
        items: int,
        form: Literal["paper", "code"],
        neighbours: int,
        basket_decay: float,
        group_decay: float,
        groups: int,
        own_share: float,
    ) -> None:
        super().__init__()
        self.dim, self.catalog_size = 1, items
        self.form, self.neighbours, self.own_share = form, neighbours, own_share
        self.basket_decay, self.group_decay, self.groups = basket_decay, group_decay, groups
        self.users = SparseMatrix(width=items + 1)
        self.order = PopularityOrder(items=items)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the scores of all items that a history or a near user has."""
        own = self._compute_vectors(BasketItems.of_batch(batch))
        scores = own * self.own_share
        if len(self.users):
            near = compute_in_slices(self._average_nearest, own, users=len(self.users))
            scores = scores + near * (1 - self.own_share)
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
        """Divide scores into the own vector, of which each event has a part, and the others'."""
        baskets = BasketItems.of_batch(batch)
        own = baskets.divide_own(batch, self._weigh(baskets) * self.own_share, rows)
        if not len(self.users):
            return RepeatParts(own)
        near = self._average_nearest(self._compute_vectors(baskets)) * (1 - self.own_share)
        return RepeatParts(own, neighbours=torch.from_numpy(near.toarray()[0, rows.cpu().numpy()]))

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> Float[Tensor, " rows"]:
        """Store the vectors of all users; return the popularity bias."""
        if self.own_share < 1:
            self.users.store(
                self._compute_vectors(BasketItems.of_events(*order_users(rows, times, users)))
            )
        return self.order.fit_counts(rows)

    def _compute_vectors(self, baskets: BasketItems) -> SparseRows:
        shape = (len(baskets.counts), self.catalog_size + 1)
        places = (baskets.histories, baskets.rows)
        return build_sparse_rows((self._weigh(baskets), places), shape)

    def _weigh(self, baskets: BasketItems) -> Float64[np.ndarray, " entries"]:
        """Compute what each entry adds to its history's vector."""
        counts = baskets.counts[baskets.histories]
        size, larger = counts // self.groups, counts % self.groups
        before_larger = size * (self.groups - larger)  # Baskets in the groups of `size`.
        is_small = baskets.baskets < before_larger
        begin = np.where(is_small, 0, before_larger)
        size = size + ~is_small
        place = baskets.baskets - begin
        group = place // size + np.where(is_small, 0, self.groups - larger)
        # Where there are fewer baskets than groups, the first groups are those that are missing.
        later = self.groups - 1 - group
        steps = size - 1 - place % size
        if self.form == "code":
            later = later + np.maximum(self.groups - counts, 0)
            steps = baskets.from_end
        decays = self.basket_decay**steps * self.group_decay**later
        weights: Float64[np.ndarray, " entries"] = decays / (size * counts.clip(max=self.groups))
        return weights

    def _average_nearest(self, own: SparseRows) -> SparseRows:
        """Compute the mean vector of the nearest stored users."""
        # Half the negated squared distance, but for what is the same for all stored users.
        products = (own @ self.users.transposed).toarray()
        near = select_largest(products - self.users.square_lengths / 2, self.neighbours)
        histories, users = near.nonzero()
        share = 1 / near[0].sum()
        shares = build_sparse_rows((np.full(len(users), share), (histories, users)), near.shape)
        return shares @ self.users.matrix
