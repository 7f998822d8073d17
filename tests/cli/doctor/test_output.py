"""The output of `kairos doctor`, and what it leaves unchanged."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrations.run import downgrade
from tests.cli.doctor.checks import Environment, run_doctor, warnings
from tests.cli.world import kairos


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


def test_a_password_is_not_printed(environment: Environment) -> None:
    environment(database_url="postgresql://kairos:s3cret@127.0.0.1:9/kairos")
    output = kairos("doctor", exit_code=1).output
    assert "127.0.0.1:9" in output
    assert "s3cret" not in output
