"""The bundles that answer, and following the store to the next."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar, final

import structlog

from app.errors import (
    ModelNotFoundError,
    ModelRefusedError,
    NoModelError,
    StoreUnavailableError,
)
from app.observability.metrics import Metrics
from app.serving.item_overlay import ItemOverlay
from model.errors import BundleError, StoreBusyError
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from model.store.traffic import Traffic

T = TypeVar("T")

Prove = Callable[[str], object]
"""Opens a version, checks it and warms it up, and raises where it does not pass. It is opened anew
even where it is open already: what counts is what lies in the store, for every process alike."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ActiveModels:
    """The bundles that answer, all at once.

    Attributes:
        current: answers whoever nobody else does.
        challenger: answers a share of the users in its place.
        share: of the users, 0 to 1.
        shadow: is asked too, and its answer thrown away.
    """

    current: Predictor | None = None
    challenger: Predictor | None = None
    share: float = 0.0
    shadow: Predictor | None = None

    @property
    def versions(self) -> frozenset[str]:
        """The versions that are open."""
        bundles = (self.current, self.challenger, self.shadow)
        return frozenset(bundle.version for bundle in bundles if bundle is not None)


@final
class ModelManager:
    """Holds one immutable line-up of bundles, and swaps it whole when the store says otherwise.

    A request takes its bundle once and keeps it, so that every answer comes from one version. A
    bundle is opened, checked, warmed up and laid out before it is in the line-up. A version that
    does not open is refused and remembered: the previous one serves on, and the refused one is not
    tried again until the store names something else.
    """

    def __init__(
        self, store: BundleStore, metrics: Metrics, shelf: ItemOverlay, *, pinned_versions: int
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._shelf = shelf
        self._pinned_versions = pinned_versions
        self._lineup = ActiveModels()
        self._refused: dict[str, str] = {}
        self._pinned: OrderedDict[str, Predictor] = OrderedDict()
        self._opening = asyncio.Lock()

    @property
    def active(self) -> ActiveModels:
        """The bundles that answer now."""
        return self._lineup

    @property
    def bundle(self) -> Predictor | None:
        """The current bundle; None before the first one opens."""
        return self._lineup.current

    def require_current(self) -> Predictor:
        """The current bundle.

        Raises:
            NoModelError: if there is none yet.
        """
        if self._lineup.current is None:
            refused = next(iter(self._refused), None)
            raise NoModelError(
                "recommending needs a published bundle, but none is being served"
                + (f" ({refused!r} was refused)" if refused else "")
                + "; publish one and activate it"
            )
        return self._lineup.current

    def select_for_user(self, user_id: str | None) -> Predictor:
        """The bundle that answers a user: always the same one while the traffic stays as it is.

        Raises:
            NoModelError: if there is none yet.
        """
        current, lineup = self.require_current(), self._lineup
        if lineup.challenger is None or user_id is None:
            return current
        return lineup.challenger if traffic_position(user_id) < lineup.share else current

    async def open_version(self, version: str) -> Predictor:
        """A version that a request insists on; the most recent few stay open.

        Raises:
            ModelNotFoundError: if no such version is published.
            ModelRefusedError: if it cannot be opened.
        """
        bundle = self._open_already(version)
        if bundle is not None:
            return bundle
        async with self._opening:
            bundle = self._open_already(version) or await self._open(version)
            self._pinned[version] = bundle
            while len(self._pinned) > self._pinned_versions:
                self._pinned.popitem(last=False)
            self._shelf.retain_versions(self._lineup.versions | self._pinned.keys())
            return bundle

    async def activate(self, move: Callable[[Prove], T]) -> T:
        """Serve with the version that `move` makes the current one for every process.

        Args:
            move: proves the version before it points at it; runs on a thread of its own, and what
                it answers is answered. Where it fails, what serves, serves on.

        Raises:
            ModelNotFoundError: if no such version is published.
            ModelRefusedError: if it cannot be opened.
            StoreUnavailableError: if the store cannot be read or changed.
        """
        async with self._opening:
            moved, opened = await self._moved(move)
            (bundle,) = opened.values()
            lineup = self._lineup
            if lineup.current is None or lineup.current.version != bundle.version:
                lineup = replace(lineup, current=bundle)
            self._line_up(lineup)
            return moved

    async def route(self, traffic: Traffic, move: Callable[[Prove], T]) -> T:
        """Have the versions that `move` points at answer beside the current one.

        Raises:
            ModelNotFoundError: if one of them is not published.
            ModelRefusedError: if one of them cannot be opened.
            StoreUnavailableError: if the store cannot be read or changed.
        """
        async with self._opening:
            moved, opened = await self._moved(move)
            self._line_up(
                ActiveModels(
                    self._lineup.current,
                    opened.get(traffic.challenger or ""),
                    traffic.share,
                    opened.get(traffic.shadow or ""),
                )
            )
            return moved

    async def refresh(self) -> None:
        """Look at the store once, and swap to the line-up it names if that is another one.

        A store that cannot be read is logged, and read again the next time.
        """
        try:
            async with self._opening:
                await self._refresh()
        except (OSError, BundleError, StoreUnavailableError) as error:
            _log.warning("bundle_store_unreadable", error=str(error))

    async def follow(self, poll_interval_seconds: float) -> None:
        """Refresh for ever."""
        while True:
            await asyncio.sleep(poll_interval_seconds)
            await self.refresh()

    async def _refresh(self) -> None:
        version = await asyncio.to_thread(self._store.current)
        traffic: Traffic = await asyncio.to_thread(self._store.traffic)
        named = {version, traffic.challenger, traffic.shadow} - {None}
        self._refused = {v: why for v, why in self._refused.items() if v in named}
        lineup = ActiveModels(
            current=await self._opened(version) or self._lineup.current,
            challenger=await self._opened(traffic.challenger),
            share=traffic.share,
            shadow=await self._opened(traffic.shadow),
        )
        if lineup != self._lineup:
            self._line_up(lineup)

    async def _opened(self, version: str | None) -> Predictor | None:
        """A version that the store names; None where it names none, or it does not open."""
        if version is None or version in self._refused:
            return None
        try:
            return self._open_already(version) or await self._open(version)
        except (ModelNotFoundError, ModelRefusedError) as error:
            self._refused[version] = str(error)
            self._metrics.model_swaps.labels("refused").inc()
            serving = self._lineup.current
            _log.error(
                "bundle_refused",
                version=version,
                serving=None if serving is None else serving.version,
                error=str(error),
            )
            return None

    def _open_already(self, version: str) -> Predictor | None:
        lineup = self._lineup
        for bundle in (lineup.current, lineup.challenger, lineup.shadow):
            if bundle is not None and bundle.version == version:
                return bundle
        if version in self._pinned:
            self._pinned.move_to_end(version)
        return self._pinned.get(version)

    async def _open(self, version: str) -> Predictor:
        return await asyncio.to_thread(self._open_now, version)

    def _open_now(self, version: str) -> Predictor:
        try:
            # Only names the store itself lists are ever turned into paths.
            if version not in self._store.versions():
                raise ModelNotFoundError(
                    f"a model must be published before it can be used, but {version[:80]!r} is "
                    "not; GET /v1/models lists those that are"
                )
            bundle = self._store.open(version)
            self._shelf.add_catalog(version, bundle.catalog)
        except ModelNotFoundError:
            raise
        except OSError as error:
            raise StoreUnavailableError.because(error) from error
        except Exception as error:
            # Whatever is wrong with a bundle, it must not take down the one that serves.
            raise ModelRefusedError(str(error)) from error
        return bundle

    async def _moved(self, move: Callable[[Prove], T]) -> tuple[T, dict[str, Predictor]]:
        """What `move` answers, and the versions it proved; failures as the service tells them."""
        opened: dict[str, Predictor] = {}

        def prove(version: str) -> None:
            opened[version] = self._open_now(version)

        try:
            moved = await asyncio.to_thread(move, prove)
        except BundleError as error:
            raise ModelRefusedError(str(error)) from error
        except (OSError, StoreBusyError) as error:
            raise StoreUnavailableError.because(error) from error
        self._refused = {v: why for v, why in self._refused.items() if v not in opened}
        return moved, opened

    def _line_up(self, lineup: ActiveModels) -> None:
        previous, self._lineup = self._lineup, lineup
        for version in lineup.versions:
            self._pinned.pop(version, None)
        self._shelf.retain_versions(lineup.versions | self._pinned.keys())
        current = lineup.current
        if current is None or current is previous.current:
            return
        self._metrics.model_swaps.labels("activated").inc()
        self._metrics.model_info.clear()
        self._metrics.model_info.labels(current.version).set(1)
        self._metrics.offline_metric.clear()
        for name, value in current.bundle.manifest.metrics.items():
            self._metrics.offline_metric.labels(name, current.version).set(value)
        self._metrics.model_loaded.set(time.time())
        self._metrics.index_items.set(len(current.catalog))
        _log.info(
            "bundle_activated",
            version=current.version,
            previous=None if previous.current is None else previous.current.version,
        )


def traffic_position(user_id: str) -> float:
    """Where a user stands between 0 and 1, evenly spread and always the same."""
    digest = hashlib.sha256(b"kairos traffic " + user_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
