"""Events in the database: the row that requests and imports share, and its queries."""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, final

import orjson
from sqlalchemy import ARRAY, Select, String, any_, bindparam, collate, func, literal, select
from sqlalchemy.orm import Session

from app.db.clicks import list_clicked_versions, lock_click_counts
from app.db.erasures import ErasureRepository
from app.db.insert import insert_into
from app.db.partitions import is_partitioned
from app.db.tables import StoredEvent
from app.errors import DatabaseDamagedError
from model.history import Event

_NATURAL = "sha256:"
_OF_SENDER = "sender-sha256:"
MOST_COUNTED = 1000
"""Events that are counted of one user in a list of users, at most."""

LATEST_EVENTS = 10_000
"""Events among which the users with the latest ones are sought."""

_LAST_CHARACTER = "\U0010ffff"


class EventRow(NamedTuple):
    """One event as the table `events` stores it. Instants are epoch microseconds, UTC.

    Attributes:
        event_id: the idempotency key; see `compute_natural_key`.
        at: when the event happened.
        recommendation_id: the recommendation that led to the event, if any.
        received_at: when the service received the event.
        sender_event_id: the sender's own id, where `event_id` is a hash of it and the sender.
    """

    event_id: str
    user_id: str
    item_id: str
    action: str
    at: int
    value: float | None
    recommendation_id: str | None
    properties: dict[str, Any] | None
    received_at: int
    sender_event_id: str | None = None


def compute_natural_key(
    user_id: str, item_id: str, action: str, at: int, occurrence: int = 0
) -> str:
    """Compute the idempotency key of an event without `event_id`: a hash of its identifying fields.

    Args:
        at: epoch microseconds.
        occurrence: the number of equal events before this one in the same source. A request cannot
            distinguish a repetition from a retry, so there it is 0; a file can.
    """
    fields: list[str | int] = [user_id, item_id, action, at]
    if occurrence:
        fields.append(occurrence)
    return f"{_NATURAL}{hashlib.sha256(orjson.dumps(fields)).hexdigest()}"


def is_natural_key(event_id: str) -> bool:
    """Return whether an id is of the form of `compute_natural_key`, and so not its sender's."""
    return _is_hash(event_id, _NATURAL)


def is_sender_key(event_id: str) -> bool:
    """Return whether an id is of the form of `compute_sender_key`."""
    return _is_hash(event_id, _OF_SENDER)


def _is_hash(event_id: str, kind: str) -> bool:
    return event_id.startswith(kind) and len(event_id) == len(kind) + 64


def compute_sender_key(user_prefix: str, event_id: str) -> str:
    """Compute the idempotency key of an event whose id is unique among those of one sender.

    No other sender with a prefix can take it: those get other hashes.

    Args:
        user_prefix: the prefix of the sender's key, which all of its keys share.
        event_id: the sender's id.
    """
    return f"{_OF_SENDER}{hashlib.sha256(orjson.dumps([user_prefix, event_id])).hexdigest()}"


@dataclass(frozen=True, slots=True)
class UserActivity:
    """A user with stored events: how many, and the instant of the last (epoch microseconds).

    `events` is at most `MOST_COUNTED`.
    """

    user_id: str
    events: int
    last_at: int


class UserSpan(NamedTuple):
    """All stored events of a user: the instant of the first (epoch microseconds), and how many."""

    first_at: int | None
    events: int


@lru_cache
def _select_history(dialect: str) -> "Select[str, int, str]":
    """Select a user's last events up to an instant; kept, as building it takes as long as a read.

    Its parameters are `user_id`, `query_time` and `max_events`.
    """
    collation = "BINARY" if dialect == "sqlite" else "C"
    action = collate(StoredEvent.action, collation).label("action")
    return (
        select(StoredEvent.item_id, StoredEvent.at, action)
        .distinct()
        .where(
            StoredEvent.user_id == bindparam("user_id"), StoredEvent.at <= bindparam("query_time")
        )
        .order_by(StoredEvent.at.desc(), StoredEvent.item_id.desc(), action.desc())
        .limit(bindparam("max_events"))
    )


