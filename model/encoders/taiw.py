"""TAIW: items weighed by when they are due, of the user and of the nearest other users."""

import math
from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Float64, Int64
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.clock import LAST_INSTANT, MICROSECONDS_PER_DAY
from model.config import Config
from model.interfaces import EncoderOutput, RepeatParts, SequenceEncoder
from model.layers.added_scores import AddedScores
from model.layers.item_counts import WindowDays, compute_recent_popularity_bias
from model.layers.nearest_users import order_users
from model.layers.repurchase_kernel import (
    DEFAULT_INTERVAL,
    KernelFit,
    fit_shapes,
    measure_visit_interval,
)
from model.layers.timed_purchases import TimedPurchases

_KEPT = 2_000
"""Items that the neighbours score, those of the largest means."""


class TAIWConfig(Config):
    """The user's items weighed by when they are due, averaged with those of other users."""

    kind: Literal["taiw"] = "taiw"
    neighbours: NonNegativeInt = 100
    """Users whose vectors are averaged; 0 for a process per item alone."""
    own_weight: float = Field(default=0.6, gt=0, le=1)
    """Weight of the user's own vector; the average of the neighbours has the rest."""
    popularity_weight: NonNegativeFloat = 0.0
    """Weight of an item's share of all events, as a base intensity beside a share of the user's own
    vector; with 0 popularity only ranks the items that nothing else does."""
    window_days: WindowDays | None = 28.0
    """Days before the last training event whose events count as popularity; null, in TOML
    100000, for all."""
    start: Literal["all_items", "own"] = "all_items"
    """Intervals that the kernels start at: the mean of all repeats, as in the authors' code; or the
    mean and the spread of each item's own, drawn to those of all."""
    steps: NonNegativeInt = 100
    """Steps of L-BFGS in which the kernels are fitted from there, at most."""
    shrinkage: float = Field(default=100.0, ge=0, le=1e6)
    """How strongly items are drawn to the kernel that all share; the more, the more repeats an item
    needs for a kernel of its own."""
    dim: Literal[1] = 1
    """Fixed: the model has no item vectors."""
    max_history: PositiveInt = 1_000
    """Events of a history in use, the most recent ones."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TAIW":  # noqa: ARG002
        """Build the module for a catalog of `items`."""
        return TAIW(
            items=items,
            neighbours=self.neighbours,
            own_weight=self.own_weight,
            popularity_weight=self.popularity_weight,
            window_days=self.window_days,
            fit=KernelFit(
                self.steps,
                self.shrinkage,
                is_measured=self.start == "own",
            ),
        )


@final
class TAIW(SequenceEncoder):
    """Ranks items by their weight in the user's vector and in those of the nearest users.

    The weight of item i in a user's vector at time T is `sum g_i(T - t)` over the purchases of i by
    the user, `g_i(d) = (1 - pi_i) Exp(d; beta_i) + pi_i Normal(d; mu_i, sigma_i)`. A score is
    `own_weight` times the user's weight plus `1 - own_weight` times the mean weight of the users
    whose vectors at the query time are nearest by their angle, in shares of the user's vector. The
    attention weight of an event is its share of the user's own vector. The training events of all
    users are part of the model, the users in an order that only their events decide.

    A query time long after the last event weighs the own purchases as if it were only the span of
    the training events after it. The neighbours' vectors are of the query time itself, at most that
    span after the last training event.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and one repeat score per item of
        the neighbours and per event

    Paper: Romanov et al. 2023, "Time-Aware Item Weighting for the Next Basket Recommendations",
        without a learned base intensity: TAIWI in the authors' code; with no neighbours its
        repurchase module.
    DIFFERS(paper): popularity may be a base intensity in place of a factorisation, which has a
        vector per user: users unknown in training are served alike.
    DIFFERS(code): kernels are fitted on all repeats in every step, by L-BFGS, an item's drawn to
        that of all items by `shrinkage`; the authors have batches and Adam, and stop early instead.
    DIFFERS(code): `beta` and `sigma` are at least a quarter of a day; there they are only positive.
    DIFFERS(code): the neighbours' vectors are of the query time; theirs are of each neighbour's
        last basket but one. The search is exact.
    DIFFERS(paper): a query has no user here, so a user who was trained on is among the nearest, as
        of the training.
    DIFFERS(code): of the neighbours' items the 2,000 with the largest means are scored.
    DIFFERS(code): neighbours share an item with the user, so there may be fewer than `neighbours`;
        of equally near ones the first stored are chosen.
    DIFFERS(code): where the query time is withheld, the median interval between baskets since the
        last event stands in its place.
    """

    has_item_space: ClassVar[bool] = False
    limits_intervals: ClassVar[bool] = True

    visit_interval: Tensor
    window: Tensor

    def __init__(
        self,
        *,
        items: int,
        neighbours: int,
        own_weight: float,
        popularity_weight: float,
        window_days: float | None,
        fit: KernelFit,
    ) -> None:
        super().__init__()
        self.dim, self.catalog_size = 1, items
        self.neighbours = neighbours if own_weight < 1 else 0
        self.own_weight = own_weight if neighbours else 1.0
        self.popularity_weight, self.window_days = popularity_weight, window_days
        self.fit = fit
        self.purchases = TimedPurchases(items=items)
        self.register_buffer("visit_interval", torch.tensor(DEFAULT_INTERVAL))
        # First and last instant of the training events; without any, no interval is limited.
        self.register_buffer("window", torch.tensor([0, LAST_INSTANT]))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Weigh the items of each history and of its nearest users at its query time."""
        query_times, log_weights = self._weigh_events(batch)
        total = log_weights.logsumexp(-1, keepdim=True)
        log_shares = log_weights - total
        own_scores = log_shares + math.log(self.own_weight)
        encoded = EncoderOutput(
            user=items.new_zeros(len(items), self.dim),
            attention=log_shares.exp().unsqueeze(1),
            repeat_scores=own_scores,
        )
        if not self.neighbours:
            return encoded
        instants = batch.origins + (query_times.squeeze(1) * MICROSECONDS_PER_DAY).round().long()
        instants = instants.minimum(self.window[1] + self.window.diff())
        # In shares of the largest weight, which no padding changes: nor the neighbours, then.
        shares = (log_weights - log_weights.amax(-1, keepdim=True)).exp()
        own = log_shares.new_zeros(len(items), self.catalog_size + 1)
        own.scatter_add_(1, batch.rows, shares)
        average = torch.stack(
            [
                self.purchases.average_nearest(vector, instant, self.neighbours)
                for vector, instant in zip(own, instants.tolist(), strict=True)
            ]
        )
        kept = average.topk(min(_KEPT, average.shape[1]))
        of_others = kept.values.log() - total + math.log(1 - self.own_weight)
        return encoded._replace(
            repeat_scores=torch.cat((of_others, own_scores), dim=1),
            repeat_rows=torch.cat((kept.indices, batch.rows), dim=1),
        )

    def compute_attention(self, batch: SequenceBatch) -> Float[Tensor, "batch 1 len"]:
        """Compute the attention weights of `forward`, without a search for neighbours."""
        _, log_weights = self._weigh_events(batch)
        shares: Tensor = (log_weights - log_weights.logsumexp(-1, keepdim=True)).exp()
        return shares.unsqueeze(1)

    def _weigh_events(
        self, batch: SequenceBatch
    ) -> tuple[Float64[Tensor, "batch 1"], Float[Tensor, "batch len"]]:
        """Compute the query times, in days, and the logarithm of each event's weight at them."""
        lasts = batch.lengths.unsqueeze(1) - 1
        given = batch.query_given.gather(1, lasts)
        query_times = batch.query_times.gather(1, lasts)
        query_times = query_times + torch.where(given, 0.0, self.visit_interval)
        span_days = self.window.diff().double() / MICROSECONDS_PER_DAY
        latest = batch.times.gather(1, lasts) + span_days
        positions = torch.arange(batch.rows.shape[1], device=batch.rows.device)
        log_weights = self.purchases.compute_log_weights(
            batch.rows, query_times.minimum(latest) - batch.times
        )
        return query_times, log_weights.masked_fill(positions > lasts, float("-inf"))

    def divide_repeats(
        self, batch: SequenceBatch, added: AddedScores, rows: Int64[Tensor, " items"]
    ) -> RepeatParts:
        """Divide scores into the own vector, of which each event has a part, and the others'."""
        scores = added.log_scores.double().where(added.rows == rows[:, None], float("-inf"))
        # An item without a score has no parts.
        shares = scores.softmax(1).nan_to_num(0.0)
        others, own = shares.tensor_split((shares.shape[1] - batch.rows.shape[1],), dim=1)
        return RepeatParts(own, neighbours=others.sum(1) if self.neighbours else None)

    def fit_counts(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],
        users: Int64[Tensor, " events"],
    ) -> Float[Tensor, " rows"]:
        """Fit the kernels and store the purchases; return the base intensity by popularity."""
        shapes = fit_shapes(rows, times, users, items=self.catalog_size, fit=self.fit)
        self.purchases.shapes.copy_(shapes)
        self.window.copy_(torch.stack((times.amin(), times.amax())))
        self.visit_interval.fill_(measure_visit_interval(times, users))
        if self.neighbours:
            self.purchases.store(*order_users(rows, times, users))
        return compute_recent_popularity_bias(
            rows,
            times,
            items=self.catalog_size,
            weight=self.popularity_weight,
            window_days=self.window_days,
        )
