"""R14: an erased user is nowhere, and comes back by no copy of the old events."""

import re
import sqlite3
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl
from sqlalchemy import MetaData, select

from app.db.engine import open_engine
from app.http.types import format_instant
from app.settings import Settings
from tests.app.client import Client, running
from tests.app.tiny_bundle import FIRST_AT, HOUR, ITEM_IDS
from tests.cli.world import kairos
from tests.promises.figures import Figures
from tests.promises.strength import Strength
from training.data.database_source import read_erasures
from training.data.sources import read_events

EVENTS_EACH = 20


def test_an_erased_user_is_nowhere(
    settings: Settings,
    migrated_database_url: str,
    tmp_path: Path,
    strength: Strength,
    figures: Figures,
) -> None:
    database_url = migrated_database_url
    users = [f"{uuid4()}/ü" for _ in range(strength.of(short=12, full=400))]
    erased, others = users[::2], users[1::2]
    copy, again, batch = (tmp_path / f"{name}.parquet" for name in ("copy", "again", "batch"))
    seconds = []
    with running(settings.model_copy(update={"database_url": database_url})) as client:
        for user_id in users:
            send(client, events_of(user_id))
            client.get(f"/v1/users/{user_id}/recommendations?n=5")
        kairos("export-events", "--database", database_url, "--output", copy)
        with asking_and_replaying(client, users):
            for user_id in erased:
                began = time.perf_counter()
                response = client.request("DELETE", f"/v1/users/{user_id}")
                seconds.append(time.perf_counter() - began)
                assert response.status_code == 200
        # What was shown after the erasure was shown to somebody new; forget that one, too.
        for user_id in erased:
            client.request("DELETE", f"/v1/users/{user_id}")
        for user_id in users:
            send(client, events_of(user_id))
        kairos("import-events", copy, "--database", database_url)
        wait_until_written(client)
        rows_left, rows_of_others = rows_that_name(database_url, erased, others)
        is_file = database_url.startswith("sqlite")
        legible = legible_after_vacuum = None
        if is_file:
            legible = legible_in_files(tmp_path, erased)
            vacuum(tmp_path / "kairos.db")
            legible_after_vacuum = legible_in_files(tmp_path, erased)
    kairos("export-events", "--database", database_url, "--output", again)
    kairos(
        *("recommend", "--events", copy, "--erased", database_url, "--no-exclude-seen"),
        *("--store", settings.bundle_store, "--output", batch),
    )
    learned = read_events(database_url)
    learned_from_the_copy = read_events(copy, erasures=read_erasures(database_url))
    in_training = named(learned, erased) + named(learned_from_the_copy, erased)
    in_export, in_batch = (named(pl.read_parquet(file), erased) for file in (again, batch))
    figures.keep(
        "R14",
        "SQLite" if is_file else "PostgreSQL",
        users=len(users),
        erased=len(erased),
        rows_left=rows_left,
        ids_legible_in_the_file=legible,
        ids_legible_after_vacuum=legible_after_vacuum,
        in_training_set=in_training,
        in_export=in_export,
        in_batch_output=in_batch,
        erasing_p50_seconds=statistics.median(seconds),
    )
    assert (rows_left, in_training, in_export, in_batch) == (0, 0, 0, 0)
    # What SQLite deletes it overwrites, but not always what it copied while it balanced its trees.
    assert (legible or 0) <= len(erased) // 20
    assert not legible_after_vacuum
    assert rows_of_others >= len(others) * EVENTS_EACH
    assert named(learned, others) == named(learned_from_the_copy, others) == len(others)
    assert named(pl.read_parquet(batch), others) == len(others)


def events_of(user_id: str) -> list[dict[str, Any]]:
    return [
        {
            "event_id": f"{user_id} {number}" if number % 2 else None,
            "user_id": user_id,
            "item_id": ITEM_IDS[number % len(ITEM_IDS)],
            "action": "view",
            "timestamp": format_instant(FIRST_AT + number * HOUR),
            "properties": {"who": user_id},
        }
        for number in range(EVENTS_EACH)
    ]


def send(client: Client, events: list[dict[str, Any]]) -> None:
    assert client.post("/v1/events", {"events": events}).status_code == 200


@contextmanager
def asking_and_replaying(client: Client, users: list[str]) -> Iterator[None]:
    """Old batches are sent again, and everybody is recommended something, all the while."""
    is_over = threading.Event()

    def go_on() -> None:
        while not is_over.is_set():
            for user_id in users:
                send(client, events_of(user_id))
                client.get(f"/v1/users/{user_id}/recommendations?n=5")
                if is_over.is_set():
                    return

    busy = threading.Thread(target=go_on)
    busy.start()
    try:
        yield
    finally:
        is_over.set()
        busy.join()


def wait_until_written(client: Client) -> None:
    """Let what was shown before now reach the database: a last batch may be on its way."""
    pause = threading.Event()
    while len(client.app.state.context.impressions):
        pause.wait(0.05)
    pause.wait(1.0)


def rows_that_name(database_url: str, *groups: list[str]) -> list[int]:
    """For each group of users, the rows of any table in which any column holds one of their ids."""
    engine = open_engine(database_url)
    tables = MetaData()
    tables.reflect(engine)
    # An id within JSON may be escaped there; its first part is plain in either spelling.
    named = [re.compile("|".join(user_id.partition("/")[0] for user_id in ids)) for ids in groups]
    found = [0] * len(groups)
    with engine.connect() as connection:
        for table in tables.sorted_tables:
            for row in connection.execute(select(table)):
                told = repr(tuple(row))
                for number, ids in enumerate(named):
                    found[number] += ids.search(told) is not None
    engine.dispose()
    return found


def legible_in_files(folder: Path, users: list[str]) -> int:
    """Ids that can be read in the bytes of a SQLite database, its log included."""
    content = b"".join(file.read_bytes() for file in folder.glob("kairos.db*"))
    return sum(user_id.partition("/")[0].encode() in content for user_id in users)


def vacuum(file: Path) -> None:
    """What an operator does who wants nothing left in unused corners of a SQLite file."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def named(table: pl.DataFrame, users: list[str]) -> int:
    """How many of the users a table names."""
    return len(set(table["user_id"].unique()) & set(users))
