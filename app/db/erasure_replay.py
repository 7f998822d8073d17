"""Erasing users again whom a restored backup brought back."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic, sleep

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.db.clock import read_time
from app.db.database import Database
from app.db.erasure_log import ErasureLog
from app.db.erasures import DeletedSlice, ErasureRepository, compute_user_digest
from app.db.tables import StoredEvent, StoredRecommendation
from model.clock import MICROSECONDS_PER_SECOND

_USERS_PER_PAGE = 1000
_SECONDS_BETWEEN_READS = 0.1
_ERASURES_PER_PAGE = 1000
_ROWS_PER_SLICE = 5_000


@dataclass(frozen=True, slots=True)
class Replay:
    """What replaying a log of erasures did.

    Attributes:
        erasures: those that the database did not know.
        rows: events and impressions deleted again.
        logged: erasures that the log did not know.
    """

    erasures: int = 0
    rows: int = 0
    logged: int = 0


def replay_erasures(database: Database, log: ErasureLog, *, settle_seconds: float = 0.0) -> Replay:
    """Make a database and its log of erasures agree: each gets what only the other knows.

    Rows up to the instant of an erasure that the database forgot are deleted again. Later rows are
    of a user who returned, and stay. Costs one small statement if the two agree; else every user's
    id is read once. The database knows an erasure only once its rows are deleted, so the next
    replay finishes one that was interrupted.

    Args:
        settle_seconds: how long another process may take from logging an erasure to storing it.
            One that was logged since is awaited, not taken for forgotten.

    Raises:
        ErasureLogError: if the log cannot be read or written.
        DatabaseUnavailableError: if the database does not answer; replaying again is safe.
    """
    unlogged, forgotten, is_settled = _compare(database, log, settle_seconds)
    ends_at = monotonic() + settle_seconds
    while not is_settled and monotonic() < ends_at:
        sleep(_SECONDS_BETWEEN_READS)
        unlogged, forgotten, is_settled = _compare(database, log, settle_seconds)
    if unlogged:
        log.append(unlogged)
    rows = 0
    if forgotten:
        # From here on copies of erased rows are refused. Until the rows are deleted, each erasure
        # is stored a microsecond early, so that a later replay still finds it missing.
        _record(database, {it: at - 1 for it, at in forgotten.items()})
        rows = sum(_erase(database, *found) for found in _find_users(database, forgotten))
        _record(database, forgotten)
    return Replay(len(forgotten), rows, len(unlogged))


def _compare(
    database: Database, log: ErasureLog, settle_seconds: float
) -> tuple[dict[str, int], dict[str, int], bool]:
    """Find the erasures that only the database knows, those that only the log knows, by digest.

    The third value is whether none of the latter may be under way in another process.
    """
    logged = log.read()
    stored, now = database.read_blocking(
        lambda session: (ErasureRepository(session).read_all(), read_time(session))
    )
    unlogged = {it: at for it, at in stored.items() if at > logged.get(it, at - 1)}
    forgotten = {it: at for it, at in logged.items() if at > stored.get(it, at - 1)}
    since = now - round(settle_seconds * MICROSECONDS_PER_SECOND)
    return unlogged, forgotten, all(at <= since for at in forgotten.values())


def _record(database: Database, erasures: dict[str, int]) -> None:
    """Store erasures in slices: each transaction has the time of one request."""
    digests = list(erasures)
    for first in range(0, len(digests), _ERASURES_PER_PAGE):
        page = {it: erasures[it] for it in digests[first : first + _ERASURES_PER_PAGE]}
        database.write_blocking(partial(_record_page, page))


def _record_page(page: dict[str, int], session: Session) -> None:
    ErasureRepository(session).record(page)


def _erase(database: Database, user_id: str, until: int) -> int:
    """Delete the rows of a user in slices: each transaction has the time of one request."""
    rows, is_last = 0, False
    while not is_last:
        deleted, is_last = database.write_blocking(partial(_erase_slice, user_id, until))
        rows += deleted
    return rows


def _erase_slice(user_id: str, until: int, session: Session) -> DeletedSlice:
    """Delete a slice, and with the last one store the erasure."""
    repository = ErasureRepository(session)
    deleted = repository.delete_slice(user_id, until, most=_ROWS_PER_SLICE)
    if deleted.is_last:
        repository.record({compute_user_digest(user_id): until})
    return deleted


def _find_users(database: Database, erasures: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Find the stored users of some digests, in slices."""
    for column in (StoredEvent.user_id, StoredRecommendation.user_id):
        after = ""
        while page := _read_page(database, column, after):
            for user_id in page:
                digest = compute_user_digest(user_id)
                if digest in erasures:
                    yield user_id, erasures[digest]
            after = page[-1]


def _read_page(
    database: Database,
    column: InstrumentedAttribute[str] | InstrumentedAttribute[str | None],
    after: str,
) -> list[str]:
    page = select(column).distinct().where(column > after).order_by(column).limit(_USERS_PER_PAGE)
    return database.read_blocking(lambda session: [str(it) for it in session.scalars(page)])
