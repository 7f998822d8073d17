"""Cross-entropy under a softmax over the catalog, full or sampled."""

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from model.popularity_table import PopularityFeatures
from training.blocks import split_into_blocks
from training.fitting.losses.repeats import RepeatScores
from training.fitting.losses.weighting import normalise_weights, weighted_mean

CHUNK_ELEMENTS = 200_000
"""Logits per chunk: as many as a core's caches hold, so that products read them from there."""

DEVICE_CHUNK_ELEMENTS = 20_000_000
"""Logits per chunk on an accelerator, which launches every operation anew."""

MIN_CHUNK_USERS = 64
"""The least number of users per chunk, for any catalog: narrower products are slow."""

_WIDTHS = 8
"""Products are slow if the width of the vectors is no multiple of it, as 64 and a bias are."""


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
        index = self.features.entry_of
        order = torch.argsort(index, stable=True)
        scores: Tensor = GatedFeatures.apply(  # type: ignore[no-untyped-call]
            self.gates[order], self.features.table, index[order], rows
        )
        return scores[torch.argsort(order)]


class GatedFeatures(torch.autograd.Function):
    """`gates @ features` of some items, where each user has the features of a snapshot.

    The backward pass looks the features up again: those of each user on their own are many times
    the memory of the result.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, table: Tensor, index: Tensor, rows: Tensor) -> Tensor:
        """Compute the scores: users x items."""
        ctx.save_for_backward(table, index, rows)
        scores = gates.new_zeros(len(gates), len(rows))
        return PopularityFeatures(table, index).add_to(scores, gates, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of the gates; the features have none."""
        table, index, rows = ctx.saved_tensors
        return PopularityFeatures(table, index).sum_weighted(gradient, rows), None, None, None


class SoftmaxNormaliser(torch.autograd.Function):
    """The weighted sum of log sum exp over the items of `users @ vectors.T`, and its gradients.

    The logits may also contain `gates @ features` of a table that has no gradient, with one entry
    per snapshot of popularity, and each sum of exponentials one more term per user, `exp(added)`.

    The weights are known before the loss, so the gradients are formed in the forward pass: of each
    chunk of users three products and one softmax, in one buffer. The backward pass would have to
    compute the logits and their exponentials again. Peak memory is that buffer, which beyond
    `CHUNK_ELEMENTS` grows no faster than the item table.
    """

    @staticmethod
    def forward(
        ctx: Any,
        users: Tensor,
        vectors: Tensor,
        weights: Tensor,
        added: Tensor | None = None,
        gates: Tensor | None = None,
        table: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Compute the weighted sum of the log-normalisers of all users."""
        total = users.new_zeros(())
        width = users.shape[1]
        users, vectors = (F.pad(one, (0, -width % _WIDTHS)) for one in (users, vectors))
        of_users, of_vectors = torch.empty_like(users), torch.zeros_like(vectors)
        of_gates = None if gates is None else torch.empty_like(gates)
        of_added = None if added is None else torch.empty_like(added)
        # One buffer for all chunks: a new allocation each would fault its pages in again, and
        # glibc fragmented until all of them together were resident.
        buffer = _allocate_buffer(users, vectors)
        for part in split_into_blocks(len(users), len(buffer)):
            logits = torch.mm(users[part], vectors.T, out=buffer[: len(users[part])])
            features: PopularityFeatures | None = None
            if gates is not None and table is not None and index is not None:
                features = PopularityFeatures(table, index[part])
                features.add_to(logits, gates[part])
            peak = logits.amax(-1)
            shares = torch.softmax(logits, -1, out=logits)
            normaliser = peak - shares.amax(-1).log_()
            of_normaliser = weights[part]
            if added is not None and of_added is not None:
                without, normaliser = normaliser, torch.logaddexp(normaliser, added[part])
                torch.mul(of_normaliser, (added[part] - normaliser).exp_(), out=of_added[part])
                of_normaliser = of_normaliser * (without - normaliser).exp_()
            total += normaliser @ weights[part]
            scale = of_normaliser.unsqueeze(-1)
            torch.mm(shares, vectors, out=of_users[part]).mul_(scale)
            of_vectors.addmm_(shares.T, users[part] * scale)
            if features is not None and of_gates is not None:
                torch.mul(features.sum_weighted(shares), scale, out=of_gates[part])
        ctx.save_for_backward(of_users[:, :width], of_vectors[:, :width], of_added, of_gates)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradients of users, items, added terms and gates."""
        of_users, of_vectors, of_added, of_gates = (
            None if one is None else one * gradient for one in ctx.saved_tensors
        )
        return of_users, of_vectors, None, of_added, of_gates, None, None


def _allocate_buffer(users: Tensor, vectors: Tensor) -> Tensor:
    elements = CHUNK_ELEMENTS if users.device.type == "cpu" else DEVICE_CHUNK_ELEMENTS
    rows = max(elements // len(vectors), MIN_CHUNK_USERS)
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
    if popularity is not None:
        numerator = numerator + popularity.score_targets(user_of)
    added: Tensor | None = None
    if repeats is not None:
        added = repeats.sum_per_user()
        numerator = repeats.add_to_targets(numerator, targets, user_of)
    weights = normalise_weights(weights).to(users.dtype)
    per_user = weights.new_zeros(len(users)).index_add(0, user_of, weights)
    inputs: tuple[Tensor | None, ...] = (users, vectors[1:], per_user, added)
    if popularity is not None:
        gates, (table, index, _), _ = popularity
        order = torch.argsort(index, stable=True)
        inputs = (
            users[order],
            vectors[1:],
            per_user[order],
            None if added is None else added[order],
            gates[order],
            table[:, :, 1:],
            index[order],
        )
    normaliser: Tensor = SoftmaxNormaliser.apply(*inputs)  # type: ignore[no-untyped-call]
    return normaliser - numerator @ weights


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
    if repeats is not None:
        normaliser = torch.logaddexp(normaliser, repeats.sum_per_user()[user_of])
        numerator = repeats.add_to_targets(numerator, targets, user_of)
    return weighted_mean(normaliser - numerator, weights)


def draw_shared_negatives(
    targets: Int64[np.ndarray, " targets"], rows: int, count: int, rng: np.random.Generator
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
    counts = np.bincount(targets, minlength=rows)
    probability = 0.5 * counts / counts.sum() + 0.5 / (rows - 1)
    probability[0] = 0.0
    own = rng.choice(targets, size=count // 2)
    uniform = rng.integers(1, rows, size=count - len(own))
    drawn = np.concatenate((own, uniform))
    log_expected = np.log(count * probability[drawn])
    return torch.from_numpy(drawn), torch.from_numpy(log_expected.astype(np.float32))
