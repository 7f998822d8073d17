"""Cross-entropy under a softmax over the catalog, full or sampled."""

from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from model.popularity_table import PopularityFeatures
from training.blocks import split_into_blocks
from training.fitting.losses.repeats import RepeatScores
from training.fitting.losses.weighting import weighted_mean

CHUNK_ELEMENTS = 2_000_000
"""Elements of the largest intermediate tensor: logits, or candidate vectors."""

_LEAST_ADDED = -1e4
"""Added scores below it add nothing: -inf has no gradient."""

MIN_CHUNK_USERS = 64
"""The least number of users per chunk, for any catalog: narrower products are slow."""


class GatedPopularity(NamedTuple):
    """Popularity features of all items, and their weights, for some users.

    Users of one snapshot share products, so the loss sorts them by snapshot.

    Attributes:
        of_targets: the features of each target.
    """

    gates: Float[Tensor, "users features"]
    features: PopularityFeatures
    of_targets: Float[Tensor, "targets features"]

    @classmethod
    def gather(
        cls,
        gates: Float[Tensor, "users features"],
        features: PopularityFeatures,
        targets: Int64[Tensor, " targets"],
        user_of: Int64[Tensor, " targets"],
    ) -> "GatedPopularity":
        """Gather the features of the targets."""
        return cls(gates, features, features.select(user_of).of_items(targets))

    def score_targets(self, user_of: Int64[Tensor, " targets"]) -> Float[Tensor, " targets"]:
        """Compute what popularity adds to the logit of each target."""
        return (self.gates[user_of] * self.of_targets).sum(-1)

    def weigh_targets(self, first_counts: Int64[Tensor, " targets"]) -> Float[Tensor, " targets"]:
        """Weigh targets by the probability that they are not the first event of their item.

        A target that was not counted before is one of the events in its item's first span.

        Args:
            first_counts: how many events each target's item has in that span.
        """
        is_counted = self.of_targets[:, -1] < 0.5
        return torch.where(is_counted, 1.0, 1 - 1 / first_counts.clamp(min=1))

    def score_rows(self, rows: Int64[Tensor, " items"]) -> Float[Tensor, "users items"]:
        """Compute what popularity adds to the logits of some items."""
        order = torch.argsort(self.features.entry_of, stable=True)
        gates = self.gates[order]
        # A product per snapshot: the features of each user on their own are many times the memory.
        by_snapshot = [
            gates[part] @ features.index_select(1, rows)
            for part, features in self.features.select(order).iter_snapshots()
        ]
        return torch.cat(by_snapshot)[torch.argsort(order)]


