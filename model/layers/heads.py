"""The last dimension of states, split into attention heads."""

import math

from jaxtyping import Float
from torch import Tensor


def split_heads(states: Tensor, heads: int) -> Tensor:
    """Split the heads: batch, len, dim -> batch, heads, len, head_dim."""
    return split_last(states, heads).transpose(1, 2)


def split_last(states: Float[Tensor, "*shape width"], *parts: int) -> Tensor:
    """Split the last dimension into so many equal parts, of so many equal parts, and so on."""
    *shape, width = states.shape
    # Not -1: a history may be empty.
    return states.view(*shape, *parts, width // math.prod(parts))
