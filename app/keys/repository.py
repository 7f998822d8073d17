"""API keys in the database."""

from collections.abc import Sequence
from typing import cast, final

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.orm import Session

from app.auth.key_cache import Key, Role
from app.auth.rate_limiter import BURST_SECONDS
from app.auth.shared_limiter import SETTLED_SECONDS, Level, Usage
from app.db.audit import AuditRepository
from app.db.clock import read_time
from app.db.insert import insert_into
from app.db.tables import RateBudget, RateShare, StoredKey

_MICROSECONDS = 1_000_000
_KEPT_SECONDS = 3600.0
"""Age at which the counts of a process are deleted; it has ended long ago."""


@final
class KeyRepository:
    """Reads, adds and revokes keys within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def list_all(self) -> list[Key]:
        """List every key ever created, oldest first."""
        stored: Sequence[StoredKey] = self._session.scalars(
            select(StoredKey).order_by(StoredKey.created_at, StoredKey.key_id)
        ).all()
        return [
            Key(
                key_id=key.key_id,
                name=key.name,
                role=cast(Role, key.role),
                digest=key.digest,
                requests_per_second=key.requests_per_second,
                created_at=key.created_at,
                expires_at=key.expires_at,
                revoked_at=key.revoked_at,
                user_prefix=key.user_prefix,
                may_list_users=key.may_list_users,
            )
            for key in stored
        ]

    def add(self, key: Key, *, actor: str) -> None:
        """Store a new key, and record who created it."""
        self._session.add(
            StoredKey(
                key_id=key.key_id,
                name=key.name,
                role=key.role,
                digest=key.digest,
                requests_per_second=key.requests_per_second,
                created_at=key.created_at,
                expires_at=key.expires_at,
                revoked_at=key.revoked_at,
                user_prefix=key.user_prefix,
                may_list_users=key.may_list_users,
            )
        )
        AuditRepository(self._session).add(
            "create_key",
            actor=actor,
            at=key.created_at,
            key_id=key.key_id,
            name=key.name,
            role=key.role,
        )

    def revoke(self, key_id: str, at: int, *, actor: str) -> bool:
        """Revoke a key, and record who did; return whether there was one of that id to revoke."""
        revoked = self._session.execute(
            update(StoredKey)
            .where(StoredKey.key_id == key_id, StoredKey.revoked_at.is_(None))
            .values(revoked_at=at)
            .returning(StoredKey.key_id)
        )
        if revoked.first() is None:
            return False
        AuditRepository(self._session).add("revoke_key", actor=actor, at=at, key_id=key_id)
        return True


@final
class BudgetRepository:
    """Settles what processes used of the budgets of keys, within the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def settle(self, process: str, usages: Sequence[Usage]) -> dict[str, Level]:
        """Take what a process used from the budgets, and return what is left, by name.

        Transactions of several processes take turns for a budget, in the order of names.

        Args:
            process: a name of the process.
            usages: sorted by name.
        """
        # A lost settlement admits a little more; a commit that waits for the disk costs each time.
        self._session.execute(text("SET LOCAL synchronous_commit = off"))
        at = read_time(self._session)
        self._report(process, usages, at)
        others = self._read_others(process, [usage.name for usage in usages], at)
        # Last, as it makes other processes wait until the commit.
        tokens = self._charge(usages, at)
        return {
            usage.name: Level(
                tokens[usage.name], usage.arrived / (usage.arrived + others.get(usage.name, 0))
            )
            for usage in usages
        }

    def delete_old(self) -> None:
        """Delete the counts of processes that have ended."""
        until = read_time(self._session) - int(_KEPT_SECONDS * _MICROSECONDS)
        self._session.execute(delete(RateShare).where(RateShare.at < until))

    def _charge(self, usages: Sequence[Usage], at: int) -> dict[str, float]:
        """Refill budgets up to an instant, and take what was used; return what is left, by name."""
        full = {usage.name: max(usage.rate * BURST_SECONDS, 1.0) for usage in usages}
        statement = insert_into(self._session, RateBudget)
        self._session.execute(
            statement.values(
                [{"key_id": name, "tokens": most, "at": at} for name, most in full.items()]
            ).on_conflict_do_nothing()
        )
        budgets = {
            name: (tokens, since)
            for name, tokens, since in self._session.execute(
                select(RateBudget.key_id, RateBudget.tokens, RateBudget.at)
                .where(RateBudget.key_id.in_([*full]))
                .order_by(RateBudget.key_id)
                .with_for_update()
            )
        }
        left: dict[str, float] = {}
        for usage in usages:
            tokens, since = budgets[usage.name]
            elapsed = max(at - since, 0) / _MICROSECONDS
            refilled = min(full[usage.name], tokens + elapsed * usage.rate)
            left[usage.name] = refilled - usage.used
        changed = {"tokens": statement.excluded.tokens, "at": statement.excluded.at}
        self._session.execute(
            statement.values(
                [
                    {"key_id": name, "tokens": tokens, "at": max(at, budgets[name][1])}
                    for name, tokens in left.items()
                ]
            ).on_conflict_do_update(index_elements=["key_id"], set_=changed)
        )
        return left

    def _report(self, process: str, usages: Sequence[Usage], at: int) -> None:
        statement = insert_into(self._session, RateShare)
        changed = {"arrived": statement.excluded.arrived, "at": statement.excluded.at}
        self._session.execute(
            statement.values(
                [
                    {"key_id": usage.name, "process": process, "arrived": usage.arrived, "at": at}
                    for usage in usages
                ]
            ).on_conflict_do_update(index_elements=["key_id", "process"], set_=changed)
        )

    def _read_others(self, process: str, names: Sequence[str], at: int) -> dict[str, int]:
        """Read what came to the other processes lately, by name."""
        since = at - int(SETTLED_SECONDS * _MICROSECONDS)
        rows = self._session.execute(
            select(RateShare.key_id, func.sum(RateShare.arrived))
            .where(RateShare.key_id.in_(names), RateShare.process != process, RateShare.at >= since)
            .group_by(RateShare.key_id)
        )
        return {name: int(arrived) for name, arrived in rows}
