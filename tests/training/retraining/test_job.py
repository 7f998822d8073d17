"""A retraining job from its events to the active version, and what it leaves in the store."""

import json
from dataclasses import replace

import polars as pl
import pytest

from model.clock import to_datetime
from model.errors import EventSourceError, TrainingError, UnknownItemError
from tests import tiny
from tests.training.retraining.workspace import END, Workspace, add_later_events
from tests.training.ring import COUNTED, GATE, PhaseRecorder, ring_world
from training.data.split import LeaveOneOutConfig
from training.retraining.job import Phase
from training.retraining.report import PAGE, REPORT, RunReport


def test_the_first_good_model_is_published_and_served(workspace: Workspace) -> None:
    report = workspace.retrain(workspace.job(ring_world()))
    assert (report.result, report.champion) == ("promoted", None)
    assert workspace.store.read_current() == report.candidate
    assert workspace.recorder.phases == [
        *("read", "fit", "evaluate", "write", "gate", "publish", "activate")
    ]


def test_a_run_writes_its_report_as_json_and_markdown(with_champion: Workspace) -> None:
    report = with_champion.retrain(with_champion.job(add_later_events(ring_world())))
    directory = with_champion.runs / report.directory
    assert RunReport.read(directory) == report
    written_report = json.loads((directory / REPORT).read_text())
    assert written_report["comparison"]["rows"].keys() == {
        *("challenger", "challenger_withheld", "champion", "champion_withheld"),
        *("popular_all_time", "popular_last_week", "last_item_markov", "counting_live"),
    }
    assert written_report["data"]["events"] == 2 * len(ring_world())
    page = (directory / PAGE).read_text()
    assert report.comparison is not None
    assert f"| champion | {report.comparison.rows['champion']['ndcg@10']:.4f} |" in page
    assert all(it.sentence in page for it in report.decision.checks)  # type: ignore[union-attr]


def test_a_dry_run_decides_and_changes_nothing(workspace: Workspace) -> None:
    report = workspace.retrain(workspace.job(ring_world(), promotes=False))
    assert report.result == "passed"
    assert report.decision is not None
    assert report.decision.promote
    assert workspace.store.list_versions() == []
    assert workspace.recorder.phases[-1] == "gate"


def test_a_champion_activated_meanwhile_stays(with_champion: Workspace) -> None:
    champion = with_champion.store.read_current()
    other = tiny.write_bundle(with_champion.root / "other")

    class Operator(PhaseRecorder):
        """Activates another version while the job runs."""

        def start_phase(self, phase: Phase) -> None:
            super().start_phase(phase)
            if phase == "gate":
                with_champion.store.add_copy(other)

    report = with_champion.retrain(with_champion.job(add_later_events(ring_world())), Operator())
    assert report.result == "kept"
    assert str(champion) in str(report.reason)
    assert with_champion.store.read_current() == other.name
    assert report.candidate in with_champion.store.list_versions()


def test_events_after_the_cut_off_are_left_out(workspace: Workspace) -> None:
    events = ring_world()
    middle = int(events["timestamp"].to_physical().median())  # type: ignore[arg-type]
    report = workspace.retrain(workspace.job(events, until=middle, promotes=False))
    assert report.data is not None
    assert report.data.last_at <= to_datetime(middle)
    assert report.data.events == events.filter(pl.col("timestamp").to_physical() <= middle).height


def test_a_run_without_events_fails(workspace: Workspace) -> None:
    with pytest.raises(TrainingError, match="had none by"):
        workspace.retrain(workspace.job(ring_world(), until=0))
    (directory,) = workspace.runs.iterdir()
    report = RunReport.read(directory)
    assert report is not None
    assert report.result == "failed"
    assert "had none by" in str(report.reason)


def test_events_that_cannot_be_read_leave_the_champion_alone(with_champion: Workspace) -> None:
    champion = with_champion.store.read_current()
    job = replace(with_champion.job(), events=str(with_champion.root / "nowhere.parquet"))
    with pytest.raises(EventSourceError):
        with_champion.retrain(job)
    assert with_champion.store.read_current() == champion


def test_a_model_is_measured_on_what_came_last(workspace: Workspace) -> None:
    config = COUNTED.model_copy(update={"split": LeaveOneOutConfig()})
    with pytest.raises(TrainingError, match='must be "by_time"'):
        workspace.retrain(workspace.job(ring_world(), config))


@pytest.mark.slow
def test_old_versions_and_runs_are_removed_on_request(with_champion: Workspace) -> None:
    lenient = COUNTED.model_copy(update={"gate": GATE.model_copy(update={"may_lose": 1.0})})
    for number in range(1, 4):
        job = with_champion.job(
            add_later_events(ring_world(), days=100 * number), lenient, known_by=END - number
        )
        assert with_champion.retrain(job).result == "promoted"
    assert len(with_champion.store.list_versions()) == 4
    last = with_champion.job(
        add_later_events(ring_world(), days=400), lenient, keep=2, until=END + 1
    )
    report = with_champion.retrain(last)
    assert report.result == "promoted"
    assert len(with_champion.store.list_versions()) == 2
    assert with_champion.store.read_current() in with_champion.store.list_versions()
    assert len(list(with_champion.runs.iterdir())) == 2
    assert (with_champion.runs / report.directory).is_dir()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.jsonl", '{"user_id":491234567890.5,"item_id":"i","timestamp":0}'),
        ("e.jsonl", '{"user_id":"491234567890","item_id":"i","timestamp":'),
        ("e.csv", "user_id,item_id,timestamp\nu,i,491234567890000"),
        ("e.csv", "491234567890,i,0"),
        ("e.csv", "491234567890,491234567890,0"),
    ],
)
def test_a_failed_run_records_nothing_of_its_events(
    workspace: Workspace, name: str, text: str
) -> None:
    error = fail_to_read(workspace, name, text)
    assert "491234567890" in str(error)
    assert all("491234567890" not in it.read_text() for it in workspace.runs.glob("*/*"))


def test_a_failed_run_records_nothing_of_an_unclosed_field(workspace: Workspace) -> None:
    fail_to_read(workspace, "e.csv", 'user_id,item_id,timestamp\nu,i,"491234567890')
    assert all("491234567890" not in it.read_text() for it in workspace.runs.glob("*/*"))


def fail_to_read(workspace: Workspace, name: str, text: str) -> EventSourceError:
    """Retrain from a file that cannot be read; its run names the file."""
    file = workspace.root / name
    file.write_text(text)
    with pytest.raises(EventSourceError) as caught:
        workspace.retrain(replace(workspace.job(), events=str(file)))
    (report,) = map(RunReport.read, workspace.runs.iterdir())
    assert report is not None
    assert str(file) in str(report.reason)
    return caught.value


def test_a_failed_run_records_no_item_of_its_events(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UnknownItemError("an item must be in the catalog, but 'secret' is not")

    monkeypatch.setattr("training.retraining.retrain.evaluate_challenger", fail)
    with pytest.raises(UnknownItemError, match="secret"):
        workspace.retrain(workspace.job(ring_world()))
    (report,) = map(RunReport.read, workspace.runs.iterdir())
    assert report is not None
    assert report.reason == "UnknownItemError"
