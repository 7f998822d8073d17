"""One bundle in detail: its manifest, what it makes of time, and what came of its answers."""

import asyncio
import json
import math
from typing import Any, final

from app.context import AppContext
from app.errors import (
    DatabaseUnavailableError,
    ModelRefusedError,
    OverloadedError,
    StoreUnavailableError,
)
from app.models import description, provenance
from app.models.repository import ClickRepository
from app.models.service import ModelService, roles
from model.bundle.kernels import kernel_curves
from model.bundle.manifest import Manifest
from model.bundle.provenance import INDEX_RECALL, P95_SECONDS
from model.inference.predictor import Predictor

MOST_POINTS = 2000
"""Points of an attention profile that are told; the rest is in the bundle."""
Z_95 = 1.959964
"""Standard normal quantile of a two-sided 95 % interval."""


@final
class DetailService:
    """Describes one bundle, as far as it can be opened and the database answers."""

    def __init__(self, context: AppContext) -> None:
        self._context = context

    async def describe(self, version: str) -> description.ModelDetail:
        """One bundle.

        Raises:
            ModelNotFoundError: if no bundle of that version is published.
            ModelRefusedError: if its manifest was altered, or is of another format.
            StoreUnavailableError: if the store cannot be read.
            OverloadedError: if too many requests wait for the model already.
        """
        models = ModelService(self._context)
        manifest, is_current = await asyncio.to_thread(models.described, version)
        missing: list[description.Missing] = []
        kernels, profile, is_normalised = await self._of_time(version, manifest, missing)
        epochs = provenance.epochs(manifest, missing)
        index_recall = provenance.read(INDEX_RECALL, manifest, missing)
        p95_seconds = provenance.read(P95_SECONDS, manifest, missing)
        clicks = await self._clicks(version, missing)
        return description.ModelDetail(
            version=version,
            is_current=is_current,
            **roles(version, self._context.model_manager.active),
            manifest=json.loads(manifest.model_dump_json(), parse_int=_whole_number),
            kernels=kernels,
            attention_profile=profile,
            attention_is_normalised=is_normalised,
            epochs=epochs,
            index_recall=index_recall,
            p95_seconds=p95_seconds,
            clicks=clicks,
            missing=tuple(missing),
        )

    async def _of_time(
        self, version: str, manifest: Manifest, missing: list[description.Missing]
    ) -> tuple[
        tuple[description.KernelCurve, ...] | None,
        tuple[description.ProfilePoint, ...] | None,
        bool | None,
    ]:
        try:
            bundle = await self._context.model_manager.open_version(version)
        except (ModelRefusedError, StoreUnavailableError) as error:
            missing += (
                description.Missing("kernels", str(error)),
                description.Missing("attention_profile", str(error)),
            )
            return None, None, None
        curves = await self._context.infer(
            lambda: kernel_curves(bundle.bundle.recommender, manifest.data_window.days)
        )
        kernels = provenance.kernels(curves, manifest, missing)
        profile = _points(bundle)
        if not kernels:
            kind = bundle.bundle.manifest.recommender.encoder.kind
            why = f"the model {kind!r} has no time encoding whose kernel could be drawn"
            missing.append(description.Missing("kernels", why))
        if profile is None:
            why = "the bundle was published without one"
            missing.append(description.Missing("attention_profile", why))
        return kernels or None, profile, bundle.bundle.recommender.encoder.is_normalised

    async def _clicks(
        self, version: str, missing: list[description.Missing]
    ) -> description.Clicks | None:
        try:
            counted = await self._context.database.read(
                lambda session: ClickRepository(session).of(version)
            )
        except (DatabaseUnavailableError, OverloadedError) as error:
            missing.append(description.Missing("clicks", str(error)))
            return None
        shown, clicked = counted
        if shown == 0:
            return description.Clicks(shown, clicked, rate=None, rate_low=None, rate_high=None)
        low, high = wilson_interval(clicked, shown)
        return description.Clicks(shown, clicked, clicked / shown, rate_low=low, rate_high=high)


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % Wilson score interval of a binomial proportion.

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


def _whole_number(digits: str) -> int | float:
    """A number of a manifest; one that takes more than 64 bits is told as good as a float can."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)


def _points(bundle: Predictor) -> tuple[description.ProfilePoint, ...] | None:
    if bundle.bundle.attention_profile is None:
        return None
    rows = bundle.bundle.attention_profile.head(MOST_POINTS).iter_rows(named=True)
    return tuple(_to_point(**row) for row in rows)


def _to_point(
    *, mean: float | None, sd: float | None, count: int, **row: Any
) -> description.ProfilePoint:
    mean, sd = _finite(mean), _finite(sd)
    error = None if sd is None or count < 2 else sd / math.sqrt(count)
    return description.ProfilePoint(mean=mean, sd=sd, standard_error=error, count=count, **row)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
