"""The damped basis of pairs of instants, and its products in attention.

Each pair of a Fourier basis (`fourier_basis`) decays by `exp(-l x)`. That factor of two instants is
a product as well, `exp(-l T) exp(l t)`, but one that floating point does not hold: at a rate per
second, `exp(l t)` overflows within a quarter of an hour, and no common origin serves all positions
of a causal pass. So the damped basis is computed for every pair of an event and a query.

Its gradients are not: the derivative of an element by its rate is the element times `-x`, by its
frequency `x` times the other of its pair. So a product's gradient by both follows from the same
product with intervals as weights, and no gradient of a pair is ever stored.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.autograd.function import once_differentiable

from model.layers.fourier_basis import basis, split_pairs

_LARGEST_EXPONENT = -math.log(1e-12)
"""Nothing decays below 1e-12: there are no denormal numbers, which are slow."""


def compute_decay(
    intervals: Float64[Tensor, "*shape"], rates: Float64[Tensor, " frequencies"]
) -> Float[Tensor, "*shape frequencies"]:
    """Compute `exp(-rate interval)` for rates per day, one at negative intervals."""
    exponents = intervals.float().unsqueeze(-1) * rates.float()
    return torch.exp(-exponents.clamp(min=0.0).clamp(max=_LARGEST_EXPONENT))


def damp(
    undamped: Float[Tensor, "*shape basis"],
    intervals: Float64[Tensor, "*shape"],
    rates: Float64[Tensor, " frequencies"],
) -> Float[Tensor, "*shape basis"]:
    """Multiply the basis at `intervals` by the decay of each frequency."""
    return undamped * compute_decay(intervals, rates).repeat_interleave(2, dim=-1)


class DampedBasis(NamedTuple):
    """The damped basis of every interval from an event to a query time, in place of `Rotation`.

    Queries may be one for all positions that share a query time.

    Attributes:
        values: its conjugate, which `composed_maps` expects of what is not turned; no gradients.
        intervals: days, as numbers of single precision.
        frequencies: radians per day.
        rates: per day.
    """

    values: Float[Tensor, "batch queries len damped"]
    intervals: Float[Tensor, "batch queries len"]
    frequencies: Float64[Tensor, " frequencies"]
    rates: Float64[Tensor, " frequencies"]

    @classmethod
    def build(
        cls,
        times: Float64[Tensor, "#batch len"],
        query_times: Float64[Tensor, "batch queries"],
        frequencies: Float64[Tensor, " frequencies"],
        rates: Float64[Tensor, " frequencies"],
    ) -> "DampedBasis":
        """Compute the basis of all pairs."""
        with torch.no_grad():
            intervals = query_times.unsqueeze(2) - times.unsqueeze(1)
            decay = compute_decay(intervals, rates).unsqueeze(-1)
            events, queries = (
                split_pairs(basis(instants, frequencies)) for instants in (times, query_times)
            )
            turned = _turn(events.unsqueeze(1), queries.unsqueeze(2))
            return cls((turned * decay).flatten(-2), intervals.float(), frequencies, rates)

    def rotate(self, heads: Tensor) -> Tensor:
        """Return heads as they are: the basis is of intervals already."""
        return heads

    def rotate_back(self, heads: Tensor) -> Tensor:
        """Return heads as they are."""
        return heads

    def split(
        self, queries: Float[Tensor, "batch heads queries width"], content: int
    ) -> tuple[
        Float[Tensor, "batch heads queries content"], Float[Tensor, "batch heads queries damped"]
    ]:
        """Split queries into what meets keys and the coefficients of the basis."""
        of_keys, coefficients = queries.tensor_split((content,), dim=-1)
        return of_keys, coefficients

    def add_to_logits(
        self,
        logits: Float[Tensor, "batch heads queries len"],
        coefficients: Float[Tensor, "batch heads queries damped"],
    ) -> Float[Tensor, "batch heads queries len"]:
        """Add the products of coefficients and basis to those of queries and keys."""
        return logits + self.multiply(coefficients)

    def append_sums(
        self,
        output: Float[Tensor, "batch heads queries content"],
        weights: Float[Tensor, "batch heads queries len"],
    ) -> Float[Tensor, "batch heads queries width"]:
        """Append the weighted sums of the basis to those of values."""
        return torch.cat((output, self.sum(weights)), dim=-1)

    def map(self, choose: Callable[[Tensor], Tensor]) -> "DampedBasis":
        """Apply to both tensors of pairs what chooses some of these."""
        return self._replace(values=choose(self.values), intervals=choose(self.intervals))

    def multiply(
        self, coefficients: Float[Tensor, "batch heads positions damped"]
    ) -> Float[Tensor, "batch heads positions len"]:
        """Multiply the coefficients of each query with the basis of its intervals."""
        if not torch.is_grad_enabled():
            return _multiply(coefficients, self.values.transpose(-1, -2))
        product: Tensor = _Products.apply(coefficients, *self, False)  # type: ignore[no-untyped-call]
        return product

    def sum(
        self, weights: Float[Tensor, "batch heads positions len"]
    ) -> Float[Tensor, "batch heads positions damped"]:
        """Sum the basis of each query's intervals with weights."""
        if not torch.is_grad_enabled():
            return _multiply(weights, self.values)
        sums: Tensor = _Products.apply(weights, *self, True)  # type: ignore[no-untyped-call]
        return sums


@final
class _Products(torch.autograd.Function):
    """Products with the basis by query: over the basis, or over the events (`sums`)."""

    @staticmethod
    def forward(
        ctx: Any,
        left: Tensor,
        values: Tensor,
        intervals: Tensor,
        _frequencies: Tensor,
        _rates: Tensor,
        sums: bool,
    ) -> Tensor:
        ctx.sums = sums
        ctx.save_for_backward(left, values, intervals)
        return _multiply(left, values if sums else values.transpose(-1, -2))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        left, values, intervals = ctx.saved_tensors
        of_left: Tensor | None = None
        if ctx.needs_input_grad[0]:
            of_left = _multiply(gradient, values.transpose(-1, -2) if ctx.sums else values)
        if not any(ctx.needs_input_grad[3:5]):
            return of_left, None, None, None, None, None
        # Of the coefficients and of the events, whichever is which.
        coefficients, events = (gradient, left) if ctx.sums else (left, gradient)
        weighted = _multiply(events * intervals.unsqueeze(1), values)
        cosine, sine = split_pairs(coefficients).unbind(-1)
        weighted_cosine, weighted_sine = split_pairs(weighted).unbind(-1)
        over = (0, 1, 2)
        of_rates = -(cosine * weighted_cosine + sine * weighted_sine).sum(over)
        of_frequencies = (cosine * weighted_sine - sine * weighted_cosine).sum(over)
        return of_left, None, None, of_frequencies.double(), of_rates.double(), None


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    """Multiply each query's rows of all heads with a matrix of the query."""
    return (left.transpose(1, 2) @ right).transpose(1, 2)


def _turn(
    events: Float[Tensor, "#batch 1 len frequencies 2"],
    queries: Float[Tensor, "batch queries 1 frequencies 2"],
) -> Float[Tensor, "batch queries len frequencies 2"]:
    """Compute the conjugate of the basis of all intervals from that of the instants."""
    if not torch.compiler.is_exporting():
        turned = torch.view_as_complex(events) * torch.view_as_complex(queries).conj()
        return torch.view_as_real(turned)
    (event_cosine, event_sine), (cosine, sine) = events.unbind(-1), queries.unbind(-1)
    return torch.stack(
        (event_cosine * cosine + event_sine * sine, event_sine * cosine - event_cosine * sine),
        dim=-1,
    )
