"""The kernels of a model's time encodings as curves over the interval, and their spectra."""

import math
from dataclasses import dataclass

import torch
from pydantic import FiniteFloat

from model.interfaces import Spectrum, TimeEncoding, TimeKernel
from model.recommender import Recommender
from model.time_encodings.calendar import CalendarEncoding

_POINTS = 128
_SHORTEST_DAYS = 1 / 86_400
_SUM_TOLERANCE = 1e-4
"""Relative to the largest |psi|: kernels are computed in single precision."""
_LONGEST_PERIOD_DAYS = 365.25 * 1_000
"""Frequencies with longer periods are left out: over any data they are constants or lines."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The power of one frequency in a kernel.

    Attributes:
        period_days: of its cosine.
        power: the mean of its squared coefficients.
    """

    period_days: FiniteFloat
    power: FiniteFloat


@dataclass(frozen=True, slots=True)
class KernelCurve:
    """psi(interval) = K(interval, 0): the similarity of an event that long ago and one now.

    Attributes:
        place: the name of the time encoding's module in the recommender.
        kind: the kind of time encoding.
        is_stationary: whether K(t, t') depends on t - t' alone; if not, the intervals of the curve
            begin at the first event of the training data.
        interval_days: from a second to the span of the training data, evenly spaced in logarithm.
        psi: the curve at these intervals.
        spectrum: the kernel by period, strongest first; None where it has none.
    """

    place: str
    kind: str
    is_stationary: bool
    interval_days: tuple[FiniteFloat, ...]
    psi: tuple[FiniteFloat, ...]
    spectrum: tuple[Rhythm, ...] | None


@torch.inference_mode()
def compute_kernel_curves(recommender: Recommender, span_days: float) -> tuple[KernelCurve, ...]:
    """Compute the kernel of every time encoding of a recommender on the CPU.

    Encodings of the position alone, and encoders without a kernel, have no curve.

    Args:
        span_days: of the training data, as `DataWindow.days` has it.
    """
    span = max(span_days, 10 * _SHORTEST_DAYS)
    intervals = torch.logspace(
        math.log10(_SHORTEST_DAYS), math.log10(span), _POINTS, dtype=torch.float64
    )
    curves = []
    combined = {
        id(module.learned)
        for module in recommender.modules()
        if isinstance(module, CalendarEncoding)
    }
    for name, module in recommender.named_modules():
        if id(module) in combined:
            continue
        if isinstance(module, TimeEncoding) and module.domain == "time":
            psi = module.kernel(intervals, torch.zeros_like(intervals))
            spectrum = _to_rhythms(module.spectrum())
        elif isinstance(module, TimeKernel):
            psi, spectrum = module(intervals, torch.zeros_like(intervals)), None
        else:
            continue
        curves.append(
            KernelCurve(
                place=name,
                kind=type(module).__module__.rpartition(".")[2],
                is_stationary=module.is_stationary,
                interval_days=tuple(intervals.tolist()),
                psi=tuple(psi.tolist()),
                spectrum=spectrum,
            )
        )
    return tuple(curves)


def compute_constant_term(curve: KernelCurve, *, relative_error: float = 0.0) -> float | None:
    """Compute the constant c in psi(x) = c + sum of power * cos(2 pi x / period).

    Args:
        relative_error: of the numbers in `curve`, such as 5e-6 for six decimal digits.

    Returns:
        None where the kernel is not stationary, or where the sum does not reproduce `psi` at every
        interval of the curve.
    """
    if not curve.is_stationary or curve.spectrum is None:
        return None
    psi = torch.tensor(curve.psi, dtype=torch.float64)
    power = torch.tensor([rhythm.power for rhythm in curve.spectrum], dtype=torch.float64)
    period = torch.tensor([rhythm.period_days for rhythm in curve.spectrum], dtype=torch.float64)
    intervals = torch.tensor(curve.interval_days, dtype=torch.float64)
    phase = 2 * math.pi * intervals[:, None] / period  # [intervals, rhythms]
    rest = psi - phase.cos() @ power
    # cos moves by at most 2, however far an inexact period shifts its phase.
    shift = (phase.abs() * relative_error).clamp(max=2) @ power
    allowed = (_SUM_TOLERANCE + relative_error) * psi.abs().max() + shift
    if not bool(((rest - rest[0]).abs() <= allowed).all()):
        return None
    return float(rest[0])


def _to_rhythms(spectrum: Spectrum) -> tuple[Rhythm, ...]:
    rhythms = [
        Rhythm(2 * math.pi / frequency, power)
        for frequency, power in zip(
            spectrum.frequencies.tolist(), spectrum.power.tolist(), strict=True
        )
        if abs(frequency) * _LONGEST_PERIOD_DAYS > 2 * math.pi
    ]
    return tuple(sorted(rhythms, key=lambda rhythm: (-rhythm.power, rhythm.period_days)))
