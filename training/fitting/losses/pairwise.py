"""Losses that contrast a target with a few items that its user has not seen in training."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from model.accelerators import copy_to
from training.blocks import split_into_blocks
from training.config import BCEConfig, BPRConfig, GBCEConfig
from training.data.batches import TrainingBatch
from training.fitting.losses.weighting import weighted_mean

CHUNK_ELEMENTS = 2_000_000
"""Elements of the largest intermediate tensor, the vectors of candidates."""

PairwiseConfig = BCEConfig | GBCEConfig | BPRConfig

PairwiseLoss = Callable[
    [
        Float[Tensor, " targets"],
        Float[Tensor, "targets negatives"],
        Float[Tensor, " targets"],
    ],
    Float[Tensor, ""],
]
"""A loss of the targets' scores, their negatives' scores and the targets' weights."""


def choose_pairwise_loss(config: PairwiseConfig, items: int) -> PairwiseLoss:
    """Return the loss of a config, for a catalog of `items` items without padding."""
    match config:
        case BCEConfig():
            return bce
        case GBCEConfig(calibration=calibration):
            return partial(gbce, items=items, calibration=calibration)
        case BPRConfig():
            return bpr


def compute_calibrated_score(config: PairwiseConfig, items: int) -> float:
    """Compute the score of all items at which a loss pulls as much upwards as downwards.

    A fresh model scores about 0, a probability of one half, where a target among many negatives has
    far less. Until the biases of thousands of items have fallen, each by a learning rate per step
    at most, that is all a model learns. So they start here.

    DIFFERS(code): gSASRec's items have no bias, and its training is so long that the start is
    forgotten.

    Args:
        items: the size of the catalog, without padding.

    Returns:
        The logarithm of the odds of a target; 0 for a loss of differences.
    """
    match config:
        case BCEConfig(negatives=negatives):
            return -math.log(negatives)
        case GBCEConfig(negatives=negatives, calibration=calibration):
            power = _compute_power(negatives, items, calibration)
            return math.log(power / negatives)
        case BPRConfig():
            return 0.0


def _compute_power(negatives: int, items: int, calibration: float) -> float:
    """Compute the power beta of the target's probability in gBCE."""
    alpha = min(negatives / max(items - 1, 1), 1.0)
    # beta = alpha (t (1 - 1 / alpha) + 1 / alpha), multiplied out.
    return calibration * (alpha - 1) + 1


def bce(
    positives: Float[Tensor, " targets"],
    negatives: Float[Tensor, "targets negatives"],
    weights: Float[Tensor, " targets"],
) -> Float[Tensor, ""]:
    """Compute the weighted mean of -log s(positive) - sum log(1 - s(negative)), s the sigmoid.

    Takes scores. A negative of -inf does not count.

    Paper: Kang and McAuley 2018 (SASRec), section III-E.
    """
    per_target = -F.logsigmoid(positives) - F.logsigmoid(-negatives).sum(-1)
    return weighted_mean(per_target, weights)


def gbce(
    positives: Float[Tensor, " targets"],
    negatives: Float[Tensor, "targets negatives"],
    weights: Float[Tensor, " targets"],
    *,
    items: int,
    calibration: float,
) -> Float[Tensor, ""]:
    """Compute binary cross-entropy with the positive's probability to a power beta below one.

    Takes scores. A negative of -inf does not count. With a calibration of 0, beta is 1; with 1,
    beta is the share of the other items that was drawn.

    Paper: Petrov and Macdonald 2023 (gSASRec), the definition of gBCE.
    """
    drawn = negatives.shape[1]
    beta = _compute_power(drawn, items, calibration)
    per_target = -beta * F.logsigmoid(positives) - F.logsigmoid(-negatives).sum(-1)
    return weighted_mean(per_target / (drawn + 1), weights)


def bpr(
    positives: Float[Tensor, " targets"],
    negatives: Float[Tensor, "targets negatives"],
    weights: Float[Tensor, " targets"],
) -> Float[Tensor, ""]:
    """Compute the weighted mean of -log s(positive - negative) over negatives, s the sigmoid.

    Takes scores. A negative of -inf does not count.

    Paper: Rendle et al. 2009 (BPR-Opt), for sequences as S-BPR.
    """
    margins = positives.unsqueeze(-1) - negatives
    return weighted_mean(-F.logsigmoid(margins).mean(-1), weights)


