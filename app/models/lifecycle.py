"""Activating, rolling back and routing: what is served, changed by request."""

import asyncio
from collections.abc import Sequence
from typing import final

from app.context import AppContext
from app.errors import StoreUnavailableError
from app.http.types import format_instant
from app.models.changes import Change, rollback_target
from app.models.ledger import Ledger
from app.models.repository import ModelChangeRepository
from app.models.schemas import (
    ChangeList,
    CurrentVersion,
    ModelTraffic,
    RecordedChange,
    TrafficRequest,
)
from model.errors import BundleError
from model.store.traffic import Traffic


@final
class LifecycleService:
    """Opens what is to be served, changes what the store points at, and serves with it."""

    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._ledger = Ledger(context.store, context.database)

    async def activate(self, version: str, *, actor: str, reason: str | None) -> CurrentVersion:
        """Make a published version the current one, for every process.

        Raises:
            ModelNotFoundError: if no such version is published.
            ModelRefusedError: if it cannot be opened; what serves, serves on.
            StoreUnavailableError, DatabaseUnavailableError: if the change cannot be made and
                written down; it is then neither.
        """
        change = await self._context.model_manager.activate(
            lambda prove: self._ledger.activate(version, prove, actor=actor, reason=reason)
        )
        return CurrentVersion(version, change.previous_version)

    async def roll_back(self, *, actor: str, reason: str | None) -> CurrentVersion:
        """Make the version that was current before this one current again, for every process.

        Raises:
            NothingToRollBackError: if none was.
            ModelRefusedError: if that one is gone, or cannot be opened.
            StoreUnavailableError, DatabaseUnavailableError: if the change cannot be made and
                written down; it is then neither.
        """
        change = await self._context.model_manager.activate(
            lambda prove: self._ledger.roll_back(prove, actor=actor, reason=reason)
        )
        return CurrentVersion(str(change.version), change.previous_version)

    async def route(self, asked: TrafficRequest, *, actor: str) -> ModelTraffic:
        """Have other versions answer beside the current one, or none, in every process.

        Raises:
            ModelNotFoundError: if one of them is not published.
            ModelRefusedError: if one of them cannot be opened; nothing changes then.
            StoreUnavailableError, DatabaseUnavailableError: if the change cannot be made and
                written down; it is then neither.
        """
        traffic = Traffic(challenger=asked.challenger, share=asked.share, shadow=asked.shadow)
        await self._context.model_manager.route(
            traffic,
            lambda prove: self._ledger.route(traffic, prove, actor=actor, reason=asked.reason),
        )
        return _told(traffic)

    async def traffic(self) -> ModelTraffic:
        """Which versions answer beside the current one.

        Raises:
            StoreUnavailableError: if the store does not say.
        """
        try:
            return _told(await asyncio.to_thread(self._context.store.traffic))
        except (OSError, BundleError) as error:
            raise StoreUnavailableError.because(error) from error

    async def changes(self, limit: int) -> ChangeList:
        """The most recent changes of what is served, newest first, and where a rollback leads.

        Raises:
            DatabaseUnavailableError: if they cannot be read.
            OverloadedError: if too many requests wait already.
        """
        changes = await self._context.database.read(
            lambda session: ModelChangeRepository(session).all()
        )
        newest = changes[: -limit - 1 : -1]
        return ChangeList(
            tuple(_recorded(change) for change in newest),
            rollback_version=await asyncio.to_thread(self._rollback_version, changes),
        )

    def _rollback_version(self, changes: Sequence[Change]) -> str | None:
        try:
            return rollback_target(changes, self._context.store.current())
        except OSError:
            # The record stays readable while the store is not.
            return None


def _told(traffic: Traffic) -> ModelTraffic:
    return ModelTraffic(traffic.challenger, traffic.share, traffic.shadow)


def _recorded(change: Change) -> RecordedChange:
    return RecordedChange(
        at=format_instant(change.at),
        actor=change.actor,
        change=change.change,
        version=change.version,
        previous_version=change.previous_version,
        reason=change.reason,
        traffic=None if change.traffic is None else _told(change.traffic),
    )
