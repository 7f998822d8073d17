"""Maps of attention composed with a map of time features, so that each is one product of a state.

Parameters stay those of the separate maps; what is composed follows from them (`derived`).
"""

from typing import NamedTuple, final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from model.layers.fourier_basis import BasisProjection, conjugate
from model.layers.heads import split_last


class AffineMap(NamedTuple):
    """A linear map and a shift: `weight @ x + bias`."""

    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, " outputs"]

    def __call__(self, inputs: Float[Tensor, "*shape inputs"]) -> Float[Tensor, "*shape outputs"]:
        """Apply the map."""
        return F.linear(inputs, self.weight, self.bias)


@final
class TimeProjection(nn.Module):
    """A linear map of time features; `time_dim` may be 0.

    It starts as `nn.Linear` does, so features of a small norm start weaker than content. Scaling
    them to its strength cost Mercer alone a point on Stack Overflow and changed little elsewhere
    (docs/decisions/0029).

    Shape: features (*, time_dim) -> (*, dim)
    """

    def __init__(self, *, time_dim: int, dim: int) -> None:
        super().__init__()
        bound = max(time_dim, 1) ** -0.5
        self.weight = nn.Parameter(torch.empty(dim, time_dim).uniform_(-bound, bound))

    def forward(self, features: Float[Tensor, "*shape time_dim"]) -> Float[Tensor, "*shape dim"]:
        """Project features."""
        return F.linear(features, self.weight)

    def compose(self, projection: BasisProjection) -> Float[Tensor, "dim basis"]:
        """Return the weight of the same map applied to the Fourier basis: `U C`."""
        return self.weight @ projection.weight

    def compose_affine(self, projection: BasisProjection) -> AffineMap:
        """Compose the map from the Fourier basis of an interval to its projected features."""
        return AffineMap(self.compose(projection), self(projection.bias))


def compose_output(
    weight: Float[Tensor, "dim inputs"],
    time_value_proj: TimeProjection,
    projection: BasisProjection,
    heads: int,
    width: int,
) -> Float[Tensor, "dim widths"]:
    """Compose a map of merged heads with the time projection of their weighted sums.

    Args:
        weight: of the map of the merged content.
        width: coordinates of a head before the basis.
    """
    content = split_last(weight, heads).transpose(0, 1)
    time = content @ conjugate(compose_by_head(time_value_proj, projection, heads))
    padded = F.pad(content, (0, width - content.shape[-1]))
    return torch.cat((padded, time), dim=-1).transpose(0, 1).flatten(1)


def compose_by_head(
    time_projection: TimeProjection, projection: BasisProjection, heads: int
) -> Tensor:
    """Compute `U C` per head: heads, head_dim, 2 * frequencies."""
    composed = time_projection.compose(projection)
    return composed.view(heads, len(composed) // heads, composed.shape[-1])
