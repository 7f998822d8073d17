"""The Fourier basis of time, and why a shift in time is only a rotation of it.

Every time encoding here reads one basis `b(x) = [cos(w x), sin(w x)]` of the interval `x` between
an event and the instant that is asked about. Since

    cos(w (T - t)) = cos(wT) cos(wt) + sin(wT) sin(wt)
    sin(w (T - t)) = sin(wT) cos(wt) - cos(wT) sin(wt)

the basis of an interval is `b(T - t) = R(T) b(t)` with a matrix `R(T)` that knows the query time
alone. Attention can therefore rotate its queries and its answers instead of building features for
every pair of instants.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor


class Phasor(NamedTuple):
    """Cosine and sine of every frequency at some instants."""

    cos: Float[Tensor, "*shape frequencies"]
    sin: Float[Tensor, "*shape frequencies"]

    def stacked(self) -> Float[Tensor, "*shape 2*frequencies"]:
        """The basis vector itself: all cosines, then all sines."""
        return torch.cat(self, dim=-1)


def phasor(
    times: Float64[Tensor, "*shape"], frequencies: Float64[Tensor, " frequencies"]
) -> Phasor:
    """The basis at `times` (days), for angular `frequencies` (radians per day).

    Phases are formed and reduced to one turn in float64, and only then rounded: ten years at a
    period of a minute is five million turns, of which float32 would lose the fraction.
    """
    angle = times.unsqueeze(-1) * frequencies
    turns = torch.round(angle.detach() / (2 * math.pi))
    reduced = (angle - turns * (2 * math.pi)).float()
    return Phasor(reduced.cos(), reduced.sin())


class ReadOut(NamedTuple):
    """The affine map from a Fourier basis to the features of an encoding.

    Attributes:
        weight: feature `f` is `weight[f] @ basis + offset[f]`.
        offset: the part that does not depend on time.
    """

    weight: Float[Tensor, "time_dim 2*frequencies"]
    offset: Float[Tensor, " time_dim"]


def scaled_basis(frequencies: Float64[Tensor, " frequencies"]) -> ReadOut:
    """The read-out that keeps the basis as it is, scaled so that kernel(t, t) = 1."""
    count = len(frequencies)
    weight = torch.eye(2 * count, device=frequencies.device) / count**0.5
    return ReadOut(weight, weight.new_zeros(2 * count))


def rotate(
    coefficients: Float[Tensor, "*shape 2*frequencies"], at: Phasor
) -> Float[Tensor, "*shape 2*frequencies"]:
    """Apply `R(T)` for the instants of `at`.

    `R(T)` is symmetric, so the same rotation turns a basis at event times into the basis at
    intervals, and read-out coefficients for intervals into coefficients for event times.
    """
    of_cos, of_sin = coefficients.chunk(2, dim=-1)
    return torch.cat((of_cos * at.cos + of_sin * at.sin, of_cos * at.sin - of_sin * at.cos), dim=-1)
