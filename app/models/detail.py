"""One bundle in detail: its manifest, what it makes of time, and what came of its answers."""

import asyncio
import math
from typing import final

from app.errors import (
    DatabaseUnavailableError,
    ModelRefusedError,
    OverloadedError,
    StoreUnavailableError,
)
from app.models import schemas
from app.models.repository import ClickRepository
from app.models.service import ModelService, roles
from app.parts import Parts
from model.bundle.bundle import Bundle
from model.bundle.kernels import KernelCurve, kernel_curves

MOST_POINTS = 2000
"""Points of an attention profile that are told; the rest is in the bundle."""


@final
class DetailService:
    """Describes one bundle, as far as it can be opened and the database answers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def describe(self, version: str) -> schemas.ModelDetail:
        """One bundle.

        Raises:
            ModelNotFoundError: if no bundle of that version is published.
            ModelRefusedError: if its manifest was altered, or is of another format.
            StoreUnavailableError: if the store cannot be read.
            OverloadedError: if too many requests wait for the model already.
        """
        models = ModelService(self._parts)
        manifest, is_current = await asyncio.to_thread(models.described, version)
        missing: list[schemas.Missing] = []
        kernels, profile = await self._of_time(version, missing)
        clicks = await self._clicks(version, missing)
        return schemas.ModelDetail(
            version=version,
            is_current=is_current,
            **roles(version, self._parts.serving.lineup),
            manifest=manifest.model_dump(mode="json"),
            kernels=kernels,
            attention_profile=profile,
            clicks=clicks,
            missing=tuple(missing),
        )

    async def _of_time(
        self, version: str, missing: list[schemas.Missing]
    ) -> tuple[tuple[schemas.KernelCurve, ...] | None, tuple[schemas.ProfilePoint, ...] | None]:
        try:
            bundle = await self._parts.serving.pinned(version)
        except (ModelRefusedError, StoreUnavailableError) as error:
            missing += (
                schemas.Missing("kernels", str(error)),
                schemas.Missing("attention_profile", str(error)),
            )
            return None, None
        curves = await self._parts.infer(lambda: kernel_curves(bundle))
        kernels = tuple(_told(curve) for curve in curves)
        profile = _points(bundle)
        if not kernels:
            kind = bundle.manifest.recommender.encoder.kind
            why = f"the model {kind!r} has no time encoding whose kernel could be drawn"
            missing.append(schemas.Missing("kernels", why))
        if profile is None:
            why = "the bundle was published without one"
            missing.append(schemas.Missing("attention_profile", why))
        return kernels or None, profile

    async def _clicks(self, version: str, missing: list[schemas.Missing]) -> schemas.Clicks | None:
        try:
            counted = await self._parts.database.read(
                lambda session: ClickRepository(session).of(version)
            )
        except (DatabaseUnavailableError, OverloadedError) as error:
            missing.append(schemas.Missing("clicks", str(error)))
            return None
        rate = counted.clicked / counted.shown if counted.shown else None
        return schemas.Clicks(counted.shown, counted.clicked, rate)


def _told(curve: KernelCurve) -> schemas.KernelCurve:
    rhythms = curve.spectrum
    return schemas.KernelCurve(
        place=curve.place,
        kind=curve.kind,
        is_stationary=curve.is_stationary,
        interval_days=curve.interval_days,
        psi=curve.psi,
        spectrum=(
            None
            if rhythms is None
            else tuple(schemas.Rhythm(rhythm.period_days, rhythm.power) for rhythm in rhythms)
        ),
    )


def _points(bundle: Bundle) -> tuple[schemas.ProfilePoint, ...] | None:
    if bundle.attention_profile is None:
        return None
    rows = bundle.attention_profile.head(MOST_POINTS).iter_rows(named=True)
    return tuple(
        schemas.ProfilePoint(**{**row, "mean": _finite(row["mean"]), "sd": _finite(row["sd"])})
        for row in rows
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
