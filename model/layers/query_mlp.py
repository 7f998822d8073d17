"""What a position looks for, as a perceptron of its state and of the interval it is asked about."""

from typing import final

from jaxtyping import Float
from torch import Tensor, nn


@final
class QueryMLP(nn.Module):
    """`ReLU([Z, Z_T] W_0 + b_0) W_1 + b_1`: queries that need not be linear in time.

    Shape: known (*, 2 * dim), the state beside what is known of the interval -> (*, dim)

    Paper: Xu et al. 2019, section 6.
    """

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(2 * dim, dim)
        self.outer = nn.Linear(dim, dim)
        self.activation = nn.ReLU()

    def forward(self, known: Float[Tensor, "*shape known"]) -> Float[Tensor, "*shape dim"]:
        """What each position looks for."""
        sought: Tensor = self.outer(self.activation(self.inner(known)))
        return sought
