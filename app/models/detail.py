"""The description of one bundle: manifest, time kernels, attention profile, training and clicks."""

import asyncio
import json
import math
from dataclasses import replace
from typing import Any, TypeVar

from app.context import AppContext
from app.errors import (
    DatabaseUnavailableError,
    ModelRefusedError,
    OverloadedError,
    ServiceError,
    StoreUnavailableError,
)
from app.models.repository import ClickRepository
from app.models.schemas import (
    Clicks,
    Epoch,
    KernelCurve,
    Missing,
    ModelDetail,
    ProfilePoint,
    Rhythm,
)
from app.models.service import list_roles, read_manifest
from model.bundle import kernels, provenance
from model.bundle.manifest import Manifest
from model.bundle.provenance import ProvenanceEntry
from model.errors import ProvenanceError
from model.inference.predictor import Predictor
from model.inference.steps import run_at_once
from model.inference.workload import Workload

MOST_POINTS = 2000
"""Most points of an attention profile in a response; the bundle holds all."""
MOST_EPOCHS = 10_000
"""Most epochs in a response; the manifest holds all."""
Z_95 = 1.959964
"""Standard normal quantile of a two-sided 95 % interval."""

_INTERVAL_TOLERANCE = 1e-3
"""Relative; the provenance holds intervals with six digits."""
_INITIAL_KERNEL_ERROR = 5e-6
"""Relative error of the numbers of initial kernels, which have six digits."""

Value = TypeVar("Value")


async def describe_model(context: AppContext, version: str) -> ModelDetail:
    """Describe one bundle; parts that cannot be read are null and listed in `missing`.

    Raises:
        ModelNotFoundError: if no bundle of that version is published.
        ModelRefusedError: if its manifest was altered, or is of another format.
        StoreUnavailableError: if the store cannot be read.
        OverloadedError: if too many requests wait for the model, or for descriptions and lists.
    """
    opened = await _open(context, version)
    async with context.overviews.take_turn():
        return await _describe(context, version, opened)


async def _open(context: AppContext, version: str) -> Predictor | ServiceError:
    """Open a version, which may take seconds, or return why it does not open."""
    try:
        return await context.model_manager.open_version(version)
    except (ModelRefusedError, StoreUnavailableError) as error:
        return error


