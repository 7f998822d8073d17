"""Changing what is served, and writing it down: both, or neither."""

from collections.abc import Callable
from dataclasses import replace
from typing import final

from app.db.database import Database
from app.errors import NothingToRollBackError
from app.models.changes import Change, Move, version_before
from app.models.repository import ModelChangeRepository
from model.bundle.store import BundleStore
from model.bundle.traffic import Traffic
from model.clock import now
from model.errors import KairosError


class TurnedMeanwhileError(KairosError):
    """Another change came in between, and a rollback now leads elsewhere."""

    code = "turned_meanwhile"


@final
class Ledger:
    """Moves a store's pointers, and keeps a record of every move in the database.

    One change waits for another, in whatever process. The record is written first and committed
    last, with the move in between; where the commit fails, the pointers go back. Everything here
    blocks: call it on a thread.

    Opening a version before it is pointed at is the caller's business.
    """

    def __init__(self, store: BundleStore, database: Database) -> None:
        self._store = store
        self._database = database

    def activate(
        self, version: str, *, actor: str, reason: str | None = None, change: Move = "activate"
    ) -> Change:
        """Make a published version the current one.

        Raises:
            BundleError: if there is no such version, or its manifest was altered.
            StoreBusyError, OSError: if the store cannot be changed.
            DatabaseUnavailableError: if the change cannot be written down; it is not made then.
        """
        return self._make(
            lambda current, _: Change(now(), actor, change, version, current, reason),
            lambda: self._store.activate(version),
        )

    def before(self) -> str:
        """The version that a rollback leads to.

        Raises:
            NothingToRollBackError: if none was current before this one.
            DatabaseUnavailableError: if that cannot be read.
        """
        changes = self._database.read_now(lambda session: ModelChangeRepository(session).all())
        return _before(changes, self._store.current())

    def roll_back(self, version: str, *, actor: str, reason: str | None = None) -> Change:
        """Make the version before the current one the current one.

        Args:
            version: that version, as `before` told it and the caller has opened it.

        Raises:
            NothingToRollBackError: if none was current before this one.
            TurnedMeanwhileError: if a rollback now leads to another version.
            BundleError: if the version is no longer published, or its manifest was altered.
            StoreBusyError, OSError: if the store cannot be changed.
            DatabaseUnavailableError: if the change cannot be written down; it is not made then.
        """

        def decide(current: str | None, changes: ModelChangeRepository) -> Change:
            target = _before(changes.all(), current)
            if target != version:
                raise TurnedMeanwhileError(
                    f"a rollback leads to the version before the current one, but that is now "
                    f"{target}, not {version}; ask again"
                )
            return Change(now(), actor, "rollback", version, current, reason)

        return self._make(decide, lambda: self._store.activate(version))

    def route(self, traffic: Traffic, *, actor: str, reason: str | None = None) -> Change:
        """Have other versions answer beside the current one, or none.

        Raises:
            BundleError: if one of them is not published, or its manifest was altered.
            StoreBusyError, OSError: if the store cannot be changed.
            DatabaseUnavailableError: if the change cannot be written down; it is not made then.
        """
        return self._make(
            lambda current, _: replace(
                Change(now(), actor, "traffic", current, current, reason), traffic=traffic
            ),
            lambda: self._store.route(traffic),
        )

    def _make(
        self,
        decide: Callable[[str | None, ModelChangeRepository], Change],
        move: Callable[[], None],
    ) -> Change:
        with self._store.changing():
            current = self._store.current()

            def write_and_move(changes: ModelChangeRepository) -> Change:
                change = decide(current, changes)
                changes.add(change)
                move()
                return change

            return self._database.write_now(
                lambda session: write_and_move(ModelChangeRepository(session))
            )


def _before(changes: list[Change], current: str | None) -> str:
    version = version_before(changes, current)
    if version is None:
        raise NothingToRollBackError(
            "a rollback leads to the version that was current before this one, but the record of "
            f"changes tells of none before {current or 'the first activation'}; activate a version "
            "by its name"
        )
    return version
