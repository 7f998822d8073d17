"""Reads and erases users. A user exists only as stored events."""

from collections.abc import Callable, Iterable

import structlog

from app.context import AppContext
from app.db.audit import AuditRepository
from app.db.clock import read_time
from app.db.database import Database
from app.db.erasure_log import ErasureLog
from app.db.erasures import Erasure, ErasureRepository
from app.db.events import EventRepository
from app.errors import OverloadedError
from app.http.types import format_instant
from app.serving.impressions import ImpressionBuffer
from app.users.schemas import ErasedUser, UserEvent, UserHistory, UserList, UserSummary

MOST_UNRECORDED = 100
"""Users of a list that the audit does not mention, at most."""

_log = structlog.get_logger()


async def list_known_users(context: AppContext, *, prefix: str, limit: int, actor: str) -> UserList:
    """List the first users whose ids start with `prefix`; record that if they may be many.

    Args:
        actor: who requested the list.

    Raises:
        DatabaseUnavailableError: if the events cannot be read, or the list cannot be recorded.
        OverloadedError: if too many requests are waiting.
    """
    async with context.overviews.take_turn():
        users = await context.database.read(
            lambda session: EventRepository(session).list_users(prefix, limit)
        )
    if limit > MOST_UNRECORDED:
        # Not in one transaction: SQLite's only writer would wait for the reading. Nobody gets a
        # list that is not recorded.
        await context.database.write(
            lambda session: AuditRepository(session).add(
                "list_users", actor=actor, at=context.clock.now(), users=len(users)
            )
        )
    return UserList(
        tuple(
            UserSummary(user.user_id, user.events, format_instant(user.last_at)) for user in users
        )
    )


async def read_user_history(context: AppContext, user_id: str, *, limit: int) -> UserHistory:
    """Read the newest events of a user; none for an unknown user.

    Raises:
        DatabaseUnavailableError: if the events cannot be read.
        OverloadedError: if too many requests are waiting.
    """
    events, span = await context.database.read(
        lambda session: (
            EventRepository(session).list_newest(user_id, limit),
            EventRepository(session).summarize_user(user_id),
        )
    )
    return UserHistory(
        user_id,
        tuple(
            UserEvent(
                event_id=event.sender_event_id or event.event_id,
                item_id=event.item_id,
                action=event.action,
                timestamp=format_instant(event.at),
                value=event.value,
                recommendation_id=event.recommendation_id,
                properties=event.properties,
            )
            for event in events
        ),
        None if span.first_at is None else format_instant(span.first_at),
        span.events,
    )


async def erase_user_data(
    database: Database,
    user_id: str,
    *,
    actor: str,
    log: ErasureLog,
    impressions: ImpressionBuffer | None = None,
) -> ErasedUser:
    """Delete all stored data of a user; return after the commit.

    If nothing was stored, the answer warns of it: the id may be misspelt. The erasure is recorded
    all the same, so that events which arrive late are rejected.

    Impressions that other processes still hold in memory never reach the database, since their
    writers leave erased users out.

    Args:
        actor: who requested the erasure. It is logged; the erased user is not.
        log: keeps the erasure outside the database.
        impressions: the impressions in this process's memory, if it serves.

    Raises:
        ErasureLogError: if the erasure cannot be logged; nothing is erased.
        DatabaseUnavailableError: if it is unknown whether the user was erased; erasing again is
            safe.
        OverloadedError: if too many requests are waiting.
    """
    dropped = 0 if impressions is None else impressions.drop_user(user_id)
    erasure = await _erase(database, user_id, actor, log)
    await _empty_write_ahead_log(database)
    return ErasedUser(
        deleted_events=erasure.events,
        deleted_recommendations=erasure.recommendations,
        erased_until=format_instant(erasure.until),
        warnings=("nothing_stored",)
        if erasure.events == erasure.recommendations == dropped == 0
        else (),
    )


async def erase_users_data(
    database: Database,
    user_ids: Iterable[str],
    *,
    actor: str,
    log: ErasureLog,
    on_erased: Callable[[str, Erasure], None],
) -> None:
    """Delete all stored data of users, each in a transaction of its own.

    Args:
        actor: who requested the erasure. It is logged; the erased users are not.
        log: keeps the erasures outside the database.
        on_erased: called after the commit of each erasure with the user's id.

    Raises:
        ErasureLogError: if an erasure cannot be logged; that user is not erased.
        DatabaseUnavailableError: if it is unknown whether a user was erased; erasing again is safe.
        OverloadedError: if too many requests are waiting.
    """
    for user_id in user_ids:
        on_erased(user_id, await _erase(database, user_id, actor, log))
    await _empty_write_ahead_log(database)


async def _erase(database: Database, user_id: str, actor: str, log: ErasureLog) -> Erasure:
    erasure = await database.write(
        lambda session: ErasureRepository(session).erase(
            user_id, read_time(session), actor=actor, log=log
        )
    )
    _log.info(
        "user_erased",
        actor=actor,
        deleted_events=erasure.events,
        deleted_recommendations=erasure.recommendations,
    )
    return erasure


async def _empty_write_ahead_log(database: Database) -> None:
    """Remove the erased rows from SQLite's log file. A failure does not undo the erasure."""
    try:
        was_emptied = await database.truncate_wal()
    except OverloadedError:
        was_emptied = False
    if not was_emptied:
        _log.warning(
            "write_ahead_log_not_emptied",
            consequence="erased rows stay legible in the -wal file until it is overwritten",
            remedy="erase the user again when fewer readers are active",
        )