async def _describe(
    context: AppContext, version: str, opened: Predictor | ServiceError
) -> ModelDetail:
    manifest, is_current = await asyncio.to_thread(read_manifest, context.store, version)
    missing: list[Missing] = []
    curves, profile, is_normalised = await _read_predictor(context, opened, manifest, missing)
    epochs = _read_epochs(manifest, missing)
    index_recall = _read_part(provenance.INDEX_RECALL, manifest, missing)
    p95_seconds = _read_part(provenance.P95_SECONDS, manifest, missing)
    clicks = await _count_clicks(context, version, missing)
    return ModelDetail(
        version=version,
        is_current=is_current,
        **list_roles(version, context.model_manager.active),
        manifest=json.loads(manifest.model_dump_json(), parse_int=_parse_integer),
        kernels=curves,
        attention_profile=profile,
        attention_is_normalised=is_normalised,
        epochs=epochs,
        index_recall=index_recall,
        p95_seconds=p95_seconds,
        clicks=clicks,
        missing=tuple(missing),
    )


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Compute the 95 % Wilson score interval of a binomial proportion.

    Args:
        successes: 0 to `trials`.
        trials: at least 1.
    """
    share = successes / trials
    scale = 1 + Z_95**2 / trials
    center = (share + Z_95**2 / (2 * trials)) / scale
    variance = share * (1 - share) / trials + Z_95**2 / (4 * trials**2)
    half_width = Z_95 / scale * math.sqrt(variance)
    return max(0.0, center - half_width), min(1.0, center + half_width)


async def _read_predictor(
    context: AppContext,
    predictor: Predictor | ServiceError,
    manifest: Manifest,
    missing: list[Missing],
) -> tuple[tuple[KernelCurve, ...] | None, tuple[ProfilePoint, ...] | None, bool | None]:
    """Read kernels, attention profile and whether attention is normalised, of an open bundle."""
    if isinstance(predictor, ServiceError):
        why = str(predictor)
        missing += (Missing("kernels", why), Missing("attention_profile", why))
        return None, None, None
    computed = await context.infer(
        predictor, Workload(), run_at_once(lambda: predictor.kernel_curves)
    )
    curves = await asyncio.to_thread(_to_kernel_responses, computed, manifest, missing)
    profile = _to_profile_points(predictor)
    if not curves:
        kind = predictor.bundle.manifest.recommender.encoder.kind
        why = f"the model {kind!r} has no time encoding whose kernel could be drawn"
        missing.append(Missing("kernels", why))
    if profile is None:
        missing.append(Missing("attention_profile", "the bundle was published without one"))
    return curves or None, profile, predictor.bundle.recommender.encoder.is_normalised


async def _count_clicks(context: AppContext, version: str, missing: list[Missing]) -> Clicks | None:
    try:
        counts = await context.database.read(
            lambda session: ClickRepository(session).count(version)
        )
    except (DatabaseUnavailableError, OverloadedError) as error:
        missing.append(Missing("clicks", str(error)))
        return None
    if counts is None:
        why = "the impressions from before an upgrade are still being counted; ask again later"
        missing.append(Missing("clicks", why))
        return None
    shown, clicked = counts
    if shown == 0:
        return Clicks(shown, clicked, rate=None, rate_low=None, rate_high=None)
    low, high = wilson_interval(clicked, shown)
    return Clicks(shown, clicked, clicked / shown, rate_low=low, rate_high=high)


def _read_part(
    part: ProvenanceEntry[Value], manifest: Manifest, missing: list[Missing]
) -> Value | None:
    """Read a part of the provenance; if that fails, return None and add the reason to `missing`."""
    try:
        return part.read(manifest)
    except ProvenanceError as error:
        missing.append(Missing(part.name, str(error)))
        return None


def _read_epochs(manifest: Manifest, missing: list[Missing]) -> tuple[Epoch, ...] | None:
    epochs = _read_part(provenance.EPOCHS, manifest, missing)
    if epochs == ():
        kind = manifest.recommender.encoder.kind
        why = f"the model {kind!r} counts events once, in no epochs"
        missing.append(Missing("epochs", why))
    if not epochs:
        return None
    return tuple(
        Epoch("fit", epoch.epoch, epoch.loss, epoch.validation, epoch.seconds)
        for epoch in epochs[-MOST_EPOCHS:]
    )


def _to_kernel_responses(
    curves: tuple[kernels.KernelCurve, ...], manifest: Manifest, missing: list[Missing]
) -> tuple[KernelCurve, ...]:
    """Pair each kernel as it is now with the one before training."""
    initial_curves = _read_part(provenance.INITIAL_KERNELS, manifest, missing) if curves else None
    by_place = {curve.place: curve for curve in initial_curves or ()}
    responses = []
    for curve in curves:
        initial = by_place.get(curve.place)
        if initial is not None and not _is_comparable(initial, curve):
            why = f"the provenance has that of {curve.place!r} at other intervals"
            missing.append(Missing("initial_kernels", why))
            initial = None
        elif initial is None and initial_curves is not None:
            why = f"the provenance has none of {curve.place!r}"
            missing.append(Missing("initial_kernels", why))
        responses.append(_to_kernel_response(curve, initial))
    return tuple(responses)


def _is_comparable(initial: kernels.KernelCurve, curve: kernels.KernelCurve) -> bool:
    """Return whether two curves are evaluated at the same intervals."""
    return len(initial.psi) == len(initial.interval_days) == len(curve.interval_days) and all(
        math.isclose(one, other, rel_tol=_INTERVAL_TOLERANCE)
        for one, other in zip(initial.interval_days, curve.interval_days, strict=True)
    )


def _to_kernel_response(
    curve: kernels.KernelCurve, initial: kernels.KernelCurve | None
) -> KernelCurve:
    if initial is not None:
        initial = replace(initial, interval_days=curve.interval_days)
    return KernelCurve(
        place=curve.place,
        kind=curve.kind,
        is_stationary=curve.is_stationary,
        interval_days=curve.interval_days,
        psi=curve.psi,
        spectrum=_to_spectrum_response(curve.spectrum),
        initial_psi=None if initial is None else initial.psi,
        initial_spectrum=None if initial is None else _to_spectrum_response(initial.spectrum),
        constant=kernels.compute_constant_term(curve),
        initial_constant=None
        if initial is None
        else kernels.compute_constant_term(initial, relative_error=_INITIAL_KERNEL_ERROR),
    )


def _to_spectrum_response(
    spectrum: tuple[kernels.Rhythm, ...] | None,
) -> tuple[Rhythm, ...] | None:
    if spectrum is None:
        return None
    power = sum(rhythm.power for rhythm in spectrum)
    return tuple(
        Rhythm(rhythm.period_days, rhythm.power, rhythm.power / power if power else 0.0)
        for rhythm in spectrum
    )


def _to_profile_points(predictor: Predictor) -> tuple[ProfilePoint, ...] | None:
    if predictor.bundle.attention_profile is None:
        return None
    rows = predictor.bundle.attention_profile.head(MOST_POINTS).iter_rows(named=True)
    return tuple(_to_profile_point(**row) for row in rows)


def _to_profile_point(
    *, mean: float | None, sd: float | None, count: int, **row: Any
) -> ProfilePoint:
    mean, sd = _drop_nonfinite(mean), _drop_nonfinite(sd)
    error = None if sd is None or count < 2 else sd / math.sqrt(count)
    return ProfilePoint(mean=mean, sd=sd, standard_error=error, count=count, **row)


def _drop_nonfinite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _parse_integer(digits: str) -> int | float:
    """Parse an integer of a manifest; a float if it needs more than 64 bits."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)
