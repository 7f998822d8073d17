"""Events by month on PostgreSQL: the table in partitions, those of the next months, retention.

A unique constraint of a partitioned table has to include the time, but the id of an event is unique
whatever its time is: a repetition with another time is a repetition. So `event_keys` holds the ids,
and a trigger skips an event whose id is in it, as ON CONFLICT DO NOTHING does otherwise.
"""

import math
import re
from calendar import monthrange
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from app.db.clock import read_time
from app.db.engine import WRITES, open_engine
from app.db.tables import StoredEvent
from model.clock import MICROSECONDS_PER_DAY, from_datetime, to_datetime
from model.errors import KairosError

MONTHS_AHEAD = 3
_DEFAULT = "events_default"
_KEYS = "event_keys"
_WHOLE = "events_whole"
_EVENT_ID_INDEX = "ix_events_event_id"
_OF_MONTH = re.compile(r"events_\d{4}_(0[1-9]|1[0-2])(?!\d)")
_LOCK = int.from_bytes(b"months")
"""The key of the advisory lock of those who change partitions."""
_PATIENCE = "10s"

_IS_PARTITIONED = text(
    "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('events') AND relkind = 'p')"
)
_LIST_PARTITIONS = text(
    "SELECT child.relname, pg_get_expr(child.relpartbound, child.oid) "
    "FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid "
    "WHERE inhparent = to_regclass('events') ORDER BY child.relname"
)
_BOUNDS = re.compile(r"FROM \('?(-?\d+|MINVALUE)'?\) TO \('?(-?\d+|MAXVALUE)'?\)")
_KEEP_KEYS = (
    f"CREATE FUNCTION keep_event_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"INSERT INTO {_KEYS} (event_id, at) VALUES (NEW.event_id, NEW.at) ON CONFLICT DO NOTHING; "
    "IF FOUND THEN RETURN NEW; END IF; RETURN NULL; END $$",
    "CREATE TRIGGER keep_event_key BEFORE INSERT ON events "
    "FOR EACH ROW EXECUTE FUNCTION keep_event_key()",
    f"CREATE FUNCTION drop_event_keys() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"DELETE FROM {_KEYS} USING old_rows WHERE {_KEYS}.event_id = old_rows.event_id; "
    "RETURN NULL; END $$",
    "CREATE TRIGGER drop_event_keys AFTER DELETE ON events REFERENCING OLD TABLE AS old_rows "
    "FOR EACH STATEMENT EXECUTE FUNCTION drop_event_keys()",
)


class PartitionError(KairosError):
    """Events cannot be partitioned or pruned as they were asked to be."""

    code = "event_partitions"


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month of UTC."""

    year: int
    number: int

    @classmethod
    def of(cls, at: int) -> "Month":
        """Return the month of an instant, epoch microseconds."""
        found = to_datetime(at)
        return cls(found.year, found.month)

    def add(self, months: int) -> "Month":
        """Return the month that many months later, or earlier."""
        year, number = divmod(self.year * 12 + self.number - 1 + months, 12)
        return Month(year, number + 1)

    @property
    def begins_at(self) -> int:
        """The first instant, epoch microseconds."""
        return from_datetime(datetime(self.year, self.number, 1, tzinfo=UTC))

    @property
    def ends_at(self) -> int:
        """The first instant after it, epoch microseconds."""
        return self.begins_at + monthrange(self.year, self.number)[1] * MICROSECONDS_PER_DAY

    @property
    def partition(self) -> str:
        """The name of the table of its events."""
        return f"events_{self.year:04}_{self.number:02}"

    @property
    def bounds(self) -> str:
        """The instants of its events, in SQL."""
        return f"FROM ({self.begins_at}) TO ({self.ends_at})"


@dataclass(frozen=True, slots=True)
class Pruned:
    """What retention removes.

    Attributes:
        before: the instant before which no event stays, epoch microseconds.
        partitions: the number of events by partition that is dropped.
        others: events outside the partitions of months.
    """

    before: int
    partitions: dict[str, int]
    others: int

    @property
    def events(self) -> int:
        """The number of events."""
        return sum(self.partitions.values()) + self.others


def is_partitioned(connection: Connection) -> bool:
    """Return whether the events of a database are in partitions."""
    return connection.dialect.name == "postgresql" and bool(connection.scalar(_IS_PARTITIONED))


def is_of_partitions(name: str | None) -> bool:
    """Return whether a table, an index or a constraint exists for the partitions' sake alone."""
    return name is not None and (
        name in {_KEYS, _DEFAULT, _EVENT_ID_INDEX} or _OF_MONTH.match(name) is not None
    )


