"""The `kairos retrain` command, as a scheduler runs it."""

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
from tests.cli.world import kairos
from tests.training.ring import ring_world, shuffle_items, write_events
from training.retraining.lock import lock_file
from training.retraining.report import RunReport

RECIPE = """
item_bias = true
profile_histories = 0
export_encoder = false

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
class Job:
    """The files of a retraining job."""

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
        return write_events(events, self.root / "events.parquet")

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
def job(tmp_path: Path) -> Job:
    (tmp_path / "ring.toml").write_text(RECIPE)
    return Job(tmp_path)


def test_a_promotion_exits_with_0_and_prints_its_report(job: Job) -> None:
    output = kairos(*job.command(job.events(ring_world()))).stdout.splitlines()
    assert output[0] == "promoted"
    assert "# Retraining" in Path(output[1]).read_text()
    assert job.store.read_current() is not None


def test_keeping_the_champion_exits_with_0(job: Job) -> None:
    output = kairos(*job.command(job.events(shuffle_items(ring_world())))).stdout
    assert output.startswith("kept\n")
    assert job.store.read_current() is None


def test_a_failed_run_exits_with_1_and_prints_the_reason(job: Job) -> None:
    output = kairos(*job.command(str(job.root / "nowhere.parquet")), exit_code=1).output
    assert "nowhere.parquet" in output
    assert job.reports()[0].result == "failed"


def test_a_failure_is_printed_with_a_value_recorded_without(job: Job) -> None:
    file = job.root / "refused.parquet"
    events = ring_world().head(1).with_columns(user_id=pl.lit(491234567890.0))
    events.write_parquet(file)
    refused = kairos(*job.command(str(file), "--database", job.database), exit_code=1)
    rule = f"{file}, row 1, column 'user_id': an id is text or a whole number"
    assert f"{rule}, but got 491234567890.0; convert" in refused.stderr
    with sqlite3.connect(job.root / "kairos.db") as connection:
        (row,) = connection.execute("SELECT reason, report FROM training_runs").fetchall()
    connection.close()
    assert row[0] == f"{rule}; convert the column to text"
    assert "491234567890" not in row[1]


def test_a_second_run_exits_with_3_and_records_nothing(job: Job) -> None:
    command = job.command(job.events(ring_world()), "--database", job.database)
    kairos(*command)
    before = job.rows()
    with lock_file(job.store.root / ".retraining"):
        output = kairos(*command, exit_code=3).output
    assert f"process {os.getpid()} on" in output
    assert job.rows() == before


def test_two_stores_with_one_database_share_a_lock(job: Job) -> None:
    command = job.command(job.events(ring_world()), "--database", job.database)
    with lock_file(job.root / "kairos.db.retraining"):
        kairos(*command, exit_code=3)
    assert not (job.root / "kairos.db").exists()


def test_the_run_and_the_change_are_recorded(job: Job) -> None:
    kairos("import-events", job.events(ring_world()), "--database", job.database)
    kairos(*job.command(job.database))
    (version,) = job.store.list_versions()
    assert job.rows() == [("promoted", None, version)]
    with sqlite3.connect(job.root / "kairos.db") as connection:
        changes = connection.execute("SELECT change, version FROM model_changes").fetchall()
    connection.close()
    assert changes == [("retrain", version)]


@pytest.mark.slow
def test_events_that_arrived_later_are_left_out(job: Job) -> None:
    kairos("import-events", job.events(ring_world()), "--database", job.database)
    past = ("--until", "2024-06-01T00:00:00Z")
    output = kairos(*job.command(job.database, *past), exit_code=1).output
    assert "--known-by" in output
    kairos(*job.command(job.database, *past, "--known-by", AFTERWARDS))
    assert [result for result, *_ in job.rows()] == ["failed", "promoted"]


def test_erased_users_are_left_out_of_files(job: Job) -> None:
    kairos("migrate", "--database", job.database)
    database = Database(job.database, threads=1, queue=0)
    at = tiny.FIRST_AT + 10_000 * tiny.DAY
    database.write_blocking(
        lambda session: ErasureRepository(session).erase("u7", at, actor="nobody")
    )
    database.close()
    events = ring_world()
    kairos(*job.command(job.events(events), "--database", job.database))
    (report,) = job.reports()
    assert report.data is not None
    assert report.data.erased_events == len(events.filter(user_id="u7")) > 0
    assert report.data.users == events["user_id"].n_unique() - 1


@pytest.mark.slow
def test_the_same_until_uses_the_same_directory(job: Job) -> None:
    command = job.command(job.events(ring_world()), "--until", AFTERWARDS)
    kairos(*command)
    kairos(*command, "--dry-run")
    assert len(list((job.root / "runs").iterdir())) == 1


def test_an_instant_without_an_offset_is_rejected(job: Job) -> None:
    command = job.command("events.parquet", "--until", "2026-01-01T00:00:00")
    assert "--until is an RFC 3339 instant with an offset" in kairos(*command, exit_code=1).output


def test_without_a_terminal_every_phase_is_logged(job: Job) -> None:
    output = kairos(*job.command(job.events(ring_world()))).stderr
    lines = [json.loads(line) for line in output.splitlines()]
    phases = [line["phase"] for line in lines if line["event"] == "retraining_phase"]
    assert phases == ["read", "fit", "evaluate", "write", "gate", "publish", "activate"]
    assert lines[-1]["event"] == "retraining_ended"
    assert lines[-1]["result"] == "promoted"