def build_inserts(session: Session, rows: Sequence[EventRow]) -> list[dict[str, Any]]:
    """Build the values of an INSERT of events, in the order in which to insert them.

    A transaction waits for another one that inserts the same event. Two that insert the same events
    in different orders would wait for each other: on PostgreSQL a deadlock, which takes a second to
    detect, and again for each batch that is aborted and repeated. So every transaction inserts them
    in the order of `event_id`, with `id`s in the order of `rows`, that of their arrival.
    """
    inserts = [row._asdict() for row in rows]
    # On SQLite a writing transaction is exclusive from its beginning.
    if len(rows) == 1 or session.get_bind().dialect.name == "sqlite":
        return inserts
    sequence = func.pg_get_serial_sequence(StoredEvent.__tablename__, StoredEvent.id.name)
    numbers = func.generate_series(1, len(rows)).table_valued("number")
    ids = session.scalars(select(func.nextval(sequence)).select_from(numbers))
    for insert, number in zip(inserts, sorted(ids), strict=True):
        insert["id"] = number
    return sorted(inserts, key=lambda insert: insert["event_id"])


def require_stored(session: Session, event_ids: Sequence[str]) -> None:
    """Check that events which an INSERT skipped are repetitions of stored ones.

    It names no constraint, as partitions by month have another one. So it would also skip an event
    whose `id` is taken, if the sequence of the ids lags, as after a restore by other tools.

    Raises:
        DatabaseDamagedError: if one is not stored.
    """
    if not event_ids or session.get_bind().dialect.name == "sqlite":
        return
    # A partition that is dropped leaves the ids of its events behind: nothing could be said.
    if is_partitioned(session.connection()):
        return
    sought = any_(literal([*event_ids], ARRAY(String)))
    stored = select(StoredEvent.event_id).where(StoredEvent.event_id == sought)
    missing = {*event_ids} - {*session.scalars(stored)}
    if missing:
        raise DatabaseDamagedError(
            "the id of a new event must be above those of the stored ones, but the database drew "
            f"one that is taken, and {len(missing)} events were not stored; run SELECT "
            "setval('events_id_seq', (SELECT max(id) FROM events)), and send them again"
        )


class SeenItems(NamedTuple):
    """The distinct items of a user's events, and whether every event was read for them."""

    item_ids: frozenset[str]
    is_complete: bool


class AddedEvents(NamedTuple):
    """The outcome of adding events.

    Attributes:
        new: the rows that were added; the rest were duplicates or of erased users.
        clicked_versions: for each added row that clicked a stored impression, the model version
            that was shown.
        erased_until: for each given row, the instant of its user's erasure if the row is from
            before it, else None.
    """

    new: tuple[EventRow, ...]
    clicked_versions: tuple[str, ...]
    erased_until: tuple[int | None, ...]