def partition_events(database_url: str) -> int:
    """Move all events into partitions by month, in one transaction; return how many there are.

    Nobody reads or writes events meanwhile. Replicas of earlier releases cannot write afterwards.

    Raises:
        PartitionError: if the database is SQLite.
        DatabaseUnavailableError: if it does not answer, or others use its events all the time.
    """
    with _open(database_url) as engine:
        with _change(engine) as connection:
            if is_partitioned(connection):
                return 0
            events = _partition(connection)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f"ANALYZE events, {_KEYS}"))
    return events


def are_partitioned(database_url: str) -> bool:
    """Return whether the events of a database are in partitions.

    Raises:
        PartitionError: if it is not PostgreSQL.
    """
    with _open(database_url) as engine, engine.connect() as connection:
        return is_partitioned(connection)


def extend_partitions(database_url: str, months_ahead: int = MONTHS_AHEAD) -> list[str]:
    """Create the partitions of this month and the next ones; return those that were missing.

    Does nothing if events are not partitioned. Events of such a month that came early are moved.

    Raises:
        DatabaseUnavailableError: if it does not answer, or others use its events all the time.
    """
    with _open(database_url) as engine:
        with engine.connect() as connection:
            if not is_partitioned(connection) or not _list_missing(connection, months_ahead):
                return []
        with _change(engine) as connection:
            missing = _list_missing(connection, months_ahead)
            for month in missing:
                _add(connection, month)
    return [month.partition for month in missing]


def prune_events(database_url: str, keep_months: int, *, is_dry_run: bool = False) -> Pruned:
    """Drop the events of all but the last months, this one included.

    Each month is a transaction of its own, in which others wait for its drop, not for its rows.

    Raises:
        PartitionError: if its events are not partitioned.
        DatabaseUnavailableError: if it does not answer, or others use its events all the time.
    """
    with _open(database_url) as engine:
        with engine.connect() as connection:
            if not is_partitioned(connection):
                raise PartitionError(
                    "events must be in partitions by month before months of them are dropped, but "
                    "those of this database are in one table; run kairos partition-events"
                )
            first = Month.of(read_time(Session(connection))).add(1 - keep_months)
            old = [month for month in _list_months(connection) if month < first]
            # Of the whole, as another process may drop a partition meanwhile.
            found = connection.execute(
                text(
                    "SELECT tableoid::regclass::text, count(*) FROM events "
                    f"WHERE at < {first.begins_at} GROUP BY tableoid"
                )
            )
            counts = {str(partition): int(events) for partition, events in found}
        of_months = {month.partition: counts.pop(month.partition, 0) for month in old}
        pruned = Pruned(first.begins_at, of_months, sum(counts.values()))
        if is_dry_run:
            return pruned
        for month in old:
            with _change(engine) as connection:
                # One statement: a detached table would stay if the process ended before its drop.
                connection.execute(text(f"DROP TABLE IF EXISTS {month.partition}"))
        with _change(engine) as connection:
            connection.execute(text(f"DELETE FROM events WHERE at < {first.begins_at}"))
            # Those of dropped partitions, of which no trigger knows.
            connection.execute(text(f"DELETE FROM {_KEYS} WHERE at < {first.begins_at}"))
    return pruned


@contextmanager
def _open(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url, poolclass=NullPool)
    if engine.dialect.name != "postgresql":
        raise PartitionError(
            "partitions by month need PostgreSQL, but this database is SQLite, whose events stay "
            "in one table; use --database, or KAIROS_DATABASE_URL, with a postgresql:// URL"
        )
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def _change(engine: Engine) -> Iterator[Connection]:
    """Change tables in a transaction, one process at a time.

    It gives up a lock that cannot be had, so that requests do not queue up behind it for long.
    """
    with engine.connect().execution_options(**WRITES) as connection, connection.begin():
        connection.execute(text(f"SET LOCAL lock_timeout = '{_PATIENCE}'"))
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        yield connection


