"""The one bundle being served, and following the store to the next."""

import asyncio
import time
from typing import final

import structlog

from app.errors import NoModelError
from app.metrics import Metrics
from model.bundle.bundle import Bundle
from model.bundle.store import BundleStore

_log = structlog.get_logger()


@final
class Serving:
    """Holds one immutable reference to the bundle that answers, and swaps it when CURRENT moves.

    A request takes the reference once and keeps it, so that every answer comes from one version.
    A version that does not open is refused and remembered: the previous one serves on, and the
    refused one is not tried again until CURRENT names something else.
    """

    def __init__(self, store: BundleStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._bundle: Bundle | None = None
        self._refused: str | None = None

    @property
    def bundle(self) -> Bundle | None:
        """The bundle that answers now; None before the first one opens."""
        return self._bundle

    def require(self) -> Bundle:
        """The bundle that answers now.

        Raises:
            NoModelError: if there is none yet.
        """
        if self._bundle is None:
            raise NoModelError(
                "recommending needs a published bundle, but none is being served"
                + (f" ({self._refused!r} was refused)" if self._refused else "")
                + "; publish one and activate it"
            )
        return self._bundle

    async def refresh(self) -> None:
        """Look at CURRENT once, and swap to the bundle it names if that is another one.

        A store that cannot be read is logged, and read again the next time.
        """
        try:
            await self._refresh()
        except OSError as error:
            _log.warning("bundle_store_unreadable", error=str(error))

    async def follow(self, poll_interval_seconds: float) -> None:
        """Refresh for ever."""
        while True:
            await asyncio.sleep(poll_interval_seconds)
            await self.refresh()

    async def _refresh(self) -> None:
        version = await asyncio.to_thread(self._store.current)
        served = self._bundle.version if self._bundle else None
        if version == self._refused:
            return
        self._refused = None
        if version is None or version == served:
            return
        try:
            bundle = await asyncio.to_thread(self._store.open, version)
        except OSError:
            raise
        except Exception as error:
            # Whatever is wrong with a bundle, it must not take down the one that serves.
            self._refused = version
            self._metrics.model_swaps.labels("refused").inc()
            _log.error("bundle_refused", version=version, serving=served, error=str(error))
            return
        self._bundle = bundle
        self._metrics.model_swaps.labels("activated").inc()
        self._metrics.model_info.clear()
        self._metrics.model_info.labels(bundle.version).set(1)
        self._metrics.model_loaded.set(time.time())
        self._metrics.index_items.set(len(bundle.catalog))
        _log.info("bundle_activated", version=bundle.version, previous=served)
