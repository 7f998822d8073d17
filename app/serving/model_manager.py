"""The models that serve requests, and the poll that follows the store."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import ParamSpec, TypeVar, final

import structlog

from app.errors import (
    ModelNotFoundError,
    ModelRefusedError,
    NoModelError,
    OverloadedError,
    StoreUnavailableError,
)
from app.inference.costs import InferenceCosts
from app.observability.metrics import Metrics
from app.serving.item_overlay import ItemOverlay
from app.serving.opening_budget import OpeningBudget
from app.serving.pointers import POINTERS, Pointer, Pointers, read_pointers
from app.serving.refusals import Refusals
from app.thread_pool import BoundedPool
from model.inference.predictor import Predictor
from model.store.last_known_good import LastKnownGood
from model.store.store import CURRENT, BundleStore
from model.store.traffic import Traffic

P = ParamSpec("P")
T = TypeVar("T")

_FOLLOWING_THREADS = 2
"""`lock` lets one call run at a time; a second thread stands in for one whose caller left it."""
_MOST_FOLLOWING = 16
"""Calls that wait for these threads: those whose callers left them, and one."""
_CLOSE_SECONDS = 5.0
_MOST_OPENINGS = 8
"""Versions that wait to be opened because requests name them."""
_MOST_AWAITING = 64
"""Requests that wait for versions to be opened."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ActiveModels:
    """The models that serve requests at one moment.

    Attributes:
        current: serves every request that the challenger does not.
        challenger: serves a share of the users instead of the current model.
        share: the challenger's share of the users, 0 to 1.
        shadow: scores the same requests; its results are compared, never returned.
    """

    current: Predictor | None = None
    challenger: Predictor | None = None
    share: float = 0.0
    shadow: Predictor | None = None

    @property
    def versions(self) -> frozenset[str]:
        """The versions that are open."""
        predictors = (self.current, self.challenger, self.shadow)
        return frozenset(predictor.version for predictor in predictors if predictor is not None)


