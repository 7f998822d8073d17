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
from jaxtyping import Float, Float64
from torch import Tensor

_TURN = torch.tensor(2 * math.pi, dtype=torch.float64)
"""A tensor, since the export to ONNX rounds numbers to float32."""


class BasisProjection(NamedTuple):
    """The affine map from the Fourier basis to the features of a time encoding.

    Attributes:
        weight: feature `f` is `weight[f] @ basis + bias[f]`.
        bias: the part of each feature that does not depend on time.
    """

    weight: Float[Tensor, "time_dim basis"]
    bias: Float[Tensor, " time_dim"]


def basis(
    times: Float64[Tensor, "*shape"], frequencies: Float64[Tensor, " frequencies"]
) -> Float[Tensor, "*shape basis"]:
    """Compute `b(t)` for `times` in days and angular `frequencies` in radians per day.

    Phases are computed and reduced to one turn in float64 before they are rounded to float32: ten
    years at a period of a minute are five million turns, of which float32 would lose the fraction.
    """
    return compute_phasors(times.unsqueeze(-1) * frequencies)


def compute_phasors(angles: Float64[Tensor, "*shape angles"]) -> Float[Tensor, "*shape basis"]:
    """Compute the cosine and the sine of each angle, side by side."""
    turns = torch.round(angles.detach() / _TURN)
    reduced = (angles - turns * _TURN).float()
    return torch.stack((reduced.cos(), reduced.sin()), dim=-1).flatten(-2)


def rotate(
    coefficients: Float[Tensor, "*shape basis"], at: Float[Tensor, "*#shape basis"]
) -> Float[Tensor, "*shape basis"]:
    """Apply the rotation `R(T)` of the instants whose basis is `at`.

    `R(T)` is symmetric: it turns a basis at event times into the basis at intervals, and a
    projection's coefficients for intervals into coefficients for event times.
    """
    if not at.shape[-1]:
        return coefficients
    return _multiply(at, split_pairs(coefficients), conjugated=True)


def conjugate(coefficients: Float[Tensor, "*shape basis"]) -> Float[Tensor, "*shape basis"]:
    """Negate the coefficients of sines."""
    cosines, sines = coefficients[..., 0::2], coefficients[..., 1::2]
    return torch.stack((cosines, -sines), dim=-1).flatten(-2)


class Rotation(NamedTuple):
    """The rotations `R(T)` of heads whose last coordinates belong to the basis.

    Two rotations are one complex product each, of all coordinates: those before the basis are
    multiplied by one. `conjugate` of a linear map spares the conjugation in `R(T)`.

    Or they are of the content, where an encoding rotates that instead of having features.

    Attributes:
        pairs: ones, then the phasors of the query times, as real numbers; None without a basis. Of
            the content: its phasors, then ones.
        of_content: whether the content is rotated, which is that of queries and keys alone.
    """

    pairs: Float[Tensor, "#batch queries #heads pairs 2"] | None = None
    of_content: bool = False

    @classmethod
    def build(
        cls, queries: Float[Tensor, "#batch queries basis"], ones: Float[Tensor, " width"]
    ) -> "Rotation":
        """Build the rotations from the basis of query times.

        Args:
            ones: of `pad_ones`.
        """
        if not queries.shape[-1]:
            return cls()
        padded = F.pad(queries, (len(ones) - queries.shape[-1], 0)) + ones
        return cls(split_pairs(padded.unsqueeze(2)))

    @classmethod
    def build_of_content(
        cls, phasors: Float[Tensor, "#batch instants #heads turned"], width: int
    ) -> "Rotation":
        """Build the rotations of heads of `width` coordinates of which the first ones rotate."""
        pairs = split_pairs(phasors)
        missing = width // 2 - pairs.shape[-2]
        if missing:
            ones = torch.ones_like(pairs[..., :1, :1]).expand(*pairs.shape[:-2], missing, 1)
            pairs = torch.cat((pairs, torch.cat((ones, torch.zeros_like(ones)), dim=-1)), dim=-2)
        return cls(pairs, of_content=True)

    def rotate(
        self, heads: Float[Tensor, "batch queries heads width"]
    ) -> Float[Tensor, "batch queries heads width"]:
        """Rotate heads that hold the conjugate of their coefficients, or their content."""
        return heads if self.pairs is None else _multiply(heads, self.pairs)

    def rotate_back(
        self, heads: Float[Tensor, "batch queries heads width"]
    ) -> Float[Tensor, "batch queries heads width"]:
        """Rotate sums of the basis to the conjugate of their values at the query times."""
        if self.pairs is None or self.of_content:
            return heads
        return _multiply(heads, self.pairs, conjugated=True)

    def split(
        self,
        queries: Float[Tensor, "batch heads queries width"],
        content: int,  # noqa: ARG002
    ) -> tuple[
        Float[Tensor, "batch heads queries width"], Float[Tensor, "batch heads queries none"]
    ]:
        """Split queries into what meets keys, which is all here, and what meets pairs."""
        return queries, queries[..., :0]

    def add_to_logits(
        self,
        logits: Float[Tensor, "batch heads queries len"],
        coefficients: Tensor,  # noqa: ARG002
    ) -> Float[Tensor, "batch heads queries len"]:
        """Return logits as they are: keys hold the basis."""
        return logits

    def append_sums(
        self,
        output: Float[Tensor, "batch heads queries width"],
        weights: Tensor,  # noqa: ARG002
    ) -> Float[Tensor, "batch heads queries width"]:
        """Return weighted sums of values as they are: values hold the basis."""
        return output


