"""The Fourier basis of time, and why a shift in time is only a rotation of it.

Every time encoding here reads one basis, `b(x) = [cos(w_1 x), sin(w_1 x), cos(w_2 x), ...]`, of the
interval `x` between an event and the instant that is asked about. Each pair is a point of the unit
circle, `exp(i w x)`, and since

    exp(i w (T - t)) = conj(exp(i w t)) * exp(i w T)

the basis of an interval is `b(T - t) = R(T) b(t)`, where `R(T)` (conjugate, then turn by `w T`)
knows the query time alone. Attention can therefore rotate its queries and its answers instead of
building features for every pair of instants.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Complex64, Float, Float64
from torch import Tensor


class ReadOut(NamedTuple):
    """The affine map from a Fourier basis to the features of an encoding.

    Attributes:
        weight: feature `f` is `weight[f] @ basis + offset[f]`.
        offset: the part that does not depend on time.
    """

    weight: Float[Tensor, "time_dim basis"]
    offset: Float[Tensor, " time_dim"]


def phasors(
    times: Float64[Tensor, "*shape"], frequencies: Float64[Tensor, " frequencies"]
) -> Complex64[Tensor, "*shape frequencies"]:
    """`exp(i w t)` for `times` in days and angular `frequencies` in radians per day.

    Phases are formed and reduced to one turn in float64, and only then rounded: ten years at a
    period of a minute is five million turns, of which float32 would lose the fraction.
    """
    angle = times.unsqueeze(-1) * frequencies
    turns = torch.round(angle.detach() / (2 * math.pi))
    reduced = (angle - turns * (2 * math.pi)).float()
    return torch.complex(reduced.cos(), reduced.sin())


def basis(
    at: Complex64[Tensor, "*shape frequencies"],
) -> Float[Tensor, "*shape basis"]:
    """The basis as real numbers: cosine and sine of each frequency side by side."""
    return torch.view_as_real(at).flatten(-2)


def rotate(
    coefficients: Float[Tensor, "*shape basis"],
    at: Complex64[Tensor, "*#shape frequencies"],
) -> Float[Tensor, "*shape basis"]:
    """Apply `R(T)` for the instants of `at`.

    `R(T)` is symmetric, so the same rotation turns a basis at event times into the basis at
    intervals, and read-out coefficients for intervals into coefficients for event times.
    """
    pairs = coefficients.reshape(*coefficients.shape[:-1], at.shape[-1], 2)
    return torch.view_as_real(torch.view_as_complex(pairs).conj() * at).flatten(-2)


def scaled_basis(frequencies: Float64[Tensor, " frequencies"]) -> ReadOut:
    """The read-out that keeps the basis as it is, scaled so that kernel(t, t) = 1."""
    count = len(frequencies)
    weight = torch.eye(2 * count, device=frequencies.device) / max(count, 1) ** 0.5
    return ReadOut(weight, weight.new_zeros(2 * count))
