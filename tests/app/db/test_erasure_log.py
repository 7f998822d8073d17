"""Logs of erasures: each belongs to one database."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.db.clock import read_time
from app.db.database import Database
from app.db.engine import open_engine
from app.db.erasure_log import ErasureLog, open_erasure_log
from app.db.erasure_replay import Replay, replay_erasures
from app.db.erasures import ErasureRepository
from app.errors import ErasureLogError
from migrations.run import upgrade

STAGING, PRODUCTION = "postgresql://u@staging/kairos", "postgresql://u@production/kairos"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("sqlite:///var/kairos.db", "var/kairos.db.erasures"),
        ("sqlite:////srv/kairos.db", "/srv/kairos.db.erasures"),
        (STAGING, "var/staging-5432-kairos.erasures"),
        (PRODUCTION, "var/production-5432-kairos.erasures"),
        ("postgresql://u:p@Production:6000/kairos", "var/production-6000-kairos.erasures"),
        ("postgresql://u@/k?host=b:1&host=a", "var/a-5432+b-1-k.erasures"),
        ("postgresql://u@/k?host=/run/pg", "var/_run_pg-5432-k.erasures"),
        ("postgresql://u@[::1]/a%2Fb", "var/%3A%3A1-5432-a%2Fb.erasures"),
        ("postgresql://u@", "var/local-5432-u.erasures"),
        ("postgresql://", "var/local-5432-default.erasures"),
    ],
)
def test_each_database_has_a_log_of_its_own(
    url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PGHOST", "PGPORT", "PGDATABASE", "PGUSER"):
        monkeypatch.delenv(variable, raising=False)
    assert open_erasure_log(url).file == Path(name)


def test_what_the_url_leaves_out_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in [("PGHOST", "staging"), ("PGPORT", "6000"), ("PGDATABASE", "other")]:
        monkeypatch.setenv(variable, value)
    assert open_erasure_log("postgresql://").file.name == "staging-6000-other.erasures"
    assert open_erasure_log("postgresql://u@a/k").file.name == "a-6000-k.erasures"


def test_a_log_of_another_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "erasures"
    staging, production = (open_erasure_log(url, file) for url in (STAGING, PRODUCTION))
    staging.append({"a": 1})
    staging.append({"b": 2})
    for use in (production.read, lambda: production.append({"c": 3})):
        with pytest.raises(ErasureLogError, match="is of staging:5432/kairos, and the database in"):
            use()
    assert staging.read() == {"a": 1, "b": 2}
    # As `kairos restore --erasures FILE` reads it.
    assert ErasureLog(file).read() == {"a": 1, "b": 2}


def test_a_log_is_of_every_server_of_its_database(tmp_path: Path) -> None:
    file = tmp_path / "erasures"
    open_erasure_log("postgresql://u@/kairos?host=a&host=b", file).append({"a": 1})
    assert open_erasure_log("postgresql://u@/kairos?host=b&host=c", file).read() == {"a": 1}
    with pytest.raises(ErasureLogError):
        open_erasure_log("postgresql://u@/other?host=a&host=b", file).read()


def test_a_log_that_names_no_database_is_used(tmp_path: Path) -> None:
    ErasureLog(tmp_path / "erasures").append({"a": 1})
    log = open_erasure_log(PRODUCTION, tmp_path / "erasures")
    log.append({"b": 2})
    assert log.read() == {"a": 1, "b": 2}


def test_a_log_of_another_database_erases_nobody(postgresql_url: str, tmp_path: Path) -> None:
    upgrade(postgresql_url)
    open_erasure_log(STAGING, tmp_path / "erasures").append({"a": 1})
    database = Database(postgresql_url, threads=1, queue=0)
    with pytest.raises(ErasureLogError):
        replay_erasures(database, open_erasure_log(postgresql_url, tmp_path / "erasures"))
    database.close()
    engine = open_engine(postgresql_url)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT count(*) FROM erased_users")
        assert rows.scalar_one() == 0
    engine.dispose()


def test_an_erasure_under_way_is_awaited(migrated_sqlite_url: str, tmp_path: Path) -> None:
    log = open_erasure_log(migrated_sqlite_url, tmp_path / "erasures")
    database = Database(migrated_sqlite_url, threads=1, queue=0)
    at = database.read_blocking(read_time)

    def store() -> None:
        database.write_blocking(lambda session: ErasureRepository(session).record({"a": at}))

    # Logged, and not yet committed by the process that erases.
    log.append({"a": at})
    with ThreadPoolExecutor(1) as other:
        replaying = other.submit(replay_erasures, database, log, settle_seconds=60.0)
        with pytest.raises(TimeoutError):
            replaying.result(timeout=0.3)
        store()
        assert replaying.result() == Replay()
    log.append({"b": at})
    assert replay_erasures(database, log, settle_seconds=0.2).erasures == 1
    database.close()


SOUND = b'{"digest":"a","erased_at":1}\n'


@pytest.mark.parametrize(
    "damaged",
    [
        bytes(40),
        SOUND.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + SOUND,
        SOUND.replace(b"digest", b"digesx"),
        SOUND.replace(b'"a"', b'"A"'),
        SOUND.replace(b"1", b"9" * 24),
        SOUND.replace(b"1", b"-1"),
        SOUND.strip() + SOUND,
        SOUND.strip(b"{"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path: Path, damaged: bytes) -> None:
    """Left out, it would bring an erased user back without a word."""
    file = tmp_path / "erasures"
    file.write_bytes(SOUND + damaged.rstrip(b"\n") + b"\n" + SOUND)
    with pytest.raises(ErasureLogError, match=r"line 2 of .* put a copy"):
        ErasureLog(file).read()


def test_joined_logs_of_one_database_are_read(tmp_path: Path) -> None:
    logs = [open_erasure_log(STAGING, tmp_path / name) for name in ("one", "two")]
    for number, log in enumerate(logs):
        log.append({"a": number + 1, f"{number}": 7})
    logs[0].file.write_bytes(b"".join(log.file.read_bytes() for log in logs))
    assert logs[0].read() == {"a": 2, "0": 7, "1": 7}
    with pytest.raises(ErasureLogError, match="is of staging"):
        open_erasure_log(PRODUCTION, logs[0].file).read()
