"""How far a run is, as it is recorded."""

import math

import pytest

from tests.training.retraining.workspace import Workspace
from tests.training.ring import LEARNED, PhaseRecorder, ring_world
from training.config import FitConfig
from training.fitting.fit import EpochReport
from training.retraining import progress
from training.retraining.progress import RunProgress, TrackedProgress


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock of the progress."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    return clock


def track(config: FitConfig) -> tuple[TrackedProgress, list[RunProgress]]:
    recorded: list[RunProgress] = []
    return TrackedProgress(PhaseRecorder(), config, recorded.append), recorded


def finish(tracked: TrackedProgress, epoch: int) -> None:
    tracked.finish_epoch(EpochReport(epoch, 1.0, {}, 1.0))


def test_the_time_left_is_that_of_all_planned_epochs(at: list[float]) -> None:
    config = FitConfig(epochs=3, refit_before_test=True, refit=True, refit_from="fitted")
    tracked, recorded = track(config)
    tracked.start_phase("fit")
    tracked.start_fit("fit", 3)
    assert recorded[-1].seconds_left is None
    at[0] = 10.0
    finish(tracked, 1)
    assert recorded[-1] == RunProgress("fit", "fit", 2, 3, share=1 / 7, seconds_left=60.0)
    at[0] = 15.0
    tracked.finish_step(1, 2, 1.0)
    assert recorded[-1].seconds_left == pytest.approx(55.0)
    # The fit ends early: only the refits are left.
    tracked.start_fit("refit", 1)
    assert recorded[-1].share == pytest.approx(1 / 3)
    finish(tracked, 1)
    tracked.start_phase("evaluate")
    assert (recorded[-1].fit, recorded[-1].seconds_left) == (None, None)


def test_epochs_before_an_interruption_do_not_set_the_pace(at: list[float]) -> None:
    tracked, recorded = track(FitConfig(epochs=4))
    tracked.start_fit("fit", 4, 2)
    assert (recorded[-1].epoch, recorded[-1].share) == (3, 0.5)
    at[0] = 10.0
    finish(tracked, 3)
    assert recorded[-1] == RunProgress("fit", "fit", 4, 4, share=0.75, seconds_left=10.0)


def test_steps_are_recorded_every_few_seconds_only(at: list[float]) -> None:
    tracked, recorded = track(FitConfig())
    tracked.start_fit("fit", 1)
    for step in range(100):
        at[0] += 0.1
        tracked.finish_step(step + 1, 100, 1.0)
    assert len(recorded) <= 6


def test_a_run_records_its_phases_and_epochs(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[dict[str, object]] = []
    monkeypatch.setattr(
        "training.retraining.job.NoJournal.record_progress",
        lambda _, __, made: recorded.append(made),
    )
    # An epoch that lasts longer would be recorded more than once.
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_RECORDS", math.inf)
    workspace = Workspace(tmp_path)  # type: ignore[arg-type]
    workspace.retrain(workspace.job(ring_world(), LEARNED))
    phases = list(dict.fromkeys(one["phase"] for one in recorded))
    assert phases[:4] == ["read", "fit", "evaluate", "write"]
    assert [one["epoch"] for one in recorded if one["fit"] == "fit"][:3] == [1, 2, 3]
