"""Activation, rollback and traffic: verify a version, record and move the pointer, swap.

The pointer in the store and the record in the database change together or not at all: the record is
written in a transaction that is committed last, with the move before the commit, inside a lock of
the store that restores the pointers if the block fails. The `*_blocking` functions do this for the
service and for the command line; the coroutines add the swap in this process.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from app.context import AppContext
from app.db.clock import read_time
from app.db.database import Database
from app.errors import (
    ModelNotFoundError,
    ModelRefusedError,
    NothingToRollBackError,
    StoreUnavailableError,
)
from app.http.types import format_instant
from app.models.repository import Activation, Change, ModelChangeRepository
from app.models.schemas import (
    ActivationKind,
    ChangeList,
    CurrentVersion,
    ModelTraffic,
    RecordedChange,
    TrafficRequest,
)
from model.errors import BundleError, StoreBusyError
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from model.store.traffic import Traffic

OpenVersion = Callable[[str], Predictor]
"""Opens a version from the store, verifies it and warms it up; raises if the version fails.

A version that is already open is opened again: the files in the store decide, for every process."""


async def activate(
    context: AppContext, version: str, *, actor: str, reason: str | None
) -> CurrentVersion:
    """Make a published version the current one, for every process.

    Raises:
        ModelNotFoundError: if no such version is published.
        ModelRefusedError: if it cannot be opened; the active model is then unchanged.
        StoreUnavailableError, DatabaseUnavailableError: if the pointer cannot be moved or the
            change cannot be recorded; neither is then done.
        OverloadedError: if earlier changes, whose callers left them, do not end.
    """
    manager = context.model_manager
    async with manager.lock:
        with _translate_store_errors():
            change, predictor = await manager.run_following(
                activate_blocking,
                context.store,
                context.database,
                version,
                manager.load,
                actor=actor,
                reason=reason,
            )
        manager.swap_current(predictor)
    return CurrentVersion(version, change.previous_version)


async def roll_back(context: AppContext, *, actor: str, reason: str | None) -> CurrentVersion:
    """Make the version before the current one current again, for every process.

    Raises:
        NothingToRollBackError: if there is no earlier version.
        ModelRefusedError: if the earlier version is gone, or cannot be opened.
        StoreUnavailableError, DatabaseUnavailableError: if the pointer cannot be moved or the
            change cannot be recorded; neither is then done.
        OverloadedError: if earlier changes, whose callers left them, do not end.
    """
    manager = context.model_manager
    async with manager.lock:
        with _translate_store_errors():
            change, predictor = await manager.run_following(
                roll_back_blocking,
                context.store,
                context.database,
                manager.load,
                actor=actor,
                reason=reason,
            )
        manager.swap_current(predictor)
    return CurrentVersion(predictor.version, change.previous_version)


async def set_traffic(context: AppContext, request: TrafficRequest, *, actor: str) -> ModelTraffic:
    """Set the challenger and the shadow, or clear them, in every process.

    Raises:
        ModelNotFoundError: if one of them is not published.
        ModelRefusedError: if one of them cannot be opened; nothing is then changed.
        StoreUnavailableError, DatabaseUnavailableError: if the pointer cannot be moved or the
            change cannot be recorded; neither is then done.
        OverloadedError: if earlier changes, whose callers left them, do not end.
    """
    manager = context.model_manager
    traffic = Traffic(challenger=request.challenger, share=request.share, shadow=request.shadow)
    async with manager.lock:
        with _translate_store_errors():
            predictors = await manager.run_following(
                set_traffic_blocking,
                context.store,
                context.database,
                traffic,
                manager.load,
                actor=actor,
                reason=request.reason,
            )
        manager.swap_traffic(traffic, predictors)
    return _to_traffic_response(traffic)


async def read_traffic(context: AppContext) -> ModelTraffic:
    """Read the challenger and the shadow.

    Raises:
        StoreUnavailableError: if the store cannot be read.
    """
    try:
        return _to_traffic_response(await asyncio.to_thread(context.store.read_traffic))
    except (OSError, BundleError) as error:
        raise StoreUnavailableError.from_cause(error) from error


async def list_changes(context: AppContext, limit: int) -> ChangeList:
    """List the most recent changes, newest first, and the version that a rollback would activate.

    Raises:
        DatabaseUnavailableError: if they cannot be read.
        OverloadedError: if too many requests wait already.
    """

    def read(changes: ModelChangeRepository) -> tuple[list[Change], list[Activation]]:
        return changes.list_newest(limit), changes.list_activations()

    newest, activations = await context.database.read(
        lambda session: read(ModelChangeRepository(session))
    )
    return ChangeList(
        tuple(_to_change_response(change) for change in newest),
        rollback_version=await asyncio.to_thread(
            _find_rollback_version, context.store, activations
        ),
    )


def activate_blocking(
    store: BundleStore,
    database: Database,
    version: str,
    open_version: OpenVersion,
    *,
    actor: str,
    reason: str | None = None,
    kind: ActivationKind = "activate",
) -> tuple[Change, Predictor]:
    """Verify a published version, record the change and make the version the current one.

    Raises:
        BundleError: if there is no such version, or its manifest was altered.
        StoreBusyError, OSError: if the store cannot be changed.
        DatabaseUnavailableError: if the change cannot be recorded; it is then not made.
    """
    # Outside the store's lock: opening takes seconds, and other changes need not wait for it.
    predictor = open_version(version)
    with store.lock_pointers():
        change = Change(
            database.read_blocking(read_time), actor, kind, version, store.read_current(), reason
        )
        _record_and_move(store, database, change)
    return change, predictor


def roll_back_blocking(
    store: BundleStore,
    database: Database,
    open_version: OpenVersion,
    *,
    actor: str,
    reason: str | None = None,
) -> tuple[Change, Predictor]:
    """Make the version before the current one current again, and record the change.

    Raises:
        NothingToRollBackError: if there is no earlier version.
        ModelRefusedError: if the earlier version is gone or fails verification. No older version
            is activated in its place, since none was requested.
        StoreBusyError, OSError: if the store cannot be changed.
        DatabaseUnavailableError: if the change cannot be recorded; it is then not made.
    """
    with store.lock_pointers():
        current = store.read_current()
        version = find_rollback_target(
            database.read_blocking(
                lambda session: ModelChangeRepository(session).list_activations()
            ),
            current,
        )
        if version is None:
            raise NothingToRollBackError(
                "a rollback leads to the version that was current before this one, but the record "
                f"of changes has none before {current or 'the first one'}; activate a version by "
                "its name"
            )
        try:
            predictor = open_version(version)
        except (BundleError, ModelNotFoundError, ModelRefusedError) as error:
            raise ModelRefusedError(
                f"a rollback leads to the version that was current before this one, {version}, "
                f"but it cannot be served any more ({error}); activate another by its name"
            ) from error
        change = Change(
            database.read_blocking(read_time), actor, "rollback", version, current, reason
        )
        _record_and_move(store, database, change)
    return change, predictor


def set_traffic_blocking(
    store: BundleStore,
    database: Database,
    traffic: Traffic,
    open_version: OpenVersion,
    *,
    actor: str,
    reason: str | None = None,
) -> dict[str, Predictor]:
    """Verify the challenger and the shadow, record the change and make it.

    Returns:
        The opened versions, by name.

    Raises:
        BundleError: if one of them is not published, or its manifest was altered.
        StoreBusyError, OSError: if the store cannot be changed.
        DatabaseUnavailableError: if the change cannot be recorded; it is then not made.
    """
    versions = {version for version in (traffic.challenger, traffic.shadow) if version is not None}
    predictors = {version: open_version(version) for version in versions}
    with store.lock_pointers():
        current = store.read_current()
        change = Change(
            database.read_blocking(read_time), actor, "traffic", current, current, reason, traffic
        )
        _record_and_move(store, database, change)
    return predictors


def find_rollback_target(activations: Iterable[Activation], current: str | None) -> str | None:
    """Find the version that a rollback activates; None if no version was current before this one.

    Args:
        activations: the latest recorded changes of the current version, oldest first.
        current: the version that the store's pointer names now; None for none.
    """
    lineage = _trace_lineage(activations)
    _append_if_new(lineage, current)
    if current is None:
        return lineage[-1] if lineage else None
    return lineage[-2] if len(lineage) > 1 else None


def _record_and_move(store: BundleStore, database: Database, change: Change) -> None:
    """Record a change and move the pointer, inside `store.lock_pointers()`.

    The commit comes last. If it fails, the exception makes `lock_pointers` restore the pointers.
    """

    def write(changes: ModelChangeRepository) -> None:
        changes.add(change)
        if change.traffic is not None:
            store.route(change.traffic)
        else:
            store.activate(str(change.version))

    database.write_blocking(lambda session: write(ModelChangeRepository(session)))


@contextmanager
def _translate_store_errors() -> Iterator[None]:
    """Translate failures of the store into those of the service."""
    try:
        yield
    except BundleError as error:
        raise ModelRefusedError(str(error)) from error
    except (OSError, StoreBusyError) as error:
        raise StoreUnavailableError.from_cause(error) from error


def _trace_lineage(activations: Iterable[Activation]) -> list[str]:
    """List the versions that led to the current one, which is last; a rollback removes the last."""
    lineage: list[str] = []
    for change, version, previous_version in activations:
        # The pointer may have been moved without a record since the previous change.
        _append_if_new(lineage, previous_version)
        if change == "rollback":
            while lineage and lineage[-1] != version:
                lineage.pop()
        _append_if_new(lineage, version)
    return lineage


def _append_if_new(lineage: list[str], version: str | None) -> None:
    if version is not None and lineage[-1:] != [version]:
        lineage.append(version)


def _find_rollback_version(store: BundleStore, activations: Iterable[Activation]) -> str | None:
    try:
        return find_rollback_target(activations, store.read_current())
    except OSError:
        # The record stays readable while the store is not.
        return None


def _to_traffic_response(traffic: Traffic) -> ModelTraffic:
    return ModelTraffic(traffic.challenger, traffic.share, traffic.shadow)


def _to_change_response(change: Change) -> RecordedChange:
    return RecordedChange(
        at=format_instant(change.at),
        actor=change.actor,
        change=change.change,
        version=change.version,
        previous_version=change.previous_version,
        reason=change.reason,
        traffic=None if change.traffic is None else _to_traffic_response(change.traffic),
    )
