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


def scaled_basis(frequencies: Float64[Tensor, " frequencies"]) -> BasisProjection:
    """Return the projection whose features are the basis, scaled so that kernel(t, t) = 1."""
    count = len(frequencies)
    weight = torch.eye(2 * count, device=frequencies.device) / max(count, 1) ** 0.5
    return BasisProjection(weight, weight.new_zeros(2 * count))
