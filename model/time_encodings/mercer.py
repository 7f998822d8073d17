"""Mercer encodings: truncated Fourier series of periodic kernels (Xu et al. 2019)."""

import math
from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from model.config import Config
from model.interfaces import TimeEncoding
from model.layers.fourier_basis import BasisProjection
from model.layers.periods import DAYS_PER_SECOND, Periods, log_uniform, paper_spacing


class MercerConfig(Config):
    """Harmonics of learned base periods."""

    kind: Literal["mercer"] = "mercer"
    form: Literal["concat", "sum", "flex"] = "concat"
    """concat: the paper's, a positive definite kernel; sum: that of the authors' code; flex: also
    from their code, with a separate period for every harmonic."""
    periods: PositiveInt = 16
    """Base periods, each with `degree` harmonics."""
    degree: PositiveInt = 4
    """Harmonics per period."""
    shortest_period: PositiveFloat = 1 / 24
    """Shortest initial period, in days; 1/24 is an hour."""
    longest_period: PositiveFloat = 730.0
    """Longest initial period, in days."""
    spacing: Literal["log_uniform", "paper"] = "log_uniform"
    """How the initial periods are spaced; paper: nearly all of them near the shortest."""
    learn_periods: bool = True
    """Whether training changes the periods."""

    @classmethod
    def from_paper_code(cls, dim: int, degree: int) -> "MercerConfig":
        """Use the authors' initial values: `dim` features, `j 10^0` to `j 10^-8` rad per second."""
        half_turn = math.pi * DAYS_PER_SECOND
        return cls(
            form="sum",
            periods=dim,
            degree=degree,
            shortest_period=half_turn,
            longest_period=half_turn * 1e8,
        )

    def build(self) -> "MercerConcat | MercerSum | MercerFlex":
        """Build the module."""
        spacing = log_uniform if self.spacing == "log_uniform" else paper_spacing
        log_periods = spacing(
            count=self.periods, shortest=self.shortest_period, longest=self.longest_period
        )
        if self.form == "flex":
            return MercerFlex(log_periods, degree=self.degree, learned=self.learn_periods)
        base_periods = Periods(log_periods, learned=self.learn_periods)
        if self.form == "concat":
            return MercerConcat(base_periods, degree=self.degree)
        return MercerSum(base_periods, degree=self.degree)


def _harmonics(periods: Tensor, degree: int) -> Tensor:
    """Compute `j pi / period` for j = 1..degree, the harmonics of one period side by side."""
    orders = torch.arange(1, degree + 1, dtype=periods.dtype, device=periods.device)
    return (torch.pi * orders / periods[:, None]).flatten()


