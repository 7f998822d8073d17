"""The weighted mean that reduces the losses of targets to one number."""

import torch
from jaxtyping import Float
from torch import Tensor


def weighted_mean(
    losses: Float[Tensor, " targets"], weights: Float[Tensor, " targets"]
) -> Float[Tensor, ""]:
    """Compute the weighted mean; zero where all weights are zero or there is no target."""
    return (losses * normalise_weights(weights)).sum()


def normalise_weights(weights: Float[Tensor, " targets"]) -> Float[Tensor, " targets"]:
    """Scale weights so that they sum to one; leave them where all are zero or there is none."""
    return weights / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
