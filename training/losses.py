"""Losses, as functions of values: no model is known here."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

CHUNK_ELEMENTS = 2_000_000
"""Logits held at a time: what bounds the memory of a softmax over a catalogue."""

LEAST_CHUNK = 64
"""Users per chunk at the least, however large the catalogue: narrower products are slow."""


class CatalogueLogSumExp(torch.autograd.Function):
    """log sum exp over the catalogue of `users @ vectors.T`, without ever holding all logits.

    Chunks of users are worked through one at a time, forward and backward, in one buffer; the
    backward pass computes each chunk's logits again. Peak memory is that buffer, which beyond
    `CHUNK_ELEMENTS` grows no faster than the item table itself.
    """

    @staticmethod
    def forward(ctx: Any, users: Tensor, vectors: Tensor) -> Tensor:
        """The log-normaliser of every user."""
        normaliser = users.new_empty(len(users))
        # One buffer for all chunks: a fresh allocation each would fault its pages in every time,
        # and glibc was seen to fragment until all of them together were resident.
        buffer = _buffer(users, vectors)
        for part in _parts(len(users), len(buffer)):
            logits = torch.mm(users[part], vectors.T, out=buffer[: len(users[part])])
            peak = logits.amax(-1, keepdim=True)
            total = logits.sub_(peak).exp_().sum(-1)
            normaliser[part] = total.log_() + peak.squeeze(-1)
        ctx.save_for_backward(users, vectors, normaliser)
        return normaliser

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        """Softmax of each chunk, spread over users and items."""
        users, vectors, normaliser = ctx.saved_tensors
        of_users = torch.empty_like(users)
        of_vectors = torch.zeros_like(vectors)
        buffer = _buffer(users, vectors)
        for part in _parts(len(users), len(buffer)):
            share = torch.mm(users[part], vectors.T, out=buffer[: len(users[part])])
            share.sub_(normaliser[part, None]).exp_().mul_(gradients[0][part, None])
            torch.mm(share, vectors, out=of_users[part])
            of_vectors.addmm_(share.T, users[part])
        return of_users, of_vectors


def _buffer(users: Tensor, vectors: Tensor) -> Tensor:
    rows = max(CHUNK_ELEMENTS // len(vectors), LEAST_CHUNK)
    return users.new_empty(min(rows, max(len(users), 1)), len(vectors))


def _parts(count: int, size: int) -> Iterator[slice]:
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))


class Repeats(NamedTuple):
    """The log-mass each user's past events add to their items, beside the catalogue's logits.

    Attributes:
        log_mass: per user and past event, -inf where an event must not count.
        rows: the events' catalogue rows.
    """

    log_mass: Float[Tensor, "users len"]
    rows: Int64[Tensor, "users len"]


def full_softmax(
    users: Float[Tensor, "users width"],
    vectors: Float[Tensor, "rows width"],
    targets: Int64[Tensor, " targets"],
    user_of: Int64[Tensor, " targets"],
    weights: Float[Tensor, " targets"],
    repeats: Repeats | None = None,
) -> Float[Tensor, ""]:
    """Weighted mean of -log p(target | user) under a softmax over the whole catalogue.

    Row 0 of `vectors` is padding and is no candidate.
    """
    normaliser: Tensor = CatalogueLogSumExp.apply(users, vectors[1:])  # type: ignore[no-untyped-call]
    numerator = (users[user_of] * vectors[targets]).sum(-1)
    return _mean_loss(numerator, normaliser[user_of], targets, user_of, weights, repeats)


def sampled_softmax(
    users: Float[Tensor, "users width"],
    vectors: Float[Tensor, "rows width"],
    targets: Int64[Tensor, " targets"],
    user_of: Int64[Tensor, " targets"],
    weights: Float[Tensor, " targets"],
    negatives: Int64[Tensor, " negatives"],
    log_expected: Float[Tensor, " negatives"],
    repeats: Repeats | None = None,
) -> Float[Tensor, ""]:
    """Weighted mean of -log p(target) with the normaliser estimated from shared negatives.

    `log_expected` is log(draws x probability) of each negative; subtracting it makes the sampled
    sum an unbiased estimate of the full one (the log-Q correction). A negative equal to a target
    is left out for that target.
    """
    numerator = (users[user_of] * vectors[targets]).sum(-1)
    logits = (users @ vectors[negatives].T - log_expected)[user_of]
    logits = logits.masked_fill(negatives == targets[:, None], float("-inf"))
    normaliser = torch.cat((numerator.unsqueeze(-1), logits), dim=-1).logsumexp(-1)
    return _mean_loss(numerator, normaliser, targets, user_of, weights, repeats)


def _mean_loss(
    numerator: Tensor,
    normaliser: Tensor,
    targets: Tensor,
    user_of: Tensor,
    weights: Tensor,
    repeats: Repeats | None,
) -> Tensor:
    """Weighted mean of normaliser - numerator, both per target and with the repeats' mass added."""
    if repeats is not None:
        normaliser = torch.logaddexp(normaliser, repeats.log_mass.logsumexp(-1)[user_of])
        is_target = repeats.rows[user_of] == targets[:, None]
        pointed = repeats.log_mass[user_of].masked_fill(~is_target, float("-inf"))
        # A user without the target in their history gains nothing; logsumexp of nothing has no
        # gradient, so leave those rows out rather than hand autograd an infinity.
        has = (pointed > float("-inf")).any(-1)
        gained = torch.logaddexp(numerator[has], pointed[has].logsumexp(-1))
        numerator = numerator.masked_scatter(has, gained)
    return ((normaliser - numerator) * weights).sum() / weights.sum()
