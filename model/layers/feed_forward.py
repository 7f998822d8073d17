"""The position-wise half of a transformer block."""

from typing import final

from jaxtyping import Float
from torch import Tensor, nn


@final
class FeedForward(nn.Module):
    """Two linear maps with a GELU between them, applied to every position alike.

    Shape: states (*, dim) -> (*, dim)
    """

    def __init__(self, *, dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.rise = nn.Linear(dim, hidden)
        self.fall = nn.Linear(hidden, dim)
        self.activation = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Float[Tensor, "*shape dim"]) -> Float[Tensor, "*shape dim"]:
        """Transform every position by itself."""
        fallen: Tensor = self.fall(self.dropout(self.activation(self.rise(states))))
        return fallen
