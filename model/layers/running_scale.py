"""Division by a running root mean square."""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

_SHARE = 0.01
"""Share of the newest batch in the running mean; the first ones count alike."""
_LEAST = 1e-12


@final
class RunningScale(nn.Module):
    """Divides vectors by their root mean square over the training, so that they are of order one.

    One number for all vectors and coordinates, so that their relative lengths remain. It is
    fixed in evaluation, where no output depends on the rest of its batch.

    Shape: vectors (*, dim) -> (*, dim)
    """

    def __init__(self) -> None:
        super().__init__()
        self.mean_square: Tensor
        self.batches: Tensor
        self.register_buffer("mean_square", torch.ones(()))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, vectors: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
        """Scale vectors; in training, they count in the running mean first."""
        if self.training:
            with torch.no_grad():
                self.batches += 1
                share = (1 / self.batches).clamp(min=_SHARE)
                self.mean_square.lerp_(vectors.detach().float().square().mean(), share)
        return self.divide(vectors)

    def divide(self, vectors: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
        """Scale vectors that do not count, such as those with padding among them."""
        return vectors * self.mean_square.clamp(min=_LEAST).rsqrt()
