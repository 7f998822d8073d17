"""Losses, as functions of values: no model is known here."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int64
from torch import Tensor

CHUNK_ELEMENTS = 2_000_000
"""Logits held at a time: what bounds the memory of a softmax over a catalogue."""

LEAST_CHUNK = 64
"""Users per chunk at the least, however large the catalogue: narrower products are slow."""

LEAST_INTENSITY = 1e-12
"""Below this, per day, an event counts as impossible all the same: its log stays finite."""


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

    def added_to(
        self,
        scores: Float[Tensor, " targets"],
        targets: Int64[Tensor, " targets"],
        user_of: Int64[Tensor, " targets"],
    ) -> Float[Tensor, " targets"]:
        """Scores of targets with the mass that their users' events add to them, in log space."""
        is_target = self.rows[user_of] == targets[:, None]
        pointed = self.log_mass[user_of].masked_fill(~is_target, float("-inf"))
        # A user without the target in their history gains nothing; logsumexp of nothing has no
        # gradient, so leave those rows out rather than hand autograd an infinity.
        has = (pointed > float("-inf")).any(-1)
        gained = torch.logaddexp(scores[has], pointed[has].logsumexp(-1))
        return scores.masked_scatter(has, gained)

    def added_to_candidates(
        self,
        scores: Float[Tensor, "users candidates"],
        candidates: Int64[Tensor, "users candidates"],
        *,
        rows: int,
    ) -> Float[Tensor, "users candidates"]:
        """The same for several catalogue rows per user; lays out a table of users x `rows`."""
        peak = self.log_mass.detach().amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        table = self.log_mass.new_zeros(len(self.rows), rows)
        mass = table.scatter_add(1, self.rows, (self.log_mass - peak).exp()).gather(1, candidates)
        has = mass > 0
        log_mass = torch.where(has, mass, 1.0).log() + peak
        return torch.where(has, torch.logaddexp(scores, log_mass), scores)


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
        numerator = repeats.added_to(numerator, targets, user_of)
    return ((normaliser - numerator) * weights).sum() / weights.sum()


class CandidateScores(torch.autograd.Function):
    """The scores of each owner's own candidates: `users @ vectors[rows].T`, owner by owner.

    Chunks of owners are worked through one at a time, and the backward pass looks their candidates
    up again: no more than a chunk of looked-up vectors is ever held.
    """

    @staticmethod
    def forward(ctx: Any, users: Tensor, vectors: Tensor, rows: Tensor) -> Tensor:
        """Owners x queries x candidates."""
        scores = users.new_empty(len(users), users.shape[1], rows.shape[1])
        for part in _owners(vectors, rows):
            candidates = vectors[rows[part]]
            torch.bmm(users[part], candidates.transpose(1, 2), out=scores[part])
        ctx.save_for_backward(users, vectors, rows)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Each score's gradient, spread over its query and its candidate."""
        users, vectors, rows = ctx.saved_tensors
        of_users = torch.empty_like(users)
        of_vectors = torch.zeros_like(vectors)
        for part in _owners(vectors, rows):
            share = gradients[0][part]
            torch.bmm(share, vectors[rows[part]], out=of_users[part])
            of_candidates = torch.bmm(share.transpose(1, 2), users[part])
            of_vectors.index_add_(0, rows[part].flatten(), of_candidates.flatten(0, 1))
        return of_users, of_vectors, None