def _partition(connection: Connection) -> int:
    connection.execute(text("LOCK TABLE events IN ACCESS EXCLUSIVE MODE"))
    triggers = connection.scalars(
        text(
            "SELECT pg_get_triggerdef(oid) FROM pg_trigger "
            "WHERE tgrelid = to_regclass('events') AND NOT tgisinternal"
        )
    ).all()
    grants = connection.execute(
        text(
            "SELECT DISTINCT grantee, privilege_type FROM information_schema.role_table_grants "
            "WHERE table_schema = current_schema() AND table_name = 'events' "
            "AND grantee <> grantor"
        )
    ).all()
    months = connection.scalars(
        text("SELECT DISTINCT date_trunc('month', to_timestamp(at / 1000000), 'UTC') FROM events")
    ).all()
    now = Month.of(read_time(Session(connection)))
    needed = {now.add(ahead) for ahead in range(MONTHS_AHEAD + 1)}
    needed |= {Month.of(from_datetime(month)) for month in months}

    connection.execute(text(f"ALTER TABLE events RENAME TO {_WHOLE}"))
    connection.execute(
        text(
            f"CREATE TABLE events (LIKE {_WHOLE} INCLUDING DEFAULTS INCLUDING CONSTRAINTS) "
            "PARTITION BY RANGE (at)"
        )
    )
    for month in sorted(needed):
        connection.execute(
            text(f"CREATE TABLE {month.partition} PARTITION OF events FOR VALUES {month.bounds}")
        )
    connection.execute(text(f"CREATE TABLE {_DEFAULT} PARTITION OF events DEFAULT"))
    connection.execute(text("ALTER SEQUENCE events_id_seq OWNED BY events.id"))
    moved = connection.execute(text(f"INSERT INTO events SELECT * FROM {_WHOLE}"))
    connection.execute(
        text(f"CREATE TABLE {_KEYS} AS SELECT event_id, at FROM {_WHOLE} ORDER BY event_id")
    )
    connection.execute(text(f"DROP TABLE {_WHOLE}"))

    # Afterwards, which sorts their entries once.
    connection.execute(
        text(
            f"ALTER TABLE {_KEYS} ADD CONSTRAINT pk_{_KEYS} PRIMARY KEY (event_id), "
            "ALTER at SET NOT NULL"
        )
    )
    connection.execute(text("ALTER TABLE events ADD CONSTRAINT pk_events PRIMARY KEY (id, at)"))
    connection.execute(text(f"CREATE INDEX {_EVENT_ID_INDEX} ON events (event_id)"))
    for index in sorted(StoredEvent.__table__.indexes, key=lambda index: str(index.name)):  # type: ignore[attr-defined]
        index.create(connection)
    for statement in (*triggers, *_KEEP_KEYS):
        connection.exec_driver_sql(statement)
    for grantee, privilege in grants:
        connection.exec_driver_sql(
            f"GRANT {privilege} ON events TO "
            + ("PUBLIC" if grantee == "PUBLIC" else f'"{grantee}"')
        )
    return moved.rowcount


class _Partition(NamedTuple):
    """A partition of the events from an instant until before another, epoch microseconds."""

    name: str
    begins_at: float
    ends_at: float


def _list_partitions(connection: Connection) -> list[_Partition]:
    """List the partitions but the default one, also those that an operator attached."""
    found = (
        (name, _BOUNDS.search(bounds)) for name, bounds in connection.execute(_LIST_PARTITIONS)
    )
    return [
        _Partition(
            name,
            -math.inf if bounds[1] == "MINVALUE" else int(bounds[1]),
            math.inf if bounds[2] == "MAXVALUE" else int(bounds[2]),
        )
        for name, bounds in found
        if bounds is not None
    ]


def _list_months(connection: Connection) -> list[Month]:
    """List the partitions of months; others, of an operator, stay as they are."""
    months = {
        part: Month(int(part.name[7:11]), int(part.name[12:14]))
        for part in _list_partitions(connection)
        if _OF_MONTH.fullmatch(part.name)
    }
    return [
        month
        for part, month in months.items()
        if (part.begins_at, part.ends_at) == (month.begins_at, month.ends_at)
    ]


def _list_missing(connection: Connection, months_ahead: int) -> list[Month]:
    now = Month.of(read_time(Session(connection)))
    there = _list_partitions(connection)
    needed = (now.add(ahead) for ahead in range(months_ahead + 1))
    return [
        month
        for month in needed
        if not any(
            part.begins_at < month.ends_at and month.begins_at < part.ends_at for part in there
        )
    ]


def _add(connection: Connection, month: Month) -> None:
    """Create the partition of a month with the events of it that are in the default one."""
    connection.execute(text(f"CREATE TABLE {month.partition} (LIKE events INCLUDING DEFAULTS)"))
    connection.execute(text(f"LOCK TABLE {_DEFAULT} IN ACCESS EXCLUSIVE MODE"))
    connection.execute(
        text(
            # Of the partition itself: the triggers of `events` do not take it for a deletion.
            f"WITH moved AS (DELETE FROM {_DEFAULT} WHERE at >= {month.begins_at} "
            f"AND at < {month.ends_at} RETURNING *) "
            f"INSERT INTO {month.partition} SELECT * FROM moved"
        )
    )
    connection.execute(
        text(f"ALTER TABLE events ATTACH PARTITION {month.partition} FOR VALUES {month.bounds}")
    )
