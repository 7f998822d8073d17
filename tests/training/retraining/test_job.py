"""The job in this process, without a database: from events to what is served."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pytest

from model.clock import to_datetime
from model.errors import EventSourceError, TrainingError
from model.store.store import BundleStore
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
    """A store, runs, and what is done in them."""

    root: Path
    recorder: PhaseRecorder = field(default_factory=PhaseRecorder)

    def __post_init__(self) -> None:
        self.store = BundleStore(self.root / "store")
        self.runs = self.root / "runs"

    def order(
        self, events: pl.DataFrame | None = None, config: RunConfig = COUNTED, **more: object
    ) -> RetrainingJob:
        file = self.root / "events.parquet"
        if events is not None:
            written(events, file)
        known = {"until": END, "known_by": END}
        return RetrainingJob(config, "ring", str(file), None, **known | more)  # type: ignore[arg-type]

    def retrain(self, order: RetrainingJob, watcher: PhaseRecorder | None = None) -> RunReport:
        self.recorder = watcher or PhaseRecorder()
        return retrain(
            order,
            store=self.store,
            runs=self.runs,
            journal=NoJournal(self.store),
            progress=self.recorder,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def reigned(place: Place) -> Place:
    """A place with a champion."""
    assert place.retrain(place.order(ring_world())).result == "promoted"
    return place


def check(report: RunReport, name: str) -> Check:
    assert report.decision is not None
    (found,) = [check for check in report.decision.checks if check.name == name]
    return found


def later(events: pl.DataFrame, days: int = 100) -> pl.DataFrame:
    """The same people, walking on."""
    return pl.concat(
        [events, ring_world(seed=1).with_columns(pl.col("timestamp") + pl.duration(days=days))]
    )


def test_the_first_good_model_is_published_and_served(place: Place) -> None:
    report = place.retrain(place.order(ring_world()))
    assert (report.result, report.champion) == ("promoted", None)
    assert place.store.current() == report.candidate
    assert place.recorder.phases == [
        *("read", "fit", "evaluate", "write", "gate", "publish", "activate")
    ]


def test_a_run_leaves_its_numbers_for_programs_and_for_people(reigned: Place) -> None:
    report = reigned.retrain(reigned.order(later(ring_world())))
    directory = reigned.runs / report.directory
    assert RunReport.read(directory) == report
    told = json.loads((directory / REPORT).read_text())
    assert told["comparison"]["rows"].keys() == {
        *("challenger", "challenger_withheld", "champion", "champion_withheld"),
        *("popular_all_time", "popular_last_week", "last_item_markov"),
    }
    assert told["data"]["events"] == 2 * len(ring_world())
    page = (directory / PAGE).read_text()
    assert report.comparison is not None
    assert f"| champion | {report.comparison.rows['champion']['ndcg@10']:.4f} |" in page
    assert all(it.sentence in page for it in report.decision.checks)  # type: ignore[union-attr]


def test_a_challenger_as_good_as_the_champion_takes_its_place(reigned: Place) -> None:
    champion = reigned.store.current()
    report = reigned.retrain(reigned.order(later(ring_world())))
    assert report.result == "promoted", report.reason
    assert report.champion == champion != reigned.store.current()


def test_nobody_is_asked_what_somebody_learned_from(reigned: Place) -> None:
    learned_until = int(ring_world()["timestamp"].to_physical().max())  # type: ignore[arg-type]
    comparison = reigned.retrain(reigned.order(later(ring_world()))).comparison
    assert comparison is not None
    assert comparison.first_at > learned_until
    assert comparison.known_to_champion == 0


def test_where_too_little_is_new_the_champion_is_favoured_and_the_report_says_so(
    reigned: Place,
) -> None:
    report = reigned.retrain(reigned.order(known_by=END - 1))
    assert report.comparison is not None
    assert report.comparison.known_to_champion == report.comparison.questions
    assert "is favoured" in (reigned.runs / report.directory / PAGE).read_text()


def test_models_are_asked_about_the_same_items_and_miss_what_they_do_not_know(
    place: Place,
) -> None:
    small = ring_world(items=6)
    assert place.retrain(place.order(small)).result == "promoted"
    moved = ring_world(seed=1).with_columns(pl.col("timestamp") + pl.duration(days=50))
    report = place.retrain(place.order(pl.concat([small, moved])))
    assert report.comparison is not None
    assert report.comparison.candidates == 12
    rows = report.comparison.rows
    assert rows["champion"]["hit_rate@10"] <= 0.6  # half of the answers are new to it
    assert rows["challenger"]["hit_rate@10"] > 0.9
    assert report.result == "promoted"


def test_shuffled_labels_are_refused_and_the_champion_serves_on(reigned: Place) -> None:
    champion = reigned.store.current()
    report = reigned.retrain(reigned.order(shuffled(later(ring_world()))))
    assert report.result == "kept"
    assert not check(report, "popularity").passed
    assert reigned.store.current() == champion
    assert len(reigned.store.versions()) == 1
    assert "popularity" in str(report.reason)


def test_a_challenger_that_forgot_the_way_is_refused_for_the_champion(reigned: Place) -> None:
    new = later(ring_world())
    is_asked = new["timestamp"] > new["timestamp"].quantile(0.85)
    # What is learned from was mixed up; what is asked is as it was.
    broken = pl.concat([shuffled(new.filter(~is_asked)), new.filter(is_asked)])
    lenient = GATE.model_copy(update={"popularity_lead": -1.0})
    champion = reigned.store.current()
    config = COUNTED.model_copy(update={"gate": lenient})
    report = reigned.retrain(reigned.order(broken, config))
    assert report.result == "kept"
    assert not check(report, "champion").passed
    assert "lead over the champion" in str(report.reason)
    assert reigned.store.current() == champion


def test_a_run_that_diverges_is_refused_by_the_gate(reigned: Place) -> None:
    champion = reigned.store.current()
    wild = FitConfig(epochs=2, tokens=400, warmup_steps=0, learning_rate=1e30)
    report = reigned.retrain(reigned.order(config=LEARNED.model_copy(update={"fit": wild})))
    assert report.result == "kept"
    assert not check(report, "sound").passed
    assert report.candidate is None
    assert reigned.store.current() == champion


def test_a_dry_run_decides_and_changes_nothing(place: Place) -> None:
    report = place.retrain(place.order(ring_world(), promotes=False))
    assert report.result == "passed"
    assert report.decision is not None
    assert report.decision.promote
    assert place.store.versions() == []
    assert place.recorder.phases[-1] == "gate"


def test_a_champion_that_changed_meanwhile_is_left_alone(reigned: Place) -> None:
    champion = reigned.store.current()
    other = tiny.write_bundle(reigned.root / "other")

    class Operator(PhaseRecorder):
        """Activates another version while the job runs."""

        def start_phase(self, phase: Phase) -> None:
            super().start_phase(phase)
            if phase == "gate":
                reigned.store.add_copy(other)

    report = reigned.retrain(reigned.order(later(ring_world())), Operator())
    assert report.result == "kept"
    assert str(champion) in str(report.reason)
    assert reigned.store.current() == other.name
    assert report.candidate in reigned.store.versions()


def test_events_after_the_cut_off_are_not_learned_from(place: Place) -> None:
    events = ring_world()
    middle = int(events["timestamp"].to_physical().median())  # type: ignore[arg-type]
    report = place.retrain(place.order(events, until=middle, promotes=False))
    assert report.data is not None
    assert report.data.last_at <= to_datetime(middle)
    assert report.data.events == events.filter(pl.col("timestamp").to_physical() <= middle).height


def test_without_events_a_run_fails_and_says_so(place: Place) -> None:
    with pytest.raises(TrainingError, match="had none by"):
        place.retrain(place.order(ring_world(), until=0))
    (directory,) = place.runs.iterdir()
    report = RunReport.read(directory)
    assert report is not None
    assert report.result == "failed"
    assert "had none by" in str(report.reason)


def test_events_that_cannot_be_read_leave_the_champion_alone(reigned: Place) -> None:
    champion = reigned.store.current()
    order = replace(reigned.order(), events=str(reigned.root / "nowhere.parquet"))
    with pytest.raises(EventSourceError):
        reigned.retrain(order)
    assert reigned.store.current() == champion


def test_a_model_is_measured_on_what_came_last(place: Place) -> None:
    config = COUNTED.model_copy(update={"split": LeaveOneOutConfig()})
    with pytest.raises(TrainingError, match="splits by time"):
        place.retrain(place.order(ring_world(), config))


def test_a_warm_start_is_not_asked_what_its_weights_know(place: Place) -> None:
    config = LEARNED.model_copy(update={"gate": GATE.model_copy(update={"may_lose": 1.0})})
    learned = config.model_copy(
        update={"gate": config.gate.model_copy(update={"popularity_lead": -1.0})}
    )
    assert place.retrain(place.order(ring_world(), learned)).result == "promoted"
    with pytest.raises(TrainingError, match="later than the weights it began from"):
        place.retrain(place.order(config=learned, warm_start=True))
    report = place.retrain(place.order(later(ring_world()), learned, warm_start=True))
    assert report.warm_start
    assert report.comparison is not None
    assert report.comparison.known_to_champion == 0


def test_a_warm_start_from_another_kind_of_model_fails_and_says_why(reigned: Place) -> None:
    champion = reigned.store.current()
    with pytest.raises(TrainingError, match="made of the same parts"):
        reigned.retrain(reigned.order(config=LEARNED, warm_start=True))
    assert reigned.store.current() == champion


class Killed(BaseException):
    """Stands for a process that ends: nothing after it is done."""


class Dying(PhaseRecorder):
    """Ends when a phase begins, and leaves no word behind, as a killed process would not."""

    def __init__(self, at: Phase, place: Place) -> None:
        super().__init__()
        self._at, self._place = at, place

    def start_phase(self, phase: Phase) -> None:
        super().start_phase(phase)
        if phase == self._at:
            raise Killed


def killed(place: Place, at: Phase, order: RetrainingJob) -> None:
    """Run until a phase begins; then put the report back that a killed process leaves."""
    left: dict[Path, bytes] = {}

    class Remembering(Dying):
        def start_phase(self, phase: Phase) -> None:
            left.update({file: file.read_bytes() for file in place.runs.glob(f"*/{REPORT}")})
            super().start_phase(phase)

    with pytest.raises(Killed):
        place.retrain(order, Remembering(at, place))
    for file in place.runs.glob(f"*/{REPORT}"):
        if file in left:
            file.write_bytes(left[file])
        else:
            file.unlink()


def test_once_decided_a_killed_run_goes_on_with_what_it_decided(reigned: Place) -> None:
    order = reigned.order(later(ring_world()))
    killed(reigned, "publish", order)
    champion = reigned.store.current()
    report = reigned.retrain(order)
    assert reigned.recorder.phases == ["publish", "activate"]
    assert (report.result, report.champion) == ("promoted", champion)
    assert reigned.store.current() == report.candidate
    assert report.comparison is not None


def test_a_decision_does_not_outlive_the_champion_it_was_made_about(reigned: Place) -> None:
    order = reigned.order(later(ring_world()))
    killed(reigned, "publish", order)
    reigned.store.add_copy(tiny.write_bundle(reigned.root / "other"))
    reigned.retrain(order)
    assert reigned.recorder.phases[0] == "read"


def test_a_decision_does_not_outlive_the_gate_that_made_it(reigned: Place) -> None:
    order = reigned.order(later(ring_world()))
    killed(reigned, "publish", order)
    stricter = COUNTED.model_copy(update={"gate": GATE.model_copy(update={"floor": 1.0})})
    assert reigned.retrain(replace(order, config=stricter)).result == "kept"


def test_a_run_that_was_killed_once_its_challenger_served_says_so(reigned: Place) -> None:
    order = reigned.order(later(ring_world()))
    killed(reigned, "activate", order)
    (bundle,) = set(reigned.store.versions()) - {reigned.store.current()}
    reigned.store.activate(bundle)
    report = reigned.retrain(order)
    assert (report.result, report.candidate) == ("promoted", bundle)
    assert reigned.recorder.phases == []


def test_what_was_refused_before_the_first_champion_is_not_taken_for_it(place: Place) -> None:
    wild = FitConfig(epochs=1, tokens=400, warmup_steps=0, learning_rate=1e30)
    order = place.order(ring_world(), LEARNED.model_copy(update={"fit": wild}))
    report = place.retrain(order)
    # As a process leaves it that is killed once the gate has spoken.
    unfinished = report.model_copy(update={"result": "running", "finished_at": None})
    unfinished.write(place.runs / report.directory)
    assert place.retrain(order).result == "kept"


def test_a_killed_fit_goes_on_from_its_checkpoint(place: Place) -> None:
    order = place.order(ring_world(), LEARNED)
    killed(place, "evaluate", order)
    place.retrain(order)
    assert [epoch for fitting, epoch in place.recorder.epochs if fitting == "fit"] == []


def test_a_checkpoint_of_events_that_have_changed_since_is_left(place: Place) -> None:
    order = place.order(ring_world(), LEARNED)
    killed(place, "evaluate", order)
    place.retrain(place.order(ring_world().filter(pl.col("user_id") != "u7"), LEARNED))
    assert [epoch for fitting, epoch in place.recorder.epochs if fitting == "fit"] == [1, 2, 3]


def test_another_order_does_not_meet_the_checkpoint_of_the_first(place: Place) -> None:
    order = place.order(ring_world(), LEARNED)
    killed(place, "evaluate", order)
    other = LEARNED.model_copy(update={"fit": LEARNED.fit.model_copy(update={"seed": 1})})
    place.retrain(replace(order, config=other))
    assert [epoch for fitting, epoch in place.recorder.epochs if fitting == "fit"] == [1, 2, 3]


def test_old_versions_and_runs_go_only_where_that_is_wanted(reigned: Place) -> None:
    lenient = COUNTED.model_copy(update={"gate": GATE.model_copy(update={"may_lose": 1.0})})
    for number in range(1, 4):
        order = reigned.order(
            later(ring_world(), days=100 * number), lenient, known_by=END - number
        )
        assert reigned.retrain(order).result == "promoted"
    assert len(reigned.store.versions()) == 4
    last = reigned.order(later(ring_world(), days=400), lenient, keep=2, until=END + 1)
    report = reigned.retrain(last)
    assert report.result == "promoted"
    assert len(reigned.store.versions()) == 2
    assert reigned.store.current() in reigned.store.versions()
    assert len(list(reigned.runs.iterdir())) == 2
    assert (reigned.runs / report.directory).is_dir()