def pad_ones(queries: Float[Tensor, "*shape basis"], width: int) -> Float[Tensor, " total"]:
    """Build what a padded basis lacks to turn the coordinates before it by nothing: `[1, 0, ...]`.

    Args:
        width: of the coordinates before the basis, an even number.
    """
    ones = queries.new_zeros(width + queries.shape[-1])
    ones[:width:2] = 1.0
    return ones


def split_pairs(at: Float[Tensor, "*shape basis"]) -> Float[Tensor, "*shape frequencies 2"]:
    """Split a basis, or coefficients of one, into cosines and sines."""
    # Not -1: there may be no instant.
    return at.reshape(*at.shape[:-1], at.shape[-1] // 2, 2)


def _multiply(
    factors: Float[Tensor, "*#shape basis"],
    pairs: Float[Tensor, "*#shape frequencies 2"],
    *,
    conjugated: bool = False,
) -> Float[Tensor, "*shape basis"]:
    """Multiply by `pairs`, or their conjugates, as complex numbers."""
    if torch.compiler.is_exporting():
        # ONNX has no complex numbers, but an operator for the same product.
        if factors.ndim == 4 and pairs.shape[-3] > 1:
            # That turns all heads alike, so each of these is a position.
            merged = pairs.flatten(1, 2).unsqueeze(2)
            product = _multiply(factors.flatten(1, 2).unsqueeze(2), merged, conjugated=conjugated)
            return product.view(factors.shape)
        cosine, sine = pairs.flatten(1, -3).unbind(-1)
        product = torch.onnx.ops.rotary_embedding(
            factors.flatten(2),
            cosine,
            -sine if conjugated else sine,
            interleaved=True,
            num_heads=factors.shape[2] if factors.ndim > 3 else 1,
        )
        return product.view(factors.shape)
    phasors = torch.view_as_complex(pairs)
    phasors = phasors.conj() if conjugated else phasors
    product = torch.view_as_complex(split_pairs(factors)) * phasors
    return torch.view_as_real(product).flatten(-2)


def scaled_basis(frequencies: Float64[Tensor, " frequencies"]) -> BasisProjection:
    """Return the projection whose features are the basis, scaled so that kernel(t, t) = 1."""
    count = len(frequencies)
    weight = torch.eye(2 * count, device=frequencies.device) / max(count, 1) ** 0.5
    return BasisProjection(weight, weight.new_zeros(2 * count))
