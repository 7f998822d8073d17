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
from model.layers.fourier_basis import ReadOut
from model.layers.periods import SECOND, Periods, crowded_at_the_shortest, log_uniform


class MercerConfig(Config):
    """Which of the three Mercer encodings, over which periods (days)."""

    kind: Literal["mercer"] = "mercer"
    form: Literal["concat", "sum", "flex"] = "concat"
    """concat: the paper's, a positive definite kernel; sum: the authors' code's; flex: theirs too,
    with a period for every harmonic."""
    periods: PositiveInt = 16
    degree: PositiveInt = 4
    """Harmonics kept of each period."""
    shortest_period: PositiveFloat = 1 / 24
    longest_period: PositiveFloat = 730.0
    spacing: Literal["log_uniform", "paper"] = "log_uniform"
    """How the periods start between the two; paper: nearly all of them near the shortest."""
    learn_periods: bool = True

    @classmethod
    def paper_code(cls, dim: int, degree: int) -> "MercerConfig":
        """As the authors start it: `dim` features, `j 10^0` to `j 10^-8` radians per second."""
        half_turn = math.pi * SECOND
        return cls(
            form="sum",
            periods=dim,
            degree=degree,
            shortest_period=half_turn,
            longest_period=half_turn * 1e8,
        )

    def build(self) -> "MercerConcat | MercerSum | MercerFlex":
        """The module this describes."""
        spread = log_uniform if self.spacing == "log_uniform" else crowded_at_the_shortest
        start = spread(
            count=self.periods, shortest=self.shortest_period, longest=self.longest_period
        )
        if self.form == "flex":
            return MercerFlex(start, degree=self.degree, learned=self.learn_periods)
        base_periods = Periods(start, learned=self.learn_periods)
        if self.form == "concat":
            return MercerConcat(base_periods, degree=self.degree)
        return MercerSum(base_periods, degree=self.degree)


def _harmonics(periods: Tensor, degree: int) -> Tensor:
    """`j pi / period` for j = 1..degree, the harmonics of one period side by side."""
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
    DIFFERS(paper): cosine and sine of one harmonic share a coefficient, which the kernel needs to
        be stationary; unless `spacing` says so, periods do not start on the sequence of section 5.
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
        """c_0..c_degree of every period, positive."""
        return F.softplus(self.raw_coefficients)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day."""
        return _harmonics(self.base_periods(), self.degree)

    def read_out(self) -> ReadOut:
        """Square roots of the coefficients on the diagonal; the constant feature is the offset."""
        root = self.coefficients().sqrt()
        scale = root[:, 1:].flatten().repeat_interleave(2)
        weight = torch.cat((scale.new_zeros(self.periods, len(scale)), torch.diag(scale)))
        return ReadOut(weight, torch.cat((root[:, 0], torch.zeros_like(scale))))


def _block_diagonal(rows: Tensor) -> Tensor:
    """rows, width -> rows, rows * width: each row in columns of its own."""
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
        """Angular frequencies, in radians per day."""
        return _harmonics(self.base_periods(), self.degree)

    def read_out(self) -> ReadOut:
        """Every feature reads the harmonics of its own period only."""
        return ReadOut(_block_diagonal(self.coefficients), self.bias)


@final
class MercerFlex(TimeEncoding):
    """Learned Fourier series whose harmonics may leave their period: every one has its own.

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

    def __init__(self, start: Float64[Tensor, " periods"], *, degree: int, learned: bool) -> None:
        super().__init__()
        self.dim, self.degree = len(start), degree
        orders = torch.arange(1, degree + 1, dtype=torch.float64)
        self.harmonic_periods = Periods((start[:, None] - orders.log()).flatten(), learned=learned)
        self.coefficients = nn.Parameter(torch.empty(self.dim, 2 * degree))
        self.bias = nn.Parameter(torch.zeros(self.dim))
        nn.init.xavier_uniform_(self.coefficients)

    def frequencies(self) -> Float64[Tensor, " frequencies"]:
        """Angular frequencies, in radians per day: half a turn per period, as in `MercerSum`."""
        return self.harmonic_periods.frequencies() / 2

    def read_out(self) -> ReadOut:
        """Every feature reads the harmonics of its own."""
        return ReadOut(_block_diagonal(self.coefficients), self.bias)
