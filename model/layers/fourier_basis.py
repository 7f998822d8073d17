"""The Fourier basis that all time encodings share, and its rotation between instants.

The basis of an interval `x` (days) is `b(x) = [cos(w_1 x), sin(w_1 x), cos(w_2 x), ...]`. Each pair
is a point on the unit circle, the phasor `exp(i w x)`. For an event at `t` and a query time `T`,

    exp(i w (T - t)) = conj(exp(i w t)) * exp(i w T)

so `b(T - t) = R(T) b(t)`, where the rotation `R(T)` (conjugate, then turn by `w T`) depends on the
query time only. Attention rotates its queries and its outputs by `R(T)` instead of computing
features for every pair of instants.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Complex64, Float, Float64
from torch import Tensor


class BasisProjection(NamedTuple):
    """The affine map from the Fourier basis to the features of a time encoding.

    Attributes:
        weight: feature `f` is `weight[f] @ basis + bias[f]`.
        bias: the part of each feature that does not depend on time.
    """

    weight: Float[Tensor, "time_dim basis"]
    bias: Float[Tensor, " time_dim"]


def phasors(
    times: Float64[Tensor, "*shape"], frequencies: Float64[Tensor, " frequencies"]
) -> Complex64[Tensor, "*shape frequencies"]:
    """Return `exp(i w t)` for `times` in days and angular `frequencies` in radians per day.

    Phases are computed and reduced to one turn in float64 before they are rounded to float32: ten
    years at a period of a minute are five million turns, of which float32 would lose the fraction.
    """
    angle = times.unsqueeze(-1) * frequencies
    turns = torch.round(angle.detach() / (2 * math.pi))
    reduced = (angle - turns * (2 * math.pi)).float()
    return torch.complex(reduced.cos(), reduced.sin())


def basis(
    at: Complex64[Tensor, "*shape frequencies"],
) -> Float[Tensor, "*shape basis"]:
    """Return phasors as real numbers: cosine and sine of each frequency side by side."""
    return torch.view_as_real(at).flatten(-2)


def rotate(
    coefficients: Float[Tensor, "*shape basis"],
    at: Complex64[Tensor, "*#shape frequencies"],
) -> Float[Tensor, "*shape basis"]:
    """Apply the rotation `R(T)` of the instants whose phasors are `at`.

    `R(T)` is symmetric: it turns a basis at event times into the basis at intervals, and a
    projection's coefficients for intervals into coefficients for event times.
    """
    pairs = coefficients.reshape(*coefficients.shape[:-1], at.shape[-1], 2)
    return torch.view_as_real(torch.view_as_complex(pairs).conj() * at).flatten(-2)


def conjugate(coefficients: Float[Tensor, "*shape basis"]) -> Float[Tensor, "*shape basis"]:
    """Negate the coefficients of sines."""
    signs = coefficients.new_tensor((1.0, -1.0)).repeat(coefficients.shape[-1] // 2)
    return coefficients * signs


class Turns(NamedTuple):
    """The rotations `R(T)` of heads whose last coordinates belong to the basis.

    Two rotations are one complex product each, of all coordinates: those before the basis are
    multiplied by one. `conjugate` of a linear map spares the conjugation in `R(T)`.

    Attributes:
        forward: ones, then the phasors of the query times; None without a basis.
        backward: their conjugates.
    """

    forward: Complex64[Tensor, "#batch queries 1 pairs"] | None
    backward: Complex64[Tensor, "#batch queries 1 pairs"] | None

    @classmethod
    def build(cls, queries: Complex64[Tensor, "#batch queries frequencies"], width: int) -> "Turns":
        """Build the turns from the phasors of query times.

        Args:
            width: coordinates of a head before the basis, an even number.
        """
        if not queries.shape[-1]:
            return cls(None, None)
        forward = F.pad(queries, (width // 2, 0), value=1.0).unsqueeze(2)
        return cls(forward, forward.conj().resolve_conj())

    def turn(
        self, heads: Float[Tensor, "batch queries heads width"]
    ) -> Float[Tensor, "batch queries heads width"]:
        """Rotate heads that hold the conjugate of their coefficients."""
        return _multiply(heads, self.forward)

    def turn_back(
        self, heads: Float[Tensor, "batch queries heads width"]
    ) -> Float[Tensor, "batch queries heads width"]:
        """Rotate sums of the basis to the conjugate of their values at the query times."""
        return _multiply(heads, self.backward)


def _multiply(heads: Tensor, turns: Tensor | None) -> Tensor:
    if turns is None:
        return heads
    pairs = torch.view_as_complex(heads.reshape(*heads.shape[:-1], heads.shape[-1] // 2, 2))
    return torch.view_as_real(pairs * turns).flatten(-2)


def scaled_basis(frequencies: Float64[Tensor, " frequencies"]) -> BasisProjection:
    """Return the projection whose features are the basis, scaled so that kernel(t, t) = 1."""
    count = len(frequencies)
    weight = torch.eye(2 * count, device=frequencies.device) / max(count, 1) ** 0.5
    return BasisProjection(weight, weight.new_zeros(2 * count))
