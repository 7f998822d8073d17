"""The job in this process, without a database: from the events to the active version."""

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pytest

from model.bundle.manifest import DIGEST_CHARACTERS, MANIFEST, WEIGHTS, digest_of
from model.clock import to_datetime
from model.errors import BundleError, EventSourceError, TrainingError
from model.store.store import CURRENT, BundleStore
from tests import tiny
from tests.training.ring import COUNTED, GATE, LEARNED, PhaseRecorder, ring_world, shuffled, written
from training.config import FitConfig, RunConfig
from training.data.split import LeaveOneOutConfig
from training.retraining.gate import Check
from training.retraining.job import NoJournal, Phase, RetrainingJob
from training.retraining.report import PAGE, REPORT, RunReport
from training.retraining.retrain import retrain

END = tiny.FIRST_AT + 1_000 * tiny.DAY


@dataclass
class Place:
    """A store, its runs, and the jobs run on them."""

    root: Path
    recorder: PhaseRecorder = field(default_factory=PhaseRecorder)

    def __post_init__(self) -> None:
        self.store = BundleStore(self.root / "store")
        self.runs = self.root / "runs"

    def job(
        self, events: pl.DataFrame | None = None, config: RunConfig = COUNTED, **more: object
    ) -> RetrainingJob:
        file = self.root / "events.parquet"
        if events is not None:
            written(events, file)
        known = {"until": END, "known_by": END}
        return RetrainingJob(config, "ring", str(file), None, **known | more)  # type: ignore[arg-type]

    def retrain(self, job: RetrainingJob, recorder: PhaseRecorder | None = None) -> RunReport:
        self.recorder = recorder or PhaseRecorder()
        return retrain(
            job,
            store=self.store,
            runs=self.runs,
            journal=NoJournal(self.store),
            progress=self.recorder,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def champion_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("champion"))
    assert place.retrain(place.job(ring_world())).result == "promoted"
    return place.root


