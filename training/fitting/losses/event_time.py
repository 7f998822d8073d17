"""Likelihoods of when an event comes, in days."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from training.fitting.losses.weighting import weighted_mean

MIN_INTENSITY = 1e-12
"""Per day; intensities are clamped to it, so that their logarithm stays finite."""


def continuous_time_loss(
    at_event: Float[Tensor, "targets heads groups"],
    within: Float[Tensor, "targets heads groups"] | None,
    intervals: Float64[Tensor, " targets"],
    membership: Float[Tensor, "targets groups"],
    weights: Float[Tensor, " targets"],
) -> Float[Tensor, ""]:
    """Compute the negative log-likelihood of the times of the targets' groups (CTReg), per head.

    -log sum of the intensities of the target's groups at the event, plus the integral of all
    intensities over the interval before it; the weighted mean over targets and heads. Targets
    without a group are left out.

    Paper: Chen et al. 2021 (self-modulating attention), the regulariser.
    DIFFERS(code): the integral is an unbiased Monte-Carlo estimate; padding is left out; the loss
        is the mean over heads, not their sum, which scales its weight. The intensities are those of
        the past, whose attention does not read the target's time; in the code that of the whole
        interval has read it.

    Args:
        at_event: intensities per day when the target came.
        within: the same at one uniform draw within each interval. None for the authors' biased
            integral, half the interval times the intensity at its right end.
        intervals: days from the event before to the target.
        membership: 1 where the target belongs to a group.
        weights: of the targets.
    """
    # Replaced, not selected: a device would have to tell the host how many are left.
    has_group = membership.any(-1)
    at_event = torch.where(has_group[:, None, None], at_event, 0.0)
    of_target = torch.einsum("thg,tg->th", at_event, membership)
    if within is None:
        rates = 0.5 * at_event.sum(-1)
    else:
        rates = torch.where(has_group[:, None, None], within, 0.0).sum(-1)
    integrals = rates * torch.where(has_group, intervals, 0.0).to(rates.dtype).unsqueeze(-1)
    likelihood = of_target.clamp(min=MIN_INTENSITY).log() - integrals
    return weighted_mean(-likelihood.mean(-1), weights * has_group)


def next_time_loss(
    log_density: Float[Tensor, " positions"], weights: Float[Tensor, " positions"]
) -> Float[Tensor, ""]:
    """Compute the weighted mean of -log density of the interval to the next event."""
    return weighted_mean(-log_density, weights)
