"""Changing what is served, and writing it down: both, or neither."""

from collections.abc import Callable
from typing import final

from app.db.database import Database
from app.errors import ModelNotFoundError, ModelRefusedError, NothingToRollBackError
from app.models.changes import Change, Move, rollback_target
from app.models.repository import ModelChangeRepository
from app.serving.model_manager import Prove
from model.clock import now
from model.errors import BundleError
from model.store.store import BundleStore
from model.store.traffic import Traffic


@final
class Ledger:
    """Moves a store's pointers, and keeps a record of every move in the database.

    One change waits for another, in whatever process. The record is written first and committed
    last, with the move in between; where the commit fails, the pointers go back. Everything here
    blocks: call it on a thread.

    A version is proved sound, by the `prove` that the caller brings along, before it is pointed at.
    """

    def __init__(self, store: BundleStore, database: Database) -> None:
        self._store = store
        self._database = database

    def activate(
        self,
        version: str,
        prove: Prove,
        *,
        actor: str,
        reason: str | None = None,
        change: Move = "activate",
    ) -> Change:
        """Make a published version the current one.

        Raises:
            BundleError: if there is no such version, or its manifest was altered.
            StoreBusyError, OSError: if the store cannot be changed.
            DatabaseUnavailableError: if the change cannot be written down; it is not made then.
        """
        # Others need not wait for it.
        prove(version)
        with self._store.changing():
            return self._make(
                Change(now(), actor, change, version, self._store.current(), reason),
                lambda: self._store.activate(version),
            )

    def roll_back(self, prove: Prove, *, actor: str, reason: str | None = None) -> Change:
        """Make the version that was current before this one current again.

        Raises:
            NothingToRollBackError: if none was.
            ModelRefusedError: if that one is gone or does not pass. An older one is not taken in
                its place: nobody asked for it.
            StoreBusyError, OSError: if the store cannot be changed.
            DatabaseUnavailableError: if the change cannot be written down; it is not made then.
        """
        with self._store.changing():
            current = self._store.current()
            changes = self._database.read_blocking(
                lambda session: ModelChangeRepository(session).all()
            )
            version = rollback_target(changes, current)
            if version is None:
                raise NothingToRollBackError(
                    "a rollback leads to the version that was current before this one, but the "
                    f"record of changes tells of none before {current or 'the first one'}; "
                    "activate a version by its name"
                )
            try:
                prove(version)
            except (BundleError, ModelNotFoundError, ModelRefusedError) as error:
                raise ModelRefusedError(
                    f"a rollback leads to the version that was current before this one, {version}, "
                    f"but it cannot be served any more ({error}); activate another by its name"
                ) from error
            return self._make(
                Change(now(), actor, "rollback", version, current, reason),
                lambda: self._store.activate(version),
            )

    def route(
        self, traffic: Traffic, prove: Prove, *, actor: str, reason: str | None = None
    ) -> Change:
        """Have other versions answer beside the current one, or none.

        Raises:
            BundleError: if one of them is not published, or its manifest was altered.
            StoreBusyError, OSError: if the store cannot be changed.
            DatabaseUnavailableError: if the change cannot be written down; it is not made then.
        """
        for version in {traffic.challenger, traffic.shadow} - {None}:
            prove(str(version))
        with self._store.changing():
            current = self._store.current()
            return self._make(
                Change(now(), actor, "traffic", current, current, reason, traffic),
                lambda: self._store.route(traffic),
            )

    def _make(self, change: Change, move: Callable[[], None]) -> Change:
        """Within a transaction that is committed last, and a block of the store's that undoes."""

        def write_and_move(changes: ModelChangeRepository) -> None:
            changes.add(change)
            move()

        self._database.write_blocking(
            lambda session: write_and_move(ModelChangeRepository(session))
        )
        return change
