"""What the provenance of a bundle tells of its training, as answers have it."""

import math
from dataclasses import replace
from typing import TypeVar

from app.models import description
from model.bundle import provenance
from model.bundle.kernels import KernelCurve, Rhythm, constant_term
from model.bundle.manifest import Manifest
from model.bundle.provenance import Part
from model.errors import ProvenanceError

MOST_EPOCHS = 10_000
"""Epochs that are told; the rest is in the manifest."""

_SAME_INTERVAL = 1e-3
"""Intervals were written with six digits."""

_SIX_DIGITS = 5e-6
"""Relative error of the numbers of initial kernels."""

Told = TypeVar("Told")


def read(part: Part[Told], manifest: Manifest, missing: list[description.Missing]) -> Told | None:
    """A part of the provenance; None, and why among `missing`, where it tells none."""
    try:
        return part.read(manifest)
    except ProvenanceError as error:
        missing.append(description.Missing(part.name, str(error)))
        return None


def epochs(
    manifest: Manifest, missing: list[description.Missing]
) -> tuple[description.Epoch, ...] | None:
    """How training went."""
    told = read(provenance.EPOCHS, manifest, missing)
    if told == ():
        kind = manifest.recommender.encoder.kind
        why = f"the model {kind!r} counts events once, in no epochs"
        missing.append(description.Missing("epochs", why))
    return (
        tuple(
            description.Epoch("fit", epoch.epoch, epoch.loss, epoch.validation, epoch.seconds)
            for epoch in told[-MOST_EPOCHS:]
        )
        if told
        else None
    )


def kernels(
    curves: tuple[KernelCurve, ...], manifest: Manifest, missing: list[description.Missing]
) -> tuple[description.KernelCurve, ...]:
    """Kernels as they are, and as they were before training."""
    before = read(provenance.INITIAL_KERNELS, manifest, missing) if curves else None
    by_place = {curve.place: curve for curve in before or ()}
    told = []
    for curve in curves:
        initial = by_place.get(curve.place)
        if initial is not None and not _is_comparable(initial, curve):
            why = f"the provenance has that of {curve.place!r} at other intervals"
            missing.append(description.Missing("initial_kernels", why))
            initial = None
        elif initial is None and before is not None:
            why = f"the provenance has none of {curve.place!r}"
            missing.append(description.Missing("initial_kernels", why))
        told.append(_to_response(curve, initial))
    return tuple(told)


def _is_comparable(initial: KernelCurve, curve: KernelCurve) -> bool:
    """Whether two curves are of the same intervals."""
    return len(initial.psi) == len(initial.interval_days) == len(curve.interval_days) and all(
        math.isclose(one, other, rel_tol=_SAME_INTERVAL)
        for one, other in zip(initial.interval_days, curve.interval_days, strict=True)
    )


def _to_response(curve: KernelCurve, initial: KernelCurve | None) -> description.KernelCurve:
    if initial is not None:
        initial = replace(initial, interval_days=curve.interval_days)
    return description.KernelCurve(
        place=curve.place,
        kind=curve.kind,
        is_stationary=curve.is_stationary,
        interval_days=curve.interval_days,
        psi=curve.psi,
        spectrum=_rhythms(curve.spectrum),
        initial_psi=None if initial is None else initial.psi,
        initial_spectrum=None if initial is None else _rhythms(initial.spectrum),
        constant=constant_term(curve),
        initial_constant=None
        if initial is None
        else constant_term(initial, relative_error=_SIX_DIGITS),
    )


def _rhythms(spectrum: tuple[Rhythm, ...] | None) -> tuple[description.Rhythm, ...] | None:
    if spectrum is None:
        return None
    power = sum(rhythm.power for rhythm in spectrum)
    return tuple(
        description.Rhythm(rhythm.period_days, rhythm.power, rhythm.power / power if power else 0.0)
        for rhythm in spectrum
    )