class LinearLogSumExp(torch.autograd.Function):
    """log sum exp over the items of `users @ vectors.T`, without holding all logits.

    The logits may also contain `gates @ features` of a table that has no gradient, with one entry
    per snapshot of popularity.

    Forward and backward work through chunks of users in one buffer; the backward pass computes the
    logits of each chunk again. Peak memory is that buffer, which beyond `CHUNK_ELEMENTS` grows no
    faster than the item table.
    """

    @staticmethod
    def forward(
        ctx: Any,
        users: Tensor,
        vectors: Tensor,
        gates: Tensor | None = None,
        table: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Compute the log-normaliser of every user."""
        normaliser = users.new_empty(len(users))
        # One buffer for all chunks: a new allocation each would fault its pages in again, and
        # glibc fragmented until all of them together were resident.
        buffer = _allocate_buffer(users, vectors)
        for part in split_into_blocks(len(users), len(buffer)):
            logits = torch.mm(users[part], vectors.T, out=buffer[: len(users[part])])
            if gates is not None and table is not None and index is not None:
                PopularityFeatures(table, index[part]).add_to(logits, gates[part])
            peak = logits.amax(-1, keepdim=True)
            total = logits.sub_(peak).exp_().sum(-1)
            normaliser[part] = total.log_() + peak.squeeze(-1)
        ctx.save_for_backward(users, vectors, normaliser, gates, table, index)
        return normaliser

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of users, items and gates, from the softmax of each chunk."""
        users, vectors, normaliser, gates, table, index = ctx.saved_tensors
        of_users = torch.empty_like(users)
        of_vectors = torch.zeros_like(vectors)
        of_gates = None if gates is None else torch.empty_like(gates)
        buffer = _allocate_buffer(users, vectors)
        for part in split_into_blocks(len(users), len(buffer)):
            share = torch.mm(users[part], vectors.T, out=buffer[: len(users[part])])
            features = None
            if of_gates is not None:
                features = PopularityFeatures(table, index[part])
                features.add_to(share, gates[part])
            share.sub_(normaliser[part, None]).exp_().mul_(gradients[0][part, None])
            torch.mm(share, vectors, out=of_users[part])
            of_vectors.addmm_(share.T, users[part])
            if of_gates is not None and features is not None:
                of_gates[part] = features.sum_weighted(share)
        return of_users, of_vectors, of_gates, None, None


def _allocate_buffer(users: Tensor, vectors: Tensor) -> Tensor:
    rows = max(CHUNK_ELEMENTS // len(vectors), MIN_CHUNK_USERS)
    return users.new_empty(min(rows, max(len(users), 1)), len(vectors))


def full_softmax(
    users: Float[Tensor, "users width"],
    vectors: Float[Tensor, "rows width"],
    targets: Int64[Tensor, " targets"],
    user_of: Int64[Tensor, " targets"],
    weights: Float[Tensor, " targets"],
    repeats: RepeatScores | None = None,
    popularity: GatedPopularity | None = None,
) -> Float[Tensor, ""]:
    """Compute the weighted mean of -log p(target | user) under a softmax over the whole catalog.

    Row 0 of `vectors` is padding and is no candidate.
    """
    numerator = (users[user_of] * vectors[targets]).sum(-1)
    normaliser: Tensor
    if popularity is None:
        normaliser = LinearLogSumExp.apply(users, vectors[1:])  # type: ignore[no-untyped-call]
    else:
        gates, (table, index, _), _ = popularity
        order = torch.argsort(index, stable=True)
        by_snapshot = LinearLogSumExp.apply(  # type: ignore[no-untyped-call]
            users[order], vectors[1:], gates[order], table[:, :, 1:], index[order]
        )
        normaliser = torch.empty_like(by_snapshot).scatter(0, order, by_snapshot)
        numerator = numerator + popularity.score_targets(user_of)
    return _mean_cross_entropy(numerator, normaliser[user_of], targets, user_of, weights, repeats)


def sampled_softmax(
    users: Float[Tensor, "users width"],
    vectors: Float[Tensor, "rows width"],
    targets: Int64[Tensor, " targets"],
    user_of: Int64[Tensor, " targets"],
    weights: Float[Tensor, " targets"],
    negatives: Int64[Tensor, " negatives"],
    log_expected: Float[Tensor, " negatives"],
    repeats: RepeatScores | None = None,
    popularity: GatedPopularity | None = None,
) -> Float[Tensor, ""]:
    """Compute the weighted mean of -log p(target), p estimated from shared negatives.

    `log_expected` is log(draws x probability) of each negative; subtracting it makes the sampled
    sum an unbiased estimate of the full one (the log-Q correction). A negative equal to a target
    is left out for that target.
    """
    numerator = (users[user_of] * vectors[targets]).sum(-1)
    logits = users @ vectors[negatives].T - log_expected
    if popularity is not None:
        numerator = numerator + popularity.score_targets(user_of)
        logits = logits + popularity.score_rows(negatives)
    logits = logits[user_of]
    logits = logits.masked_fill(negatives == targets[:, None], float("-inf"))
    normaliser = torch.cat((numerator.unsqueeze(-1), logits), dim=-1).logsumexp(-1)
    return _mean_cross_entropy(numerator, normaliser, targets, user_of, weights, repeats)


def draw_shared_negatives(
    targets: Tensor, rows: int, count: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Draw the negatives that all users of a batch share.

    Half are drawn from the targets of the batch, half uniformly from the catalog.

    Args:
        targets: catalog rows.
        rows: size of the item table, padding included.
        count: negatives to draw.

    Returns:
        The rows, and log(draws x probability) of each, on the CPU.
    """
    counts = np.bincount(targets.cpu().numpy(), minlength=rows)
    probability = 0.5 * counts / counts.sum() + 0.5 / (rows - 1)
    probability[0] = 0.0
    own = rng.choice(targets.cpu().numpy(), size=count // 2)
    uniform = rng.integers(1, rows, size=count - len(own))
    drawn = np.concatenate((own, uniform))
    log_expected = np.log(count * probability[drawn])
    return torch.from_numpy(drawn), torch.from_numpy(log_expected.astype(np.float32))


def _mean_cross_entropy(
    numerator: Tensor,
    normaliser: Tensor,
    targets: Tensor,
    user_of: Tensor,
    weights: Tensor,
    repeats: RepeatScores | None,
) -> Tensor:
    """Compute the weighted mean of normaliser - numerator, the repeat scores added to both."""
    if repeats is not None:
        # logsumexp over -inf alone, a user to whom nothing is added, has no gradient.
        added = repeats.log_scores.clamp(min=_LEAST_ADDED).logsumexp(-1)
        normaliser = torch.logaddexp(normaliser, added[user_of])
        numerator = repeats.add_to_targets(numerator, targets, user_of)
    return weighted_mean(normaliser - numerator, weights)
