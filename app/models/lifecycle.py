"""Activating, rolling back and routing: what is served, changed by request."""

import asyncio
from typing import final

from app.errors import ModelNotFoundError, ModelRefusedError, StoreUnavailableError
from app.models.changes import Change
from app.models.ledger import Ledger, TurnedMeanwhileError
from app.models.repository import ModelChangeRepository
from app.models.schemas import (
    ChangeList,
    CurrentVersion,
    ModelTraffic,
    RecordedChange,
    TrafficRequest,
)
from app.parts import Parts
from app.wire import rfc_3339
from model.bundle.traffic import Traffic
from model.errors import BundleError

_TRIES = 10


@final
class LifecycleService:
    """Opens what is to be served, changes what the store points at, and serves with it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._ledger = Ledger(parts.store, parts.database)

    async def activate(self, version: str, *, actor: str, reason: str | None) -> CurrentVersion:
        """Make a published version the current one, for every process.

        Raises:
            ModelNotFoundError: if no such version is published.
            ModelRefusedError: if it cannot be opened; what serves, serves on.
            StoreUnavailableError, DatabaseUnavailableError: if the change cannot be made and
                written down; it is then neither.
        """
        change = await self._parts.serving.activate(
            version, lambda: self._ledger.activate(version, actor=actor, reason=reason)
        )
        return CurrentVersion(version, change.previous_version)

    async def roll_back(self, *, actor: str, reason: str | None) -> CurrentVersion:
        """Make the version before the current one the current one, for every process.

        Raises:
            NothingToRollBackError: if none was current before this one.
            ModelRefusedError: if that one is no longer there, or cannot be opened. An older one is
                not taken in its place: nobody asked for it.
            StoreUnavailableError, DatabaseUnavailableError: if the change cannot be made and
                written down; it is then neither.
        """
        for _ in range(_TRIES):
            version = await asyncio.to_thread(self._ledger.before)
            try:
                change = await self._move_back(version, actor=actor, reason=reason)
            except TurnedMeanwhileError:
                continue
            except (ModelNotFoundError, ModelRefusedError) as error:
                raise ModelRefusedError(
                    f"a rollback leads to the version before the current one, which was {version}, "
                    f"but it cannot be served any more ({error}); activate another by its name"
                ) from error
            return CurrentVersion(version, change.previous_version)
        raise StoreUnavailableError(
            f"a rollback needs a moment without other changes, but found none in {_TRIES} tries; "
            "see GET /v1/models/changes for who makes them"
        )

    async def route(self, asked: TrafficRequest, *, actor: str) -> ModelTraffic:
        """Have other versions answer beside the current one, or none, in every process.

        Raises:
            ModelNotFoundError: if one of them is not published.
            ModelRefusedError: if one of them cannot be opened; nothing changes then.
            StoreUnavailableError, DatabaseUnavailableError: if the change cannot be made and
                written down; it is then neither.
        """
        traffic = Traffic(challenger=asked.challenger, share=asked.share, shadow=asked.shadow)
        await self._parts.serving.route(
            traffic, lambda: self._ledger.route(traffic, actor=actor, reason=asked.reason)
        )
        return _told(traffic)

    async def traffic(self) -> ModelTraffic:
        """Which versions answer beside the current one.

        Raises:
            StoreUnavailableError: if the store does not say.
        """
        try:
            return _told(await asyncio.to_thread(self._parts.store.traffic))
        except (OSError, BundleError) as error:
            raise StoreUnavailableError(str(error)) from error

    async def changes(self, limit: int) -> ChangeList:
        """The most recent changes of what is served, newest first.

        Raises:
            DatabaseUnavailableError: if they cannot be read.
            OverloadedError: if too many requests wait already.
        """
        changes = await self._parts.database.read(
            lambda session: ModelChangeRepository(session).newest(limit)
        )
        return ChangeList(tuple(_recorded(change) for change in changes))

    async def _move_back(self, version: str, *, actor: str, reason: str | None) -> Change:
        return await self._parts.serving.activate(
            version, lambda: self._ledger.roll_back(version, actor=actor, reason=reason)
        )


def _told(traffic: Traffic) -> ModelTraffic:
    return ModelTraffic(traffic.challenger, traffic.share, traffic.shadow)


def _recorded(change: Change) -> RecordedChange:
    return RecordedChange(
        at=rfc_3339(change.at),
        actor=change.actor,
        change=change.change,
        version=change.version,
        previous_version=change.previous_version,
        reason=change.reason,
        traffic=None if change.traffic is None else _told(change.traffic),
    )
