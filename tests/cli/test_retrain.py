"""kairos retrain, as cron runs it."""

import json
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from app.db.database import Database
from app.db.erasures import ErasureRepository
from model.store.store import BundleStore
from tests import tiny
from tests.cli.conftest import kairos
from tests.training.ring import ring_world, shuffled, written
from training.retraining.lock import file_lock
from training.retraining.report import RunReport

RECIPE = """
item_bias = true
profile_histories = 0

[split]
kind = "by_time"
test = 0.15
validation = 0.15

[encoder]
kind = "markov"

[fit]
refit = true

[gate]
questions = 20
p95_seconds = 5.0
"""
AFTERWARDS = "2030-01-01T00:00:00Z"


@dataclass(frozen=True)
class Night:
    """Where the job runs."""

    root: Path

    @property
    def store(self) -> BundleStore:
        return BundleStore(self.root / "store")

    @property
    def database(self) -> str:
        return f"sqlite:///{self.root / 'kairos.db'}"

    def command(self, events: str, *more: str) -> list[str]:
        return [
            *("retrain", "--recipe", str(self.root / "ring.toml"), "--events", events),
            *("--store", str(self.store.root), "--runs", str(self.root / "runs")),
            *("--threads", "1", *more),
        ]

    def events(self, events: pl.DataFrame) -> str:
        return written(events, self.root / "events.parquet")

    def rows(self) -> list[tuple[str, str | None, str | None]]:
        with sqlite3.connect(self.root / "kairos.db") as connection:
            found = connection.execute(
                "SELECT result, champion, candidate FROM training_runs ORDER BY started_at"
            ).fetchall()
        connection.close()
        return found

    def reports(self) -> list[RunReport]:
        found = [RunReport.read(directory) for directory in (self.root / "runs").iterdir()]
        return [report for report in found if report is not None]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    (tmp_path / "ring.toml").write_text(RECIPE)
    return Night(tmp_path)


def test_a_promotion_exits_with_0_and_says_where_its_report_is(night: Night) -> None:
    said = kairos(*night.command(night.events(ring_world()))).stdout.splitlines()
    assert said[0] == "promoted"
    assert "# Retraining" in Path(said[1]).read_text()
    assert night.store.current() is not None


def test_keeping_the_champion_is_no_failure(night: Night) -> None:
    said = kairos(*night.command(night.events(shuffled(ring_world())))).stdout
    assert said.startswith("kept\n")
    assert night.store.current() is None


def test_a_run_that_cannot_decide_exits_with_1_and_says_why(night: Night) -> None:
    said = kairos(*night.command(str(night.root / "nowhere.parquet")), exit_code=1).output
    assert "nowhere.parquet" in said
    assert night.reports()[0].result == "failed"


def test_the_second_of_two_exits_with_3_and_leaves_the_record_alone(night: Night) -> None:
    command = night.command(night.events(ring_world()), "--database", night.database)
    kairos(*command)
    before = night.rows()
    with file_lock(night.store.root / ".retraining"):
        said = kairos(*command, exit_code=3).output
    assert f"process {os.getpid()} on" in said
    assert night.rows() == before


def test_two_stores_with_one_database_are_one_job(night: Night) -> None:
    command = night.command(night.events(ring_world()), "--database", night.database)
    with file_lock(night.root / "kairos.db.retraining"):
        kairos(*command, exit_code=3)
    assert not (night.root / "kairos.db").exists()


def test_the_database_keeps_the_record_and_the_change(night: Night) -> None:
    kairos("import-events", night.events(ring_world()), "--database", night.database)
    kairos(*night.command(night.database))
    (version,) = night.store.versions()
    assert night.rows() == [("promoted", None, version)]
    with sqlite3.connect(night.root / "kairos.db") as connection:
        changes = connection.execute("SELECT change, version FROM model_changes").fetchall()
    connection.close()
    assert changes == [("retrain", version)]


def test_what_arrived_later_was_not_known(night: Night) -> None:
    kairos("import-events", night.events(ring_world()), "--database", night.database)
    past = ("--until", "2024-06-01T00:00:00Z")
    refusal = kairos(*night.command(night.database, *past), exit_code=1).output
    assert "--known-by" in refusal
    kairos(*night.command(night.database, *past, "--known-by", AFTERWARDS))
    assert [result for result, *_ in night.rows()] == ["failed", "promoted"]


def test_erased_users_are_left_out_of_files_too(night: Night) -> None:
    kairos("migrate", "--database", night.database)
    database = Database(night.database, threads=1, queue=0)
    at = tiny.FIRST_AT + 10_000 * tiny.DAY
    database.write_blocking(lambda session: ErasureRepository(session).erase("u7", at))
    database.close()
    events = ring_world()
    kairos(*night.command(night.events(events), "--database", night.database))
    (report,) = night.reports()
    assert report.data is not None
    assert report.data.erased_events == len(events.filter(user_id="u7")) > 0
    assert report.data.users == events["user_id"].n_unique() - 1


def test_the_same_until_is_the_same_directory(night: Night) -> None:
    command = night.command(night.events(ring_world()), "--until", AFTERWARDS)
    kairos(*command)
    kairos(*command, "--dry-run")
    assert len(list((night.root / "runs").iterdir())) == 1


def test_an_instant_without_an_offset_is_refused(night: Night) -> None:
    command = night.command("events.parquet", "--until", "2026-01-01T00:00:00")
    assert "--until is an RFC 3339 instant with an offset" in kairos(*command, exit_code=1).output


def test_without_a_terminal_every_phase_is_a_log_line(night: Night) -> None:
    said = kairos(*night.command(night.events(ring_world()))).stderr
    lines = [json.loads(line) for line in said.splitlines()]
    phases = [line["phase"] for line in lines if line["event"] == "retraining_phase"]
    assert phases == ["read", "fit", "evaluate", "write", "gate", "publish", "activate"]
    assert lines[-1]["event"] == "retraining_ended"
    assert lines[-1]["result"] == "promoted"