class Negatives(NamedTuple):
    """Items drawn against the targets of a batch.

    An owner is what a set of negatives is drawn for: a target, or a window whose targets share it.

    Attributes:
        rows: catalog rows, per owner.
        owner_of: per target, its owner.
        has_seen_all: per target, on the host, whether its user has seen the whole catalog. Only
            then may a negative be the target itself or be in the history.
    """

    rows: Int64[Tensor, "owners negatives"]
    owner_of: Int64[Tensor, " targets"]
    has_seen_all: Bool[np.ndarray, " targets"]


def draw_negatives(
    batch: TrainingBatch, config: PairwiseConfig, rng: np.random.Generator
) -> Negatives:
    """Draw items that the users of a batch have not seen in training.

    DIFFERS(code): the many negatives of gBCE are shared by the targets of a window, which makes
    them as cheap as a few; gSASRec draws them per target, of the whole catalog, so that an item of
    the user's history, or the target, may be among them.
    """
    users, device = batch.users[batch.window_of], batch.targets.device
    if isinstance(config, GBCEConfig):
        owners = batch.users
        owner_of = copy_to(torch.from_numpy(batch.window_of), device)
    else:
        owners, owner_of = users, torch.arange(len(users), device=device)
    rows = torch.from_numpy(batch.seen.draw_unseen(owners, config.negatives, rng))
    return Negatives(copy_to(rows, device), owner_of, batch.seen.unseen_counts[users] == 0)


def mask_targets(
    negatives: Float[Tensor, "targets negatives"],
    rows: Int64[Tensor, "targets negatives"],
    targets: Int64[Tensor, " targets"],
) -> Float[Tensor, "targets negatives"]:
    """Replace the negatives' scores by -inf where a negative is the target itself."""
    return negatives.masked_fill(rows == targets.unsqueeze(1), float("-inf"))


class CandidateProduct(torch.autograd.Function):
    """The scores of each owner's own candidates: `users @ vectors[rows].T`, owner by owner.

    Forward and backward work through chunks of owners, and the backward pass looks their candidate
    vectors up again: at most one chunk of them is held.
    """

    @staticmethod
    def forward(ctx: Any, users: Tensor, vectors: Tensor, rows: Tensor) -> Tensor:
        """Compute the scores: owners x queries x candidates."""
        scores = users.new_empty(len(users), users.shape[1], rows.shape[1])
        for part in _split_owners(vectors, rows):
            candidates = vectors[rows[part]]
            torch.bmm(users[part], candidates.transpose(1, 2), out=scores[part])
        ctx.save_for_backward(users, vectors, rows)
        return scores

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Compute the gradients of queries and candidate vectors."""
        users, vectors, rows = ctx.saved_tensors
        of_users = torch.empty_like(users)
        of_vectors = torch.zeros_like(vectors)
        for part in _split_owners(vectors, rows):
            share = gradients[0][part]
            torch.bmm(share, vectors[rows[part]], out=of_users[part])
            of_candidates = torch.bmm(share.transpose(1, 2), users[part])
            of_vectors.index_add_(0, rows[part].flatten(), of_candidates.flatten(0, 1))
        return of_users, of_vectors, None


def _split_owners(vectors: Tensor, rows: Tensor) -> Iterator[slice]:
    per_owner = max(rows.shape[1] * vectors.shape[1], 1)
    return split_into_blocks(len(rows), CHUNK_ELEMENTS // per_owner)


def score_negatives(
    users: Float[Tensor, "owners queries width"],
    vectors: Float[Tensor, "rows width"],
    candidates: Int64[Tensor, "owners candidates"],
) -> Float[Tensor, "owners queries candidates"]:
    """Score some catalog rows: each owner's queries against the owner's candidates."""
    scores: Tensor = CandidateProduct.apply(users, vectors, candidates)  # type: ignore[no-untyped-call]
    return scores
