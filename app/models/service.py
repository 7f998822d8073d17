"""The published bundles, as their manifests describe them."""

import asyncio
from typing import final

from app.errors import ModelNotFoundError, ModelRefusedError
from app.models.schemas import ModelDetail, ModelList, ModelSummary
from app.parts import Parts
from model.errors import BundleError


@final
class ModelService:
    """Lists and describes bundles; opening them is the business of `Serving`."""

    def __init__(self, parts: Parts) -> None:
        self._store = parts.store
        self._serving = parts.serving

    async def list(self) -> ModelList:
        """Every published bundle, newest first."""
        return await asyncio.to_thread(self._list)

    async def describe(self, version: str) -> ModelDetail:
        """One bundle.

        Raises:
            ModelNotFoundError: if no bundle of that version is published.
            ModelRefusedError: if its manifest was altered, or is of another format.
        """
        return await asyncio.to_thread(self._describe, version)

    def _list(self) -> ModelList:
        current, serving = self._store.current(), self._served()
        return ModelList(
            tuple(
                ModelSummary(version, is_current=version == current, is_serving=version == serving)
                for version in self._store.versions()
            )
        )

    def _describe(self, version: str) -> ModelDetail:
        # Only names the store itself lists are ever turned into paths.
        if version not in self._store.versions():
            raise ModelNotFoundError(
                f"a model must be published before it can be described, but {version[:80]!r} is "
                "not; GET /v1/models lists those that are"
            )
        try:
            manifest = self._store.manifest(version)
        except BundleError as error:
            raise ModelRefusedError(str(error)) from error
        return ModelDetail(
            version=version,
            is_current=version == self._store.current(),
            is_serving=version == self._served(),
            manifest=manifest.model_dump(mode="json"),
        )

    def _served(self) -> str | None:
        bundle = self._serving.bundle
        return None if bundle is None else bundle.version