@final
class EventRepository:
    """Reads and adds events within a transaction that the caller owns."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, rows: Sequence[EventRow]) -> AddedEvents:
        """Add events, except those already stored and those from before their user's erasure."""
        if not rows:
            return AddedEvents((), (), ())
        erasures = ErasureRepository(self._session).find_erasures(rows, adding_to=StoredEvent)
        allowed: dict[str, EventRow] = {}
        for row, until in zip(rows, erasures, strict=True):
            if until is None:
                allowed.setdefault(row.event_id, row)
        new_ids = self._insert(list(allowed.values()))
        new = tuple(row for event_id, row in allowed.items() if event_id in new_ids)
        naming = [row.event_id for row in new if row.recommendation_id is not None]
        clicked_versions = list_clicked_versions(self._session, StoredEvent.event_id, naming)
        return AddedEvents(new, clicked_versions, tuple(erasures))

    def read_history(self, user_id: str, query_time: int, max_events: int) -> list[Event]:
        """Read the last `max_events` events of a user up to `query_time`, as a `Query` sorts them.

        Each event is read once, even if an import stored it several times.
        """
        rows = self._session.execute(
            _select_history(self._session.get_bind().dialect.name),
            {"user_id": user_id, "query_time": query_time, "max_events": max_events},
        ).all()
        return [Event(item_id, at, action) for item_id, at, action in reversed(rows)]

    def read_histories(
        self, user_id: str, query_times: Iterable[int], max_events: int
    ) -> list[Event]:
        """Read the last `max_events` events up to each of some instants; see `read_history`.

        The result is sorted and holds each event once; it may have further events between these.
        """
        read: list[Event] = []
        for query_time in sorted(set(query_times), reverse=True):
            until, known = query_time, 0
            if read and read[0].at <= query_time:
                if bisect_right(read, query_time, key=attrgetter("at")) >= max_events:
                    continue
                # From within the earliest instant on, of which some events may be unread.
                until = read[0].at
                known = bisect_right(read, until, key=attrgetter("at"))
            page = self.read_history(user_id, until, known + max_events)
            read = page + read[known:]
            if len(page) < known + max_events:
                break
        return read

    def list_seen_items(self, user_id: str, query_time: int, max_events: int) -> SeenItems:
        """List the distinct items of a user's latest `max_events` events up to `query_time`."""
        history = (StoredEvent.user_id == user_id, StoredEvent.at <= query_time)
        newest_first = (StoredEvent.at.desc(), StoredEvent.id.desc())
        latest = (
            select(StoredEvent.item_id)
            .where(*history)
            .order_by(*newest_first)
            .limit(max_events)
            .subquery()
        )
        # The index holds what this reads.
        beyond = select(StoredEvent.id).where(*history).order_by(*newest_first).offset(max_events)
        return SeenItems(
            frozenset(self._session.scalars(select(latest.c.item_id).distinct())),
            is_complete=self._session.scalar(beyond.limit(1)) is None,
        )

    def list_newest(self, user_id: str, limit: int) -> Sequence[StoredEvent]:
        """Read the latest events of a user, newest first."""
        return self._session.scalars(
            select(StoredEvent)
            .where(StoredEvent.user_id == user_id)
            .order_by(StoredEvent.at.desc(), StoredEvent.id.desc())
            .limit(limit)
        ).all()

    def summarize_user(self, user_id: str) -> UserSpan:
        """Read how many events a user has, and the instant of the first.

        Reads all entries of the user in the index: 10,000 take about a millisecond.
        """
        first_at, events = self._session.execute(
            select(func.min(StoredEvent.at), func.count()).where(StoredEvent.user_id == user_id)
        ).one()
        return UserSpan(first_at, events)

    def list_users(self, prefix: str, limit: int) -> list[UserActivity]:
        """Read the first users whose ids start with `prefix`, in code point order.

        Jumps from user to user in the index, and reads at most `MOST_COUNTED` events of each.
        """
        # Of the prefix as a range: LIKE ignores case on SQLite.
        first = (
            select(func.min(StoredEvent.user_id).label("user_id"), literal(1).label("number"))
            .where(StoredEvent.user_id.between(prefix, prefix + _LAST_CHARACTER))
            .cte("users", recursive=True)
        )
        next_id = (
            select(func.min(StoredEvent.user_id))
            .where(
                StoredEvent.user_id > first.c.user_id,
                StoredEvent.user_id <= prefix + _LAST_CHARACTER,
            )
            .scalar_subquery()
        )
        users = first.union_all(
            select(next_id, first.c.number + 1).where(
                first.c.user_id.is_not(None), first.c.number < limit
            )
        )
        of_user = select(StoredEvent.id).where(StoredEvent.user_id == users.c.user_id)
        counted = of_user.limit(MOST_COUNTED).correlate(users).subquery()
        newest = (
            select(func.max(StoredEvent.at))
            .where(StoredEvent.user_id == users.c.user_id)
            .scalar_subquery()
        )
        rows = self._session.execute(
            select(
                users.c.user_id,
                select(func.count()).select_from(counted).scalar_subquery(),
                newest,
            )
            .where(users.c.user_id.is_not(None))
            .order_by(users.c.number)
        )
        return [UserActivity(*row) for row in rows]

    def list_latest_users(self, query_time: int, prefix: str, limit: int) -> list[str]:
        """List the users of the latest `LATEST_EVENTS` events up to `query_time`.

        The user of the latest event comes first.

        Args:
            prefix: of their ids. Applied to these events, so that a rare one costs no more.
        """
        latest = (
            select(StoredEvent.user_id, StoredEvent.at)
            .where(StoredEvent.at <= query_time)
            # As its index has them.
            .order_by(StoredEvent.at.desc(), StoredEvent.item_id.desc(), StoredEvent.action.desc())
            .limit(LATEST_EVENTS)
            .subquery()
        )
        return list(
            self._session.scalars(
                select(latest.c.user_id)
                .where(latest.c.user_id.between(prefix, prefix + _LAST_CHARACTER))
                .group_by(latest.c.user_id)
                .order_by(func.max(latest.c.at).desc(), latest.c.user_id)
                .limit(limit)
            )
        )

    def _insert(self, rows: Sequence[EventRow]) -> frozenset[str]:
        """Insert rows and return the ids of those that are new; existing ones stay unchanged."""
        if not rows:
            return frozenset()
        if any(row.recommendation_id is not None for row in rows):
            lock_click_counts(self._session)
        statement = (
            insert_into(self._session, StoredEvent)
            # Of whichever constraint: where events are in partitions, a trigger skips repetitions.
            .on_conflict_do_nothing()
            .returning(StoredEvent.event_id)
        )
        inserts = build_inserts(self._session, rows)
        new = frozenset(self._session.execute(statement, inserts).scalars())
        require_stored(self._session, [row.event_id for row in rows if row.event_id not in new])
        return new
