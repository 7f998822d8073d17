"""The published bundles, as their manifests describe them."""

import asyncio
from typing import final

from app.context import AppContext
from app.errors import ModelNotFoundError, ModelRefusedError, StoreUnavailableError
from app.http.types import format_instant
from app.models.schemas import DataSpan, ModelList, ModelSummary
from app.serving.model_manager import ActiveModels
from model.bundle.manifest import Manifest
from model.clock import from_datetime
from model.errors import BundleError

HEADLINE = ("ndcg@10", "hit_rate@10", "mrr", "accuracy")
"""The metrics by which versions are told apart at a glance; the rest are in the manifest."""


@final
class ModelService:
    """Lists bundles; opening them is the business of `Serving`."""

    def __init__(self, context: AppContext) -> None:
        self._store = context.store
        self._serving = context.model_manager

    async def list(self) -> ModelList:
        """Every published bundle, newest first.

        Raises:
            StoreUnavailableError: if the store cannot be read.
        """
        return await asyncio.to_thread(self._list)

    def described(self, version: str) -> tuple[Manifest, bool]:
        """The manifest of a published bundle, and whether it is current; blocks.

        Raises:
            ModelNotFoundError: if no bundle of that version is published.
            ModelRefusedError: if its manifest was altered, or is of another format.
            StoreUnavailableError: if the store cannot be read.
        """
        try:
            # Only names the store itself lists are ever turned into paths.
            if version not in self._store.versions():
                raise ModelNotFoundError(
                    f"a model must be published before it can be described, but {version[:80]!r} "
                    "is not; GET /v1/models lists those that are"
                )
            return self._store.manifest(version), version == self._store.current()
        except OSError as error:
            raise StoreUnavailableError.because(error) from error
        except BundleError as error:
            raise ModelRefusedError(str(error)) from error

    def _list(self) -> ModelList:
        try:
            current, versions = self._store.current(), self._store.versions()
        except OSError as error:
            raise StoreUnavailableError.because(error) from error
        lineup = self._serving.active
        return ModelList(tuple(self._summary(version, current, lineup) for version in versions))

    def _summary(self, version: str, current: str | None, lineup: ActiveModels) -> ModelSummary:
        manifest, refused = None, None
        try:
            manifest = self._store.manifest(version)
        except BundleError as error:
            refused = str(error)
        return ModelSummary(
            version=version,
            is_current=version == current,
            **roles(version, lineup),
            trained_at=None
            if manifest is None
            else format_instant(from_datetime(manifest.created_at)),
            data_window=None if manifest is None else span_of(manifest),
            metrics=None if manifest is None else headline_of(manifest),
            refused=refused,
        )


def roles(version: str, lineup: ActiveModels) -> dict[str, bool]:
    """What a version does in this process."""
    bundles = {
        "is_serving": lineup.current,
        "is_challenger": lineup.challenger,
        "is_shadow": lineup.shadow,
    }
    return {
        role: bundle is not None and bundle.version == version for role, bundle in bundles.items()
    }


def span_of(manifest: Manifest) -> DataSpan:
    """What a model was trained on."""
    window = manifest.data_window
    return DataSpan(format_instant(window.first_at), format_instant(window.last_at))


def headline_of(manifest: Manifest) -> dict[str, float]:
    """The metrics to show first."""
    return {name: manifest.metrics[name] for name in HEADLINE if name in manifest.metrics}
