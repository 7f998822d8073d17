"""The published bundles, as their manifests describe them."""

import asyncio

from app.context import AppContext
from app.errors import ModelNotFoundError, ModelRefusedError, StoreUnavailableError
from app.http.types import format_instant
from app.models.schemas import DataSpan, ModelList, ModelSummary
from app.serving.model_manager import ActiveModels
from model.bundle.manifest import Manifest
from model.clock import from_datetime
from model.errors import BundleError
from model.store.store import BundleStore

HEADLINE = ("ndcg@10", "hit_rate@10", "mrr", "accuracy")
"""The metrics of a model's summary; the manifest holds all."""


async def list_models(context: AppContext) -> ModelList:
    """List every published bundle, newest first.

    Raises:
        StoreUnavailableError: if the store cannot be read.
    """
    return await asyncio.to_thread(_list, context.store, context.model_manager.active)


def read_manifest(store: BundleStore, version: str) -> tuple[Manifest, bool]:
    """Read the manifest of a published bundle, and whether the version is current; blocks.

    Raises:
        ModelNotFoundError: if no bundle of that version is published.
        ModelRefusedError: if its manifest was altered, or is of another format.
        StoreUnavailableError: if the store cannot be read.
    """
    try:
        # A request's version becomes a path only if the store lists it.
        if version not in store.list_versions():
            raise ModelNotFoundError(
                f"a model must be published before it can be described, but {version[:80]!r} "
                "is not; GET /v1/models lists those that are"
            )
        return store.read_manifest(version), version == store.read_current()
    except OSError as error:
        raise StoreUnavailableError.from_cause(error) from error
    except BundleError as error:
        raise ModelRefusedError(str(error)) from error


def list_roles(version: str, active: ActiveModels) -> dict[str, bool]:
    """Return the roles of a version in this process, as fields of a response."""
    predictors = {
        "is_serving": active.current,
        "is_challenger": active.challenger,
        "is_shadow": active.shadow,
    }
    return {
        role: predictor is not None and predictor.version == version
        for role, predictor in predictors.items()
    }


def _list(store: BundleStore, active: ActiveModels) -> ModelList:
    try:
        current, versions = store.read_current(), store.list_versions()
    except OSError as error:
        raise StoreUnavailableError.from_cause(error) from error
    return ModelList(tuple(_summarize(store, version, current, active) for version in versions))


def _summarize(
    store: BundleStore, version: str, current: str | None, active: ActiveModels
) -> ModelSummary:
    manifest, refused = None, None
    try:
        manifest = store.read_manifest(version)
    except BundleError as error:
        refused = str(error)
    return ModelSummary(
        version=version,
        is_current=version == current,
        **list_roles(version, active),
        trained_at=(
            None if manifest is None else format_instant(from_datetime(manifest.created_at))
        ),
        data_window=None if manifest is None else _to_data_span(manifest),
        encoder=None if manifest is None else manifest.recommender.encoder.kind,
        metrics=None if manifest is None else _select_headline_metrics(manifest),
        refused=refused,
    )


def _to_data_span(manifest: Manifest) -> DataSpan:
    window = manifest.data_window
    return DataSpan(format_instant(window.first_at), format_instant(window.last_at))


def _select_headline_metrics(manifest: Manifest) -> dict[str, float]:
    return {name: manifest.metrics[name] for name in HEADLINE if name in manifest.metrics}
