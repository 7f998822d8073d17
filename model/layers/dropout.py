"""Dropout whose masks are cheap to draw on a CPU."""

from typing import final

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

_LEVELS = 2**16
"""Probabilities are multiples of one in this many."""


@final
class Dropout(nn.Module):
    """Sets elements to zero at random in training, and scales the others up, as `nn.Dropout` does.

    On a CPU that takes a tenth of a training step: PyTorch draws a word of random bits per
    element. Here four elements share a word of a faster generator, seeded from PyTorch's own at
    every call, so that a seed still determines a run.

    Shape: states (*) -> (*)

    Args:
        p: probability of an element to be set to zero, rounded to a multiple of 2**-16 on a CPU.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, states: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Drop elements in training; return the states unchanged in evaluation."""
        if not self.training or not self.p:
            return states
        if states.device.type != "cpu":
            return F.dropout(states, self.p)
        return states * _draw_mask(states.shape, self.p).to(states.dtype)


def _draw_mask(shape: torch.Size, probability: float) -> Float[Tensor, "*shape"]:
    """Draw zeros, and the inverse of the share that is kept."""
    count, dropped = shape.numel(), round(probability * _LEVELS)
    seed = int(torch.randint(2**63 - 1, ()))
    words = np.random.Generator(np.random.SFC64(seed)).integers(
        2**64, size=-(-count // 4), dtype=np.uint64
    )
    kept = torch.from_numpy((words.view(np.uint16)[:count] >= dropped).view(np.uint8))
    return (kept.float() * (_LEVELS / max(_LEVELS - dropped, 1))).view(shape)