@final
class ModelManager:
    """Holds the active models, and replaces them when the store's pointers change.

    A request reads `active` once and keeps its predictor, so a response comes from one version. A
    version is opened, verified and warmed up before it becomes active. A version that fails to open
    is refused: the previous one stays active, and the refused one is opened again once its files
    change, or after a while. Each pointer is followed by itself; one that cannot be read leaves
    what it named last. A process that starts while `CURRENT` cannot be followed serves the version
    that served last and opens, as `LastKnownGood` records it.

    Attributes:
        faults: the pointers that are not followed now, each with the reason.
        lock: held while active versions are opened or swapped. Callers of `swap_current` and
            `swap_traffic` hold it from before the version is loaded.
    """

    def __init__(
        self,
        store: BundleStore,
        metrics: Metrics,
        item_overlay: ItemOverlay,
        costs: InferenceCosts,
        *,
        pinned_versions: int,
    ) -> None:
        """Open nothing yet.

        Args:
            pinned_versions: how many versions stay open because requests name them.
        """
        self.lock = asyncio.Lock()
        self._store = store
        self._metrics = metrics
        self._item_overlay = item_overlay
        self._costs = costs
        self._pinned_versions = pinned_versions
        self._active = ActiveModels()
        self.faults: dict[Pointer, str] = {}
        self._refusals = Refusals()
        self._traffic: Traffic | None = None
        self._pinned: OrderedDict[str, Predictor] = OrderedDict()
        self._openings: dict[str, asyncio.Task[Predictor]] = {}
        self._awaiting_openings = 0
        self._one_opening = asyncio.Semaphore(1)
        self._opening_budget = OpeningBudget()
        self._pinned_refusals = Refusals()
        # Of its own: pages that list the store fill the threads that all others share.
        self._following = BoundedPool("store", threads=_FOLLOWING_THREADS, queue=_MOST_FOLLOWING)

    @property
    def active(self) -> ActiveModels:
        """The models that serve requests now."""
        return self._active

    def require_current(self) -> Predictor:
        """Return the current model.

        Raises:
            NoModelError: if there is none yet.
        """
        if self._active.current is None:
            refused = next(iter(self._refusals), None)
            raise NoModelError(
                "recommending needs a published bundle, but none is being served"
                + (f" ({refused!r} was refused)" if refused else "")
                + "; publish one and activate it"
            )
        return self._active.current

    def select_for_user(self, user_id: str | None) -> Predictor:
        """Select the model that serves a user; stable for as long as the traffic is unchanged.

        Args:
            user_id: None for an anonymous request, which the current model serves.

        Raises:
            NoModelError: if there is none yet.
        """
        current, active = self.require_current(), self._active
        if active.challenger is None or user_id is None:
            return current
        return active.challenger if compute_traffic_position(user_id) < active.share else current

    async def open_version(self, version: str) -> Predictor:
        """Open the model of a version that a request names; the most recent few stay open.

        Requests for the same version share one opening, and different versions are opened one after
        the other. None of them holds `lock`: activations need not wait for them.

        Raises:
            ModelNotFoundError: if no such version is published.
            ModelRefusedError: if it cannot be opened.
            StoreUnavailableError: if the store cannot be read.
            OverloadedError: if too many requests wait for versions, or versions take turns so
                quickly that the process would do nothing but open them.
        """
        found = self._find_open(version)
        if found is not None:
            return found
        opening = self._openings.get(version)
        if opening is None:
            self._require_openings()
            opening = asyncio.create_task(self._open_pinned(version))
            self._openings[version] = opening
            opening.add_done_callback(partial(self._end_opening, version))
        if self._awaiting_openings >= _MOST_AWAITING:
            raise OverloadedError(
                "versions",
                _MOST_AWAITING,
                f"at most {_MOST_AWAITING} requests may wait for versions to be opened, and that "
                "many do; try again shortly",
            )
        self._awaiting_openings += 1
        try:
            # A request that is given up must not cancel the opening for the others.
            return await asyncio.shield(opening)
        finally:
            self._awaiting_openings -= 1

    def _require_openings(self) -> None:
        """Check that another version may be opened.

        Raises:
            OverloadedError: if not.
        """
        if len(self._openings) >= _MOST_OPENINGS:
            raise OverloadedError(
                "versions",
                _MOST_OPENINGS,
                f"at most {_MOST_OPENINGS} versions may wait to be opened, and that many do; try "
                "again shortly",
            )
        seconds = self._opening_budget.compute_wait()
        if seconds and len(self._pinned) + len(self._openings) >= self._pinned_versions:
            raise OverloadedError(
                "versions",
                self._pinned_versions,
                f"{self._pinned_versions} versions stay open because requests name them, but "
                "requests name more in turn, and opening them takes all the time that is meant for "
                f"it; name fewer, raise KAIROS_PINNED_VERSIONS, or try again in {seconds} seconds",
                seconds=seconds,
            )

    async def _open_pinned(self, version: str) -> Predictor:
        async with self._one_opening:
            # Lets an activation that is in progress finish first: both would take longer together.
            async with self.lock:
                pass
            found = self._find_open(version)
            if found is not None:
                return found
            fingerprint = await asyncio.to_thread(self._store.read_fingerprint, version)
            error = self._pinned_refusals.get_error(version)
            # At once when its files have changed: a repaired version may be named only once.
            if error is not None and not self._pinned_refusals.is_due(
                version, fingerprint, waits_until_still=False
            ):
                raise ModelRefusedError(error)
            began = time.monotonic()
            try:
                predictor = await asyncio.to_thread(self.load, version)
            except ModelRefusedError as refusal:
                self._pinned_refusals.add(version, str(refusal), fingerprint)
                raise
            finally:
                self._opening_budget.spend(time.monotonic() - began)
            self._pinned_refusals.discard(version)
            self._pinned[version] = predictor
            while len(self._pinned) > self._pinned_versions:
                self._pinned.popitem(last=False)
            return predictor

    def _end_opening(self, version: str, opening: "asyncio.Task[Predictor]") -> None:
        del self._openings[version]
        # A failure is marked as seen, even if every request for the version was given up.
        if not opening.cancelled():
            opening.exception()
        # An activation in progress has built a view that is not in use yet; it cleans up itself.
        if not self.lock.locked():
            self._retain_views()

    def _retain_views(self) -> None:
        """Drop the item data of versions that are neither open nor being opened."""
        self._item_overlay.retain_versions(
            self._active.versions | self._pinned.keys() | self._openings.keys()
        )

    def load(self, version: str) -> Predictor:
        """Open a version from the store, verify it and warm it up; blocks, and changes nothing.

        Raises:
            ModelNotFoundError: if no such version is published.
            ModelRefusedError: if it cannot be opened.
            StoreUnavailableError: if the store cannot be read.
        """
        try:
            # A request's version becomes a path only if the store has it.
            if not self._store.has_version(version):
                raise ModelNotFoundError(
                    f"a model must be published before it can be used, but {version[:80]!r} is "
                    "not; GET /v1/models lists those that are"
                )
            predictor = self._store.open(version)
            self._costs.calibrate(predictor)
            self._item_overlay.add_catalog(version, predictor.catalog)
        except ModelNotFoundError:
            raise
        except OSError as error:
            raise StoreUnavailableError.from_cause(error) from error
        except Exception as error:
            # No defect of a bundle may take down the model that is active.
            raise ModelRefusedError(str(error)) from error
        return predictor

    def swap_current(self, predictor: Predictor) -> None:
        """Make a loaded model the current one; the caller holds `lock`."""
        self._refusals.discard(predictor.version)
        active = self._active
        if active.current is None or active.current.version != predictor.version:
            active = replace(active, current=predictor)
        self._swap(active)

    def list_open(self) -> list[Predictor]:
        """List the models that are open: the active ones, and those that requests name."""
        active = (self._active.current, self._active.challenger, self._active.shadow)
        return [*(one for one in active if one is not None), *self._pinned.values()]

    def renew(self, predictor: Predictor, renewed: Predictor) -> None:
        """Replace an open model by the same version with newer counts; no version changes.

        A model that was closed or replaced since stays so.
        """

        def choose(held: Predictor | None) -> Predictor | None:
            return renewed if held is predictor else held

        active = self._active
        self._active = replace(
            active,
            current=choose(active.current),
            challenger=choose(active.challenger),
            shadow=choose(active.shadow),
        )
        if self._pinned.get(predictor.version) is predictor:
            self._pinned[predictor.version] = renewed

    def swap_traffic(self, traffic: Traffic, predictors: Mapping[str, Predictor]) -> None:
        """Replace the challenger and the shadow by loaded models; the caller holds `lock`.

        Args:
            predictors: the loaded models, by version.
        """
        for version in predictors:
            self._refusals.discard(version)
        self._traffic = traffic
        self._swap(
            ActiveModels(
                self._active.current,
                predictors.get(traffic.challenger or ""),
                traffic.share,
                predictors.get(traffic.shadow or ""),
            )
        )

    async def run_following(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run work that moves or follows the store's pointers, apart from all that reads the store.

        The caller holds `lock`.

        Raises:
            OverloadedError: if earlier calls, whose callers left them, do not end.
        """
        # The log lines of the work name the request.
        return await self._following.run(partial(copy_context().run, work, *arguments, **named))

    def close(self) -> None:
        """Complete running work, for a few seconds, and end the threads."""
        self._following.close(within_seconds=_CLOSE_SECONDS)

    async def refresh(self) -> None:
        """Read the store's pointers once, and swap to the versions they name.

        What cannot be read or opened stays as it is, and is named in `faults`.

        Raises:
            OverloadedError: if earlier reads of the store do not end.
        """
        async with self.lock:
            await self._refresh()

    async def _refresh(self) -> None:
        pointers = await self.run_following(read_pointers, self._store)
        faults = pointers.faults
        good, previous = pointers.last_known_good, self._active.current
        if pointers.current is None and (previous is not None or good.versions):
            faults.setdefault("current", f"{CURRENT} is missing or empty")
        if "current" not in faults and "traffic" not in faults:
            # Without `CURRENT` the store is empty or not mounted, and names no traffic either.
            self._replace_traffic(pointers.traffic)
        traffic = self._traffic or good.traffic
        challenger, shadow = traffic.challenger, traffic.shadow
        self._refusals.retain({pointers.current, challenger, shadow, *good.versions})
        current = await self._open_named("current", pointers.current, faults)
        active = ActiveModels(
            current=current or previous or await self._open_last_known_good(pointers),
            challenger=await self._open_named("challenger", challenger, faults),
            share=traffic.share,
            shadow=await self._open_named("shadow", shadow, faults),
        )
        if active != self._active:
            self._swap(active)
        self._report_faults(faults)
        if current is not None:
            good = good.with_current(current.version)
        if not faults:
            good = good.with_traffic(traffic)
        if good != pointers.last_known_good:
            await self.run_following(self._record_last_known_good, good)

    def _replace_traffic(self, traffic: Traffic) -> None:
        if traffic != self._traffic and traffic.unknown_fields:
            _log.warning("traffic_fields_ignored", fields=traffic.unknown_fields)
        self._traffic = traffic

    async def _open_named(
        self, pointer: Pointer, version: str | None, faults: dict[Pointer, str]
    ) -> Predictor | None:
        """Open the version that a pointer names; None without one, or if it cannot be opened."""
        predictor = None if version is None else await self._open_or_refuse(version)
        if version is not None and predictor is None:
            error = self._refusals.get_error(version)
            faults.setdefault(pointer, f"{version[:80]!r} does not open: {error}")
        return predictor

    async def _open_last_known_good(self, pointers: Pointers) -> Predictor | None:
        """Open the version that served last and opens; None if there is none."""
        for version in reversed(pointers.last_known_good.versions):
            predictor = await self._open_or_refuse(version)
            if predictor is not None:
                _log.error(
                    "last_known_good_activated",
                    version=version,
                    current=None if pointers.current is None else pointers.current[:80],
                )
                return predictor
        return None

    async def _open_or_refuse(self, version: str) -> Predictor | None:
        """Open a version unless it was refused and is not due; None if it cannot be opened."""
        predictor = self._find_open(version)
        if predictor is not None:
            return predictor
        fingerprint = await self.run_following(self._store.read_fingerprint, version)
        if not self._refusals.is_due(version, fingerprint):
            return None
        try:
            predictor = await self.run_following(self.load, version)
        except (ModelNotFoundError, ModelRefusedError, StoreUnavailableError) as error:
            if self._refusals.add(version, str(error), fingerprint):
                self._metrics.model_swaps.labels("refused").inc()
                current = self._active.current
                _log.error(
                    "bundle_refused",
                    version=version[:80],
                    serving=None if current is None else current.version,
                    error=str(error),
                )
            return None
        self._refusals.discard(version)
        return predictor

    def _report_faults(self, faults: dict[Pointer, str]) -> None:
        """Publish the pointers that are not followed, and log those that changed."""
        previous, self.faults = self.faults, faults
        for pointer in POINTERS:
            self._metrics.pointer_faults.labels(pointer).set(pointer in faults)
            if previous.get(pointer) == faults.get(pointer):
                continue
            if pointer in faults:
                current = self._active.current
                _log.error(
                    "pointer_not_followed",
                    pointer=pointer,
                    serving=None if current is None else current.version,
                    error=faults[pointer],
                )
            else:
                _log.info("pointer_followed", pointer=pointer)

    def _record_last_known_good(self, good: LastKnownGood) -> None:
        try:
            self._store.record_last_known_good(good)
        except OSError as error:
            # A process that may only read the store serves without the record.
            _log.debug("last_known_good_not_recorded", error=str(error))

    def _find_open(self, version: str) -> Predictor | None:
        active = self._active
        for predictor in (active.current, active.challenger, active.shadow):
            if predictor is not None and predictor.version == version:
                return predictor
        if version in self._pinned:
            self._pinned.move_to_end(version)
        return self._pinned.get(version)

    def _swap(self, active: ActiveModels) -> None:
        previous, self._active = self._active, active
        for version in active.versions:
            self._pinned.pop(version, None)
        self._retain_views()
        current = active.current
        if current is None or current is previous.current:
            return
        self._metrics.model_swaps.labels("activated").inc()
        self._metrics.clear(self._metrics.model_info)
        self._metrics.model_info.labels(current.version).set(1)
        self._metrics.clear(self._metrics.offline_metric)
        for name, value in current.bundle.manifest.metrics.items():
            self._metrics.offline_metric.labels(name, current.version).set(value)
        self._metrics.model_loaded.set(time.time())
        self._metrics.index_items.set(len(current.catalog))
        _log.info(
            "bundle_activated",
            version=current.version,
            previous=None if previous.current is None else previous.current.version,
        )


def compute_traffic_position(user_id: str) -> float:
    """Compute the position of a user in [0, 1): a hash of the id, uniform and stable.

    The challenger serves the users whose position is below its share.
    """
    digest = hashlib.sha256(b"kairos traffic " + user_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
