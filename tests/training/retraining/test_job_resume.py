"""Retraining after a killed process: a run resumes a decision or checkpoint that is still valid."""

import hashlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests import tiny
from tests.outdated_bundles import age_bundle
from tests.training.retraining.workspace import END, Workspace, add_later_events
from tests.training.ring import COUNTED, GATE, LEARNED, PhaseRecorder, ring_world
from training.config import FitConfig
from training.retraining.job import Phase, RetrainingJob
from training.retraining.report import REPORT


class Killed(BaseException):
    """Stands for the end of a process."""


def run_until_killed(workspace: Workspace, at: Phase, job: RetrainingJob) -> None:
    """Run until a phase begins; then put the report back that a killed process leaves."""
    left: dict[Path, bytes] = {}

    class Killer(PhaseRecorder):
        def start_phase(self, phase: Phase) -> None:
            left.update({file: file.read_bytes() for file in workspace.runs.glob(f"*/{REPORT}")})
            super().start_phase(phase)
            if phase == at:
                raise Killed

    with pytest.raises(Killed):
        workspace.retrain(job, Killer())
    for file in workspace.runs.glob(f"*/{REPORT}"):
        if file in left:
            file.write_bytes(left[file])
        else:
            file.unlink()


def test_a_run_killed_after_its_decision_resumes_it(with_champion: Workspace) -> None:
    job = with_champion.job(add_later_events(ring_world()))
    run_until_killed(with_champion, "publish", job)
    champion = with_champion.store.read_current()
    report = with_champion.retrain(job)
    assert with_champion.recorder.phases == ["publish", "activate"]
    assert (report.result, report.champion) == ("promoted", champion)
    assert with_champion.store.read_current() == report.candidate
    assert report.comparison is not None


@pytest.mark.slow
def test_a_new_champion_invalidates_a_decision(with_champion: Workspace) -> None:
    job = with_champion.job(add_later_events(ring_world()))
    run_until_killed(with_champion, "publish", job)
    with_champion.store.add_copy(tiny.write_bundle(with_champion.root / "other"))
    with_champion.retrain(job)
    assert with_champion.recorder.phases[0] == "read"


def test_an_erasure_invalidates_a_decision(with_champion: Workspace) -> None:
    database = sqlite3.connect(with_champion.root / "kairos.db", isolation_level=None)
    database.execute("CREATE TABLE erased_users (digest, erased_at)")
    job = with_champion.job(
        add_later_events(ring_world()), database=f"sqlite:///{with_champion.root / 'kairos.db'}"
    )
    run_until_killed(with_champion, "publish", job)
    digest = hashlib.sha256(b"u7").hexdigest()
    database.execute("INSERT INTO erased_users VALUES (?, ?)", (digest, END))
    run_until_killed(with_champion, "publish", job)
    assert "read" in with_champion.recorder.phases
    report = with_champion.retrain(job)
    assert "read" not in with_champion.recorder.phases
    assert report.data is not None
    assert report.data.erased_events > 0


@pytest.mark.slow
def test_an_outdated_challenger_invalidates_a_decision(with_champion: Workspace) -> None:
    job = with_champion.job(add_later_events(ring_world()))
    run_until_killed(with_champion, "publish", job)
    (report_file,) = (
        file
        for file in with_champion.runs.glob(f"*/{REPORT}")
        if json.loads(file.read_text())["result"] == "running"
    )
    report = json.loads(report_file.read_text())
    aged = age_bundle(report_file.parent / report["candidate"])
    report_file.write_text(json.dumps(report | {"candidate": aged.name}))
    assert with_champion.retrain(job).result == "promoted"
    assert with_champion.recorder.phases[0] == "read"


@pytest.mark.slow
def test_new_gate_settings_invalidate_a_decision(with_champion: Workspace) -> None:
    job = with_champion.job(add_later_events(ring_world()))
    run_until_killed(with_champion, "publish", job)
    stricter = COUNTED.model_copy(update={"gate": GATE.model_copy(update={"floor": 1.0})})
    assert with_champion.retrain(replace(job, config=stricter)).result == "kept"


def test_a_run_killed_after_activation_is_recorded(with_champion: Workspace) -> None:
    job = with_champion.job(add_later_events(ring_world()))
    run_until_killed(with_champion, "activate", job)
    (bundle,) = set(with_champion.store.list_versions()) - {with_champion.store.read_current()}
    with_champion.store.activate(bundle)
    report = with_champion.retrain(job)
    assert (report.result, report.candidate) == ("promoted", bundle)
    assert with_champion.recorder.phases == []


def test_a_refused_first_challenger_is_not_promoted_later(workspace: Workspace) -> None:
    wild = FitConfig(epochs=1, tokens=400, warmup_steps=0, learning_rate=1e30)
    job = workspace.job(ring_world(), LEARNED.model_copy(update={"fit": wild}))
    report = workspace.retrain(job)
    # The report of a process that was killed after the decision.
    unfinished = report.model_copy(update={"result": "running", "finished_at": None})
    unfinished.write(workspace.runs / report.directory)
    assert workspace.retrain(job).result == "kept"


@pytest.mark.slow
def test_a_killed_fit_resumes_from_its_checkpoint(workspace: Workspace) -> None:
    job = workspace.job(ring_world(), LEARNED)
    run_until_killed(workspace, "evaluate", job)
    workspace.retrain(job)
    assert [epoch for fitting, epoch in workspace.recorder.epochs if fitting == "fit"] == []


@pytest.mark.slow
def test_a_checkpoint_of_changed_events_is_replaced(workspace: Workspace) -> None:
    job = workspace.job(ring_world(), LEARNED)
    run_until_killed(workspace, "evaluate", job)
    workspace.retrain(workspace.job(ring_world().filter(pl.col("user_id") != "u7"), LEARNED))
    assert [epoch for fitting, epoch in workspace.recorder.epochs if fitting == "fit"] == [1, 2, 3]


@pytest.mark.slow
def test_another_job_does_not_use_the_first_ones_checkpoint(workspace: Workspace) -> None:
    job = workspace.job(ring_world(), LEARNED)
    run_until_killed(workspace, "evaluate", job)
    other = LEARNED.model_copy(update={"fit": LEARNED.fit.model_copy(update={"seed": 1})})
    workspace.retrain(replace(job, config=other))
    assert [epoch for fitting, epoch in workspace.recorder.epochs if fitting == "fit"] == [1, 2, 3]
