"""How a kernel of two instants enters attention."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn


@final
class KernelScale(nn.Module):
    """How much a kernel of two instants counts beside the match of their contents, per head.

    Paper: NTKA 2022.
    DIFFERS(code): a learned scale that starts at one, where the code divides by
        `exp(sqrt(head_dim))`: behind a divisor of hundreds a kernel takes far longer to learn.
    DIFFERS(code): one kernel serves all blocks, each head of which scales it for itself, where the
        code has a kernel per block.
    """

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(heads))

    def forward(
        self, kernel: Float[Tensor, "batch queries len"]
    ) -> Float[Tensor, "batch heads queries len"]:
        """What to add to the logits of every head."""
        return kernel.unsqueeze(1) * self.scale[:, None, None]
