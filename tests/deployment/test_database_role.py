"""docker/database/create_role.sh: the role with which Kairos connects to PostgreSQL."""

import os
import subprocess
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from app.settings import Settings
from migrations.run import upgrade
from tests.app.client import running
from tests.deployment.programs import requires_program
from tests.processes import ROOT

PASSWORD = 'it\'s-"quoted"'
SCRIPT = ROOT / "docker" / "database" / "create_role.sh"


@pytest.fixture
def role_url(postgresql_server: str) -> str:
    """The URL of the database that the script creates, for the role that it creates."""
    server = make_url(postgresql_server)
    environment = {
        **os.environ,
        "PGHOST": str(server.query["host"]),
        "POSTGRES_USER": str(server.username),
        "DATABASE_PASSWORD": PASSWORD,
    }
    subprocess.run([str(SCRIPT)], env=environment, check=True, capture_output=True)
    return server.set(username="kairos", password=PASSWORD, database="kairos").render_as_string(
        hide_password=False
    )


@requires_program("psql", "apt-get install postgresql-client")
def test_the_role_serves_but_reaches_nothing_else(role_url: str, published: Path) -> None:
    upgrade(role_url)
    with running(Settings(database_url=role_url, bundle_store=published)) as client:
        assert client.get("/health/ready").status_code == 200
        event = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_767_225_600}
        assert client.post("/v1/events", {"events": [event]}).json()["accepted"] == 1
        assert client.request("DELETE", "/v1/users/u").json()["deleted_events"] == 1
    with psycopg.connect(role_url, autocommit=True) as connection:
        rights = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
        row = connection.execute(f"SELECT {rights} FROM pg_roles WHERE rolname = 'kairos'")
        assert row.fetchone() == (False,) * 5
        for beyond in ("COPY (SELECT 1) TO PROGRAM 'true'", "SELECT pg_read_file('/etc/passwd')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(beyond)
