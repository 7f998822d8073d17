"""A database on another machine: reached through TLS, whose certificate is verified."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrations.run import upgrade
from tests.deployment.programs import requires_program
from tests.deployment.tls_database import PASSWORD, TlsDatabase, find_postgres, run_tls_database
from tests.processes import ROOT, eventually, processes

pytestmark = [
    pytest.mark.skipif(
        find_postgres() is None,
        reason="no PostgreSQL with TLS is installed (apt-get install postgresql)",
    ),
    requires_program("openssl", "apt-get install openssl"),
]

EVENT = {"user_id": "u", "item_id": "i1", "action": "view", "timestamp": 1_767_225_600}


@pytest.fixture(scope="module")
def database() -> Iterator[TlsDatabase]:
    """A server with the schema of Kairos."""
    with run_tls_database() as running:
        upgrade(running.build_url())
        yield running


def kairos(*arguments: str, store: Path, database_url: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).with_name("kairos")), *arguments]
    settings = {"KAIROS_DATABASE_URL": database_url, "KAIROS_BUNDLE_STORE": str(store)}
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_connection_of_the_service_is_encrypted(
    database: TlsDatabase, published: Path, tmp_path: Path
) -> None:
    url = database.build_url()
    with processes(tmp_path, published) as start:
        server = start(KAIROS_DATABASE_URL=url)
        assert server.http.post("/v1/events", json={"events": [EVENT]}).json()["accepted"] == 1
        assert server.http.get("/v1/users/u").status_code == 200
        assert database.count_connections().keys() == {True}


def test_a_backup_goes_through_tls(database: TlsDatabase, published: Path, tmp_path: Path) -> None:
    target, url = str(tmp_path / "backup"), database.build_url()
    encrypted = kairos("backup", target, store=published, database_url=url)
    assert encrypted.returncode == 0, encrypted.stderr


def test_a_server_that_requires_tls_refuses_a_client_without_it(
    database: TlsDatabase, published: Path
) -> None:
    url = database.build_url(mode="disable")
    doctor = kairos("doctor", store=published, database_url=url)
    assert doctor.returncode == 1
    assert "no encryption" in doctor.stdout + doctor.stderr


@pytest.mark.parametrize(
    ("host", "is_other_authority"),
    [
        pytest.param("localhost", True, id="another authority"),
        pytest.param("127.0.0.1", False, id="another host"),
    ],
)
def test_a_server_with_a_wrong_certificate_gets_no_event(
    host: str, is_other_authority: bool, database: TlsDatabase, published: Path, tmp_path: Path
) -> None:
    authority = database.other_authority if is_other_authority else None
    url = database.build_url(host=host, authority=authority)
    with processes(tmp_path, published) as start:
        server = start(wait=False, KAIROS_DATABASE_URL=url)
        eventually(server.is_alive)
        ready = server.http.get("/health/ready")
        answer = server.http.post("/v1/events", json={"events": [EVENT]})
        assert PASSWORD not in server.log.read_text()
    assert (ready.status_code, answer.status_code) == (503, 503)
    assert answer.json()["code"] == "database_unavailable"
    doctor = kairos("doctor", store=published, database_url=url)
    assert doctor.returncode == 1
    assert "certificate" in doctor.stdout + doctor.stderr