@final
class MercerConcat(TimeEncoding):
    """Fourier features of one periodic kernel per period, side by side.

    Each period contributes `[sqrt(c_0), sqrt(c_j) cos(j pi x / period), sqrt(c_j) sin(...)]` for
    j = 1..degree, so the inner product of two encodings is a stationary positive definite kernel.

    Shape: intervals (*) -> features (*, periods * (2 * degree + 1))

    Example:
        >>> encoding = MercerConfig(periods=4, degree=3).build()
        >>> encoding(torch.zeros(2, 10, dtype=torch.float64)).shape
        torch.Size([2, 10, 28])

    Paper: Xu et al. 2019, "Self-attention with Functional Time Representation Learning", eq. 6-7.
    DIFFERS(paper): cosine and sine of one harmonic share a coefficient, which makes the kernel
        stationary; periods start log-uniform unless `spacing` is "paper", the sequence of section
        5; coefficients are positive by a softplus.
    DIFFERS(code): harmonics are concatenated, as in the paper, where the code sums them.
    """

    is_stationary = True

    def __init__(self, base_periods: Periods, *, degree: int) -> None:
        super().__init__()
        periods = len(base_periods.log_periods)
        self.periods, self.degree = periods, degree
        self.dim = periods * (2 * degree + 1)
        self.base_periods = base_periods
        # softplus(raw) = 1 / (features of one kind), so that kernel(t, t) starts at about one.
        coefficient = 1 / (periods * (degree + 1))
        self.raw_coefficients = nn.Parameter(
            torch.full((periods, degree + 1), math.log(math.expm1(coefficient)))
        )

    def coefficients(self) -> Tensor:
        """Compute c_0..c_degree of every period; positive."""
        return F.softplus(self.raw_coefficients)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, in radians per day."""
        return _harmonics(self.base_periods(), self.degree)

    def basis_projection(self) -> BasisProjection:
        """Put square roots of the coefficients on the diagonal; constants are the bias."""
        root = self.coefficients().sqrt()
        scale = root[:, 1:].flatten().repeat_interleave(2)
        weight = torch.cat((scale.new_zeros(self.periods, len(scale)), torch.diag(scale)))
        return BasisProjection(weight, torch.cat((root[:, 0], torch.zeros_like(scale))))


def _block_diagonal(rows: Tensor) -> Tensor:
    """Put each row into its own block of columns: rows, width -> rows, rows * width."""
    return (torch.eye(len(rows), device=rows.device)[:, :, None] * rows).flatten(1)


@final
class MercerSum(TimeEncoding):
    """One learned Fourier series per period: the form of the authors' code.

    Feature i is `b_i + sum_j C_ij cos(j pi x / period_i) + S_ij sin(j pi x / period_i)` with
    free coefficients, so the inner product of two encodings need not be a stationary kernel.

    Shape: intervals (*) -> features (*, periods)

    Example:
        >>> encoding = MercerConfig(form="sum", periods=4, degree=3).build()
        >>> encoding(torch.zeros(2, dtype=torch.float64)).shape
        torch.Size([2, 4])

    Paper: Xu et al. 2019, as coded by its authors (`basis_time_encode`).
    DIFFERS(code): frequencies are `j pi / period` in days, as in the paper; the code uses
        `j / period` in seconds.
    """

    is_stationary = False

    def __init__(self, base_periods: Periods, *, degree: int) -> None:
        super().__init__()
        self.dim, self.degree = len(base_periods.log_periods), degree
        self.base_periods = base_periods
        self.coefficients = nn.Parameter(torch.empty(self.dim, 2 * degree))
        self.bias = nn.Parameter(torch.zeros(self.dim))
        nn.init.xavier_uniform_(self.coefficients)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, in radians per day."""
        return _harmonics(self.base_periods(), self.degree)

    def basis_projection(self) -> BasisProjection:
        """Sum, per feature, the harmonics of its own period."""
        return BasisProjection(_block_diagonal(self.coefficients), self.bias)


@final
class MercerFlex(TimeEncoding):
    """Learned Fourier series in which every harmonic has its own learned period.

    Feature i is `b_i + sum_j C_ij cos(pi x / q_ij) + S_ij sin(pi x / q_ij)`; the `q_ij` start at
    the harmonics `period_i / j`.

    Shape: intervals (*) -> features (*, periods)

    Example:
        >>> encoding = MercerConfig(form="flex", periods=4, degree=3).build()
        >>> encoding(torch.zeros(2, dtype=torch.float64)).shape
        torch.Size([2, 4])

    Paper: Xu et al. 2019, as coded by its authors (`basis_time_encode_flex`).
    DIFFERS(code): frequencies start at `j pi / period` in days; the code's start at
        `j / (2 pi period)` in seconds.
    """

    is_stationary = False

    def __init__(
        self, log_periods: Float64[Tensor, " periods"], *, degree: int, learned: bool
    ) -> None:
        super().__init__()
        self.dim, self.degree = len(log_periods), degree
        orders = torch.arange(1, degree + 1, dtype=torch.float64)
        self.harmonic_periods = Periods(
            (log_periods[:, None] - orders.log()).flatten(), learned=learned
        )
        self.coefficients = nn.Parameter(torch.empty(self.dim, 2 * degree))
        self.bias = nn.Parameter(torch.zeros(self.dim))
        nn.init.xavier_uniform_(self.coefficients)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Compute the angular frequencies, in radians per day: pi per period, as in `MercerSum`."""
        return self.harmonic_periods.frequencies() / 2

    def basis_projection(self) -> BasisProjection:
        """Sum, per feature, its own harmonics."""
        return BasisProjection(_block_diagonal(self.coefficients), self.bias)