@pytest.fixture
def with_champion(champion_root: Path, tmp_path: Path) -> Place:
    """A place with a champion."""
    shutil.copytree(champion_root, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Place(tmp_path)


def check(report: RunReport, name: str) -> Check:
    assert report.decision is not None
    (found,) = [check for check in report.decision.checks if check.name == name]
    return found


def later(events: pl.DataFrame, days: int = 100) -> pl.DataFrame:
    """The same users, with more events."""
    return pl.concat(
        [events, ring_world(seed=1).with_columns(pl.col("timestamp") + pl.duration(days=days))]
    )


def test_the_first_good_model_is_published_and_served(place: Place) -> None:
    report = place.retrain(place.job(ring_world()))
    assert (report.result, report.champion) == ("promoted", None)
    assert place.store.current() == report.candidate
    assert place.recorder.phases == [
        *("read", "fit", "evaluate", "write", "gate", "publish", "activate")
    ]


def test_a_run_writes_its_report_as_json_and_markdown(with_champion: Place) -> None:
    report = with_champion.retrain(with_champion.job(later(ring_world())))
    directory = with_champion.runs / report.directory
    assert RunReport.read(directory) == report
    written_report = json.loads((directory / REPORT).read_text())
    assert written_report["comparison"]["rows"].keys() == {
        *("challenger", "challenger_withheld", "champion", "champion_withheld"),
        *("popular_all_time", "popular_last_week", "last_item_markov"),
    }
    assert written_report["data"]["events"] == 2 * len(ring_world())
    page = (directory / PAGE).read_text()
    assert report.comparison is not None
    assert f"| champion | {report.comparison.rows['champion']['ndcg@10']:.4f} |" in page
    assert all(it.sentence in page for it in report.decision.checks)  # type: ignore[union-attr]


def test_a_challenger_as_good_as_the_champion_takes_its_place(with_champion: Place) -> None:
    champion = with_champion.store.current()
    report = with_champion.retrain(with_champion.job(later(ring_world())))
    assert report.result == "promoted", report.reason
    assert report.champion == champion != with_champion.store.current()


def test_no_question_is_in_any_models_training_data(with_champion: Place) -> None:
    learned_until = int(ring_world()["timestamp"].to_physical().max())  # type: ignore[arg-type]
    comparison = with_champion.retrain(with_champion.job(later(ring_world()))).comparison
    assert comparison is not None
    assert comparison.first_at > learned_until
    assert comparison.known_to_champion == 0


def test_with_few_new_events_the_champion_is_favoured(
    with_champion: Place,
) -> None:
    report = with_champion.retrain(with_champion.job(known_by=END - 1))
    assert report.comparison is not None
    assert report.comparison.known_to_champion == report.comparison.questions
    assert "is favoured" in (with_champion.runs / report.directory / PAGE).read_text()


def test_all_models_rank_the_same_items(
    place: Place,
) -> None:
    small = ring_world(items=6)
    assert place.retrain(place.job(small)).result == "promoted"
    moved = ring_world(seed=1).with_columns(pl.col("timestamp") + pl.duration(days=50))
    report = place.retrain(place.job(pl.concat([small, moved])))
    assert report.comparison is not None
    assert report.comparison.candidates == 12
    rows = report.comparison.rows
    assert rows["champion"]["hit_rate@10"] <= 0.6  # half of the answers are new to it
    assert rows["challenger"]["hit_rate@10"] > 0.9
    assert report.result == "promoted"


def test_shuffled_labels_are_refused(with_champion: Place) -> None:
    champion = with_champion.store.current()
    report = with_champion.retrain(with_champion.job(shuffled(later(ring_world()))))
    assert report.result == "kept"
    assert not check(report, "popularity").passed
    assert with_champion.store.current() == champion
    assert len(with_champion.store.versions()) == 1
    assert "popularity" in str(report.reason)


def test_a_challenger_worse_than_the_champion_is_refused(with_champion: Place) -> None:
    new = later(ring_world())
    is_asked = new["timestamp"] > new["timestamp"].quantile(0.85)
    # The training events are shuffled; the questions are not.
    broken = pl.concat([shuffled(new.filter(~is_asked)), new.filter(is_asked)])
    lenient = GATE.model_copy(update={"popularity_lead": -1.0})
    champion = with_champion.store.current()
    config = COUNTED.model_copy(update={"gate": lenient})
    report = with_champion.retrain(with_champion.job(broken, config))
    assert report.result == "kept"
    assert not check(report, "champion").passed
    assert "lead over the champion" in str(report.reason)
    assert with_champion.store.current() == champion


def test_a_run_that_diverges_is_refused_by_the_gate(with_champion: Place) -> None:
    champion = with_champion.store.current()
    wild = FitConfig(epochs=2, tokens=400, warmup_steps=0, learning_rate=1e30)
    report = with_champion.retrain(
        with_champion.job(config=LEARNED.model_copy(update={"fit": wild}))
    )
    assert report.result == "kept"
    assert not check(report, "sound").passed
    assert report.candidate is None
    assert with_champion.store.current() == champion


def test_a_dry_run_decides_and_changes_nothing(place: Place) -> None:
    report = place.retrain(place.job(ring_world(), promotes=False))
    assert report.result == "passed"
    assert report.decision is not None
    assert report.decision.promote
    assert place.store.versions() == []
    assert place.recorder.phases[-1] == "gate"


def test_a_champion_activated_meanwhile_stays(with_champion: Place) -> None:
    champion = with_champion.store.current()
    other = tiny.write_bundle(with_champion.root / "other")

    class Operator(PhaseRecorder):
        """Activates another version while the job runs."""

        def start_phase(self, phase: Phase) -> None:
            super().start_phase(phase)
            if phase == "gate":
                with_champion.store.add_copy(other)

    report = with_champion.retrain(with_champion.job(later(ring_world())), Operator())
    assert report.result == "kept"
    assert str(champion) in str(report.reason)
    assert with_champion.store.current() == other.name
    assert report.candidate in with_champion.store.versions()


def test_events_after_the_cut_off_are_left_out(place: Place) -> None:
    events = ring_world()
    middle = int(events["timestamp"].to_physical().median())  # type: ignore[arg-type]
    report = place.retrain(place.job(events, until=middle, promotes=False))
    assert report.data is not None
    assert report.data.last_at <= to_datetime(middle)
    assert report.data.events == events.filter(pl.col("timestamp").to_physical() <= middle).height


def test_a_run_without_events_fails(place: Place) -> None:
    with pytest.raises(TrainingError, match="had none by"):
        place.retrain(place.job(ring_world(), until=0))
    (directory,) = place.runs.iterdir()
    report = RunReport.read(directory)
    assert report is not None
    assert report.result == "failed"
    assert "had none by" in str(report.reason)


def test_events_that_cannot_be_read_leave_the_champion_alone(with_champion: Place) -> None:
    champion = with_champion.store.current()
    job = replace(with_champion.job(), events=str(with_champion.root / "nowhere.parquet"))
    with pytest.raises(EventSourceError):
        with_champion.retrain(job)
    assert with_champion.store.current() == champion


def test_a_model_is_measured_on_what_came_last(place: Place) -> None:
    config = COUNTED.model_copy(update={"split": LeaveOneOutConfig()})
    with pytest.raises(TrainingError, match='must be "by_time"'):
        place.retrain(place.job(ring_world(), config))


@pytest.mark.slow
def test_a_warm_start_is_measured_on_later_events_only(place: Place) -> None:
    config = LEARNED.model_copy(update={"gate": GATE.model_copy(update={"may_lose": 1.0})})
    learned = config.model_copy(
        update={"gate": config.gate.model_copy(update={"popularity_lead": -1.0})}
    )
    assert place.retrain(place.job(ring_world(), learned)).result == "promoted"
    with pytest.raises(TrainingError, match="later than the champion's training events"):
        place.retrain(place.job(config=learned, warm_start=True))
    report = place.retrain(place.job(later(ring_world()), learned, warm_start=True))
    assert report.warm_start
    assert report.comparison is not None
    assert report.comparison.known_to_champion == 0


def test_a_warm_start_from_another_model_kind_fails(with_champion: Place) -> None:
    champion = with_champion.store.current()
    with pytest.raises(TrainingError, match="of the same architecture"):
        with_champion.retrain(with_champion.job(config=LEARNED, warm_start=True))
    assert with_champion.store.current() == champion


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_outdated_champion_can_be_replaced(with_champion: Place, warm_start: bool) -> None:
    champion = age_champion(with_champion.store)
    report = with_champion.retrain(with_champion.job(later(ring_world()), warm_start=warm_start))
    assert (report.result, report.champion) == ("promoted", champion), report.reason
    assert not report.warm_start
    assert report.comparison is not None
    assert "champion" not in report.comparison.rows
    assert check(report, "popularity").passed
    assert f"{champion} is of format 1" in str(report.reason)
    assert str(report.note) in (with_champion.runs / report.directory / PAGE).read_text()
    assert with_champion.store.current() == report.candidate


def test_an_outdated_champion_stays_if_the_gate_refuses(with_champion: Place) -> None:
    champion = age_champion(with_champion.store)
    report = with_champion.retrain(with_champion.job(shuffled(later(ring_world()))))
    assert report.result == "kept"
    assert not check(report, "popularity").passed
    assert with_champion.store.current() == champion


def test_a_damaged_champion_ends_the_run(with_champion: Place) -> None:
    version = str(with_champion.store.current())
    (with_champion.store.root / version / WEIGHTS).write_bytes(b"damaged")
    with pytest.raises(BundleError, match="is altered"):
        with_champion.retrain(with_champion.job(later(ring_world())))
    assert with_champion.store.current() == version


def age_champion(store: BundleStore) -> str:
    """Replace the champion by one of the previous bundle format; returns its version."""
    directory = store.root / str(store.current())
    content = json.loads((directory / MANIFEST).read_text()) | {"format_version": 1}
    (directory / MANIFEST).write_text(json.dumps(content))
    digest = digest_of(directory / MANIFEST)[:DIGEST_CHARACTERS]
    aged = directory.rename(store.root / f"{directory.name.partition('-')[0]}-{digest}")
    (store.root / CURRENT).write_text(f"{aged.name}\n")
    return aged.name


class Killed(BaseException):
    """Stands for the end of a process."""


class Dying(PhaseRecorder):
    """Raises when a phase begins, as if the process had been killed."""

    def __init__(self, at: Phase, place: Place) -> None:
        super().__init__()
        self._at, self._place = at, place

    def start_phase(self, phase: Phase) -> None:
        super().start_phase(phase)
        if phase == self._at:
            raise Killed


def killed(place: Place, at: Phase, job: RetrainingJob) -> None:
    """Run until a phase begins; then put the report back that a killed process leaves."""
    left: dict[Path, bytes] = {}

    class ReportKeeper(Dying):
        def start_phase(self, phase: Phase) -> None:
            left.update({file: file.read_bytes() for file in place.runs.glob(f"*/{REPORT}")})
            super().start_phase(phase)

    with pytest.raises(Killed):
        place.retrain(job, ReportKeeper(at, place))
    for file in place.runs.glob(f"*/{REPORT}"):
        if file in left:
            file.write_bytes(left[file])
        else:
            file.unlink()


def test_a_run_killed_after_its_decision_resumes_it(with_champion: Place) -> None:
    job = with_champion.job(later(ring_world()))
    killed(with_champion, "publish", job)
    champion = with_champion.store.current()
    report = with_champion.retrain(job)
    assert with_champion.recorder.phases == ["publish", "activate"]
    assert (report.result, report.champion) == ("promoted", champion)
    assert with_champion.store.current() == report.candidate
    assert report.comparison is not None


def test_a_new_champion_invalidates_a_decision(with_champion: Place) -> None:
    job = with_champion.job(later(ring_world()))
    killed(with_champion, "publish", job)
    with_champion.store.add_copy(tiny.write_bundle(with_champion.root / "other"))
    with_champion.retrain(job)
    assert with_champion.recorder.phases[0] == "read"


def test_new_gate_settings_invalidate_a_decision(with_champion: Place) -> None:
    job = with_champion.job(later(ring_world()))
    killed(with_champion, "publish", job)
    stricter = COUNTED.model_copy(update={"gate": GATE.model_copy(update={"floor": 1.0})})
    assert with_champion.retrain(replace(job, config=stricter)).result == "kept"


def test_a_run_killed_after_activation_is_recorded(with_champion: Place) -> None:
    job = with_champion.job(later(ring_world()))
    killed(with_champion, "activate", job)
    (bundle,) = set(with_champion.store.versions()) - {with_champion.store.current()}
    with_champion.store.activate(bundle)
    report = with_champion.retrain(job)
    assert (report.result, report.candidate) == ("promoted", bundle)
    assert with_champion.recorder.phases == []


def test_a_refused_first_challenger_is_not_promoted_later(place: Place) -> None:
    wild = FitConfig(epochs=1, tokens=400, warmup_steps=0, learning_rate=1e30)
    job = place.job(ring_world(), LEARNED.model_copy(update={"fit": wild}))
    report = place.retrain(job)
    # The report of a process that was killed after the decision.
    unfinished = report.model_copy(update={"result": "running", "finished_at": None})
    unfinished.write(place.runs / report.directory)
    assert place.retrain(job).result == "kept"


@pytest.mark.slow
def test_a_killed_fit_resumes_from_its_checkpoint(place: Place) -> None:
    job = place.job(ring_world(), LEARNED)
    killed(place, "evaluate", job)
    place.retrain(job)
    assert [epoch for fitting, epoch in place.recorder.epochs if fitting == "fit"] == []


@pytest.mark.slow
def test_a_checkpoint_of_changed_events_is_replaced(place: Place) -> None:
    job = place.job(ring_world(), LEARNED)
    killed(place, "evaluate", job)
    place.retrain(place.job(ring_world().filter(pl.col("user_id") != "u7"), LEARNED))
    assert [epoch for fitting, epoch in place.recorder.epochs if fitting == "fit"] == [1, 2, 3]


@pytest.mark.slow
def test_another_job_does_not_use_the_first_ones_checkpoint(place: Place) -> None:
    job = place.job(ring_world(), LEARNED)
    killed(place, "evaluate", job)
    other = LEARNED.model_copy(update={"fit": LEARNED.fit.model_copy(update={"seed": 1})})
    place.retrain(replace(job, config=other))
    assert [epoch for fitting, epoch in place.recorder.epochs if fitting == "fit"] == [1, 2, 3]


@pytest.mark.slow
def test_old_versions_and_runs_are_removed_on_request(with_champion: Place) -> None:
    lenient = COUNTED.model_copy(update={"gate": GATE.model_copy(update={"may_lose": 1.0})})
    for number in range(1, 4):
        job = with_champion.job(
            later(ring_world(), days=100 * number), lenient, known_by=END - number
        )
        assert with_champion.retrain(job).result == "promoted"
    assert len(with_champion.store.versions()) == 4
    last = with_champion.job(later(ring_world(), days=400), lenient, keep=2, until=END + 1)
    report = with_champion.retrain(last)
    assert report.result == "promoted"
    assert len(with_champion.store.versions()) == 2
    assert with_champion.store.current() in with_champion.store.versions()
    assert len(list(with_champion.runs.iterdir())) == 2
    assert (with_champion.runs / report.directory).is_dir()
