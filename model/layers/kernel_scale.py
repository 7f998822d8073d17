"""How a kernel of two instants enters attention."""

import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn


@final
class KernelScale(nn.Module):
    """How much a kernel of two instants counts beside the match of their contents, per head.

    Paper: NTKA 2022, which divides the kernel by `exp(sqrt(head_dim))` before adding it.
    DIFFERS(code): that divisor is where a learned scale starts; one kernel serves all blocks, of
        which each head scales it for itself, instead of one kernel per block.
    """

    def __init__(self, *, heads: int, head_dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((heads,), math.exp(-(head_dim**0.5))))

    def forward(
        self, kernel: Float[Tensor, "batch queries len"]
    ) -> Float[Tensor, "batch heads queries len"]:
        """What to add to the logits of every head."""
        return kernel.unsqueeze(1) * self.scale[:, None, None]
