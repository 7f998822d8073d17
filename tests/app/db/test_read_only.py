"""PostgreSQL that accepts no writes for a while, as during a failover."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from sqlalchemy import make_url

from app.db.engine import open_engine
from app.errors import DatabaseReadOnlyError
from app.settings import Settings
from tests.app.client import Client, recommend, running
from tests.processes import eventually

EVENT = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_700_000_000}


@pytest.fixture
def client(settings: Settings, migrated_postgresql_url: str) -> Iterator[Client]:
    with running(settings.model_copy(update={"database_url": migrated_postgresql_url})) as client:
        yield client


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """Let the database refuse writes; sessions from before end, as in a failover."""
    name = make_url(url).database
    with psycopg.connect(url.replace(f"/{name}?", "/postgres?"), autocommit=True) as admin:

        def end_sessions() -> None:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )

        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        end_sessions()
        yield
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


def send(client: Client, number: int) -> int:
    event = EVENT | {"event_id": f"e{number}"}
    return client.post("/v1/events", {"events": [event]}).status_code


def count_records(url: str) -> int:
    with psycopg.connect(url) as connection:
        (count,) = connection.execute("SELECT count(*) FROM recommendations").fetchone() or (0,)
    return int(count)


def test_writes_are_refused_and_reads_go_on(client: Client, migrated_postgresql_url: str) -> None:
    assert send(client, 1) == 200
    with read_only(migrated_postgresql_url):
        response = client.post("/v1/events", {"events": [EVENT]})
        assert (response.status_code, response.json()["code"]) == (503, "database_unavailable")
        assert int(response.headers["Retry-After"]) >= 1
        assert client.get("/v1/users/u").status_code == 200
        assert client.post("/v1/recommendations", {"user_id": "u"}).status_code == 200
        ready = client.get("/health/ready")
        assert ready.status_code == 503
        assert ready.json()["database"] == "ok"
        assert "read-only" in ready.json()["writes"]
    eventually(lambda: client.get("/health/ready").status_code == 200)
    assert send(client, 2) == 200


def test_impressions_of_an_outage_are_recorded_after_it(
    client: Client, migrated_postgresql_url: str
) -> None:
    with read_only(migrated_postgresql_url):
        for _ in range(7):
            recommend(client)
        # The background writer has tried, and failed.
        eventually(lambda: "read-only" in client.get("/health/ready").json()["writes"])
        eventually(lambda: len(client.app.state.context.impressions) == 7)
    eventually(lambda: count_records(migrated_postgresql_url) == 7)
    assert client.metric("kairos_recommendation_records_dropped_total") == 0


def test_connections_for_writes_need_a_server_that_takes_them(
    migrated_postgresql_url: str,
) -> None:
    with read_only(migrated_postgresql_url):
        engine = open_engine(migrated_postgresql_url, needs_primary=True)
        with pytest.raises(DatabaseReadOnlyError):
            engine.connect()
        engine.dispose()
