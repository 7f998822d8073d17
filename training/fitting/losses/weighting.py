"""The weighted mean that reduces the losses of targets to one number."""

import torch
from jaxtyping import Float
from torch import Tensor


def weighted_mean(
    losses: Float[Tensor, " targets"], weights: Float[Tensor, " targets"]
) -> Float[Tensor, ""]:
    """Compute the weighted mean; zero where all weights are zero or there is no target."""
    return (losses * weights).sum() / weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