def _owners(vectors: Tensor, rows: Tensor) -> Iterator[slice]:
    return _parts(len(rows), max(CHUNK_ELEMENTS // max(rows.shape[1] * vectors.shape[1], 1), 1))


def candidate_scores(
    users: Float[Tensor, "owners queries width"],
    vectors: Float[Tensor, "rows width"],
    candidates: Int64[Tensor, "owners candidates"],
) -> Float[Tensor, "owners queries candidates"]:
    """The scores of some catalogue rows, each owner's queries against the owner's candidates."""
    scores: Tensor = CandidateScores.apply(users, vectors, candidates)  # type: ignore[no-untyped-call]
    return scores


def bce(
    positives: Float[Tensor, " targets"],
    negatives: Float[Tensor, "targets negatives"],
    weights: Float[Tensor, " targets"],
) -> Float[Tensor, ""]:
    """Weighted mean of -log s(positive) - sum log(1 - s(negative)), s the logistic function.

    Takes scores. A negative of -inf does not count.

    Paper: Kang and McAuley 2018 (SASRec), section III-E.
    """
    per_target = -F.logsigmoid(positives) - F.logsigmoid(-negatives).sum(-1)
    return _weighted(per_target, weights)


def gbce(
    positives: Float[Tensor, " targets"],
    negatives: Float[Tensor, "targets negatives"],
    weights: Float[Tensor, " targets"],
    *,
    items: int,
    calibration: float,
) -> Float[Tensor, ""]:
    """Binary cross-entropy with the positive's probability raised to a power beta below one.

    Takes scores. A negative of -inf does not count. With a calibration of 0, beta is 1; of 1, beta
    is the share of the other items that was drawn.

    Paper: Petrov and Macdonald 2023 (gSASRec), the definition of gBCE.
    """
    drawn = negatives.shape[1]
    alpha = min(drawn / max(items - 1, 1), 1.0)
    # beta = alpha (t (1 - 1 / alpha) + 1 / alpha), multiplied out.
    beta = calibration * (alpha - 1) + 1
    per_target = -beta * F.logsigmoid(positives) - F.logsigmoid(-negatives).sum(-1)
    return _weighted(per_target / (drawn + 1), weights)


def bpr(
    positives: Float[Tensor, " targets"],
    negatives: Float[Tensor, "targets negatives"],
    weights: Float[Tensor, " targets"],
) -> Float[Tensor, ""]:
    """Weighted mean of -log s(positive - negative), s the logistic function, over the negatives.

    Takes scores. A negative of -inf does not count.

    Paper: Rendle et al. 2009 (BPR-Opt), for sequences as S-BPR.
    """
    margins = positives.unsqueeze(-1) - negatives
    return _weighted(-F.logsigmoid(margins).mean(-1), weights)


def continuous_time_loss(
    at_event: Float[Tensor, "targets heads groups"],
    within: Float[Tensor, "targets heads groups"] | None,
    intervals: Float64[Tensor, " targets"],
    marks: Float[Tensor, "targets groups"],
    weights: Float[Tensor, " targets"],
) -> Float[Tensor, ""]:
    """The negative log-likelihood of when events of the targets' groups came (CTReg), per head.

    -log sum of the target's groups' intensities at the event, plus the integral of all intensities
    over the interval before it; the weighted mean over targets and heads. Targets without a group
    are left out.

    Paper: Chen et al. 2021 (self-modulating attention), the regulariser.
    DIFFERS(code): the integral is a Monte-Carlo estimate and unbiased; padding is never in.

    Args:
        at_event: intensities per day when the target came.
        within: the same at one uniform draw within each interval. None for the authors' biased
            integral, half the interval times the intensity at its right end.
        intervals: days from the event before to the target.
        marks: 1 where the target belongs to a group.
        weights: of the targets.
    """
    marked = marks.any(-1)
    at_event, marks, weights = at_event[marked], marks[marked], weights[marked]
    of_target = torch.einsum("thg,tg->th", at_event, marks)
    rates = 0.5 * at_event.sum(-1) if within is None else within[marked].sum(-1)
    integrals = rates * intervals[marked].to(rates.dtype).unsqueeze(-1)
    likelihood = of_target.clamp(min=LEAST_INTENSITY).log() - integrals
    return _weighted(-likelihood.mean(-1), weights)


def next_time_loss(
    log_density: Float[Tensor, " positions"], weights: Float[Tensor, " positions"]
) -> Float[Tensor, ""]:
    """Weighted mean of -log density of the interval to the next event."""
    return _weighted(-log_density, weights)


def _weighted(losses: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean; zero where there is nothing to weigh."""
    return (losses * weights).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
