import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from model.bundle.reading import read_bundle
from model.catalog import Catalog
from model.errors import TrainingError
from model.history import Event, Query
from model.inference.answers import Constraints
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor
from model.wide import WideConfig
from tests import tiny
from tests.training.progress import RecordingProgress
from tests.training.recipes import REFIT, RUN
from training.data.dataset import Dataset
from training.data.split import LeaveOneOutConfig, Split
from training.evaluation.counting import CountingSettings
from training.fitting.fit import EpochReport
from training.run import (
    Outcome,
    begin_run,
    evaluate_on_test,
    fit_recommender,
    train,
    write_outcome,
)


@pytest.fixture(scope="module")
def events() -> pl.DataFrame:
    return tiny.gap_world(users=30, length=8)


@pytest.fixture(scope="module")
def run(
    events: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Outcome, RecordingProgress]:
    progress = RecordingProgress()
    outcome = train(RUN, events, None, tmp_path_factory.mktemp("run"), progress=progress)
    return outcome, progress


def test_a_run_writes_a_bundle_that_recommends(
    run: tuple[Outcome, RecordingProgress],
) -> None:
    predictor = open_predictor(run[0].bundle)
    last = predictor.bundle.manifest.data_window.last_at
    answer = predictor.recommend(Query((Event("i1", last, "event"),), last), Constraints(n=5))
    assert len(answer.items) == 5
    assert answer.fallback is None


def test_the_bundle_holds_metrics_and_provenance(
    run: tuple[Outcome, RecordingProgress],
) -> None:
    outcome = run[0]
    manifest = open_predictor(outcome.bundle).bundle.manifest
    assert manifest.metrics == pytest.approx(outcome.report.metrics)
    assert {"ndcg@10", "ndcg@10_withheld"} <= manifest.metrics.keys()
    assert manifest.provenance["recipe"] == RUN.model_dump(mode="json")
    assert manifest.provenance["best_epoch"] == outcome.best_epoch
    assert manifest.recommender.actions == ("event",)
    assert str(outcome.bundle.parent) not in json.dumps(manifest.provenance)


@pytest.mark.slow
@pytest.mark.parametrize("year", [1, 1970, 1995, 2999])
def test_one_implausible_event_changes_nothing_learned(
    run: tuple[Outcome, RecordingProgress], events: pl.DataFrame, tmp_path: Path, year: int
) -> None:
    odd = events.head(1).with_columns(
        timestamp=pl.lit(datetime(year, 1, 1, tzinfo=UTC)).cast(events.schema["timestamp"])
    )
    outcome = train(RUN, pl.concat([odd, events]), None, tmp_path, progress=RecordingProgress())
    assert outcome.report == run[0].report
    plain, changed = (read_bundle(one.bundle) for one in (run[0], outcome))
    assert changed.manifest.data_window == plain.manifest.data_window
    assert changed.manifest.provenance["fingerprint"] == plain.manifest.provenance["fingerprint"]
    weights = changed.recommender.state_dict()
    for name, weight in plain.recommender.state_dict().items():
        assert weight.equal(weights[name]), name


def test_progress_receives_every_epoch(run: tuple[Outcome, RecordingProgress]) -> None:
    assert run[1].phases == ["fit"]
    assert run[1].epochs == [1, 2, 3]
    assert run[1].steps >= 3


def test_the_report_compares_the_model_with_the_references(
    run: tuple[Outcome, RecordingProgress],
) -> None:
    outcome = run[0]
    written = json.loads((outcome.bundle.parent / "report.json").read_text())
    assert written["rows"].keys() == outcome.report.rows.keys()
    assert {"model", "model_withheld"} < outcome.report.rows.keys()
    assert outcome.report.ahead.keys() == outcome.report.rows.keys() - {"model"}
    for row in outcome.report.rows.values():
        assert row["questions"] == outcome.report.rows["model"]["questions"]


def test_without_a_refit_the_bundle_holds_training_events_only(
    run: tuple[Outcome, RecordingProgress], events: pl.DataFrame
) -> None:
    manifest = open_predictor(run[0].bundle).bundle.manifest
    split = RUN.split.split(Dataset.of(events), "next_event")
    assert manifest.counts.events == split.is_training.sum()
    assert manifest.data_window.last_at == split.dataset.times[split.is_training].max()


@pytest.mark.slow
def test_a_refit_learns_from_everything(events: pl.DataFrame, tmp_path: Path) -> None:
    progress = RecordingProgress()
    outcome = train(REFIT, events, None, tmp_path, progress=progress)
    manifest = open_predictor(outcome.bundle).bundle.manifest
    assert progress.phases == ["fit", "refit"]
    assert progress.epochs == [1, 2, 3, *range(1, outcome.best_epoch + 1)]
    assert manifest.counts.events == len(events)
    assert manifest.data_window.last_at == events["timestamp"].to_physical().max()


@pytest.mark.slow
def test_a_refit_from_fitted_weights_goes_on_from_them(
    events: pl.DataFrame, tmp_path: Path
) -> None:
    changes = {"refit": True, "learning_rate": 0.05, "warmup_steps": 0}
    losses = {}
    for start in ("random", "fitted"):
        changed = RUN.fit.model_copy(update=changes | {"refit_from": start})
        progress = RecordingProgress()
        outcome = train(
            RUN.model_copy(update={"fit": changed}),
            events,
            None,
            tmp_path / start,
            progress=progress,
        )
        share = {"random": 1.0, "fitted": 0.5}[start]
        refitted = math.ceil(outcome.best_epoch * share)
        assert progress.epochs == [1, 2, 3, *range(1, refitted + 1)]
        losses[start] = progress.losses[3]
    assert losses["fitted"] < losses["random"] - 0.2


@pytest.mark.slow
def test_a_refit_from_fitted_weights_does_not_begin_anew(
    events: pl.DataFrame, tmp_path: Path
) -> None:
    """Initial weights from elsewhere, as of a warm start, are those of the fit only."""
    begun = []

    def initialise(_: RecommenderConfig, recommender: Recommender, __: Catalog) -> None:
        begun.append(recommender)

    for start, count in (("random", 2), ("fitted", 1)):
        fit = RUN.fit.model_copy(update={"refit": True, "refit_from": start, "epochs": 1})
        config = RUN.model_copy(update={"fit": fit})
        begun.clear()
        run = begin_run(
            config, tmp_path / start, progress=RecordingProgress(), initialise_weights=initialise
        )
        fitted = fit_recommender(run, events, None)
        write_outcome(run, fitted, evaluate_on_test(run, fitted), fitted.split.test)
        assert len(begun) == count


def test_the_same_run_gives_the_same_weights(
    run: tuple[Outcome, RecordingProgress], events: pl.DataFrame, tmp_path: Path
) -> None:
    again = train(RUN, events, None, tmp_path, progress=RecordingProgress())
    assert np.array_equal(item_vectors(again), item_vectors(run[0]))


@pytest.mark.slow
def test_a_run_killed_after_an_epoch_resumes_to_the_same_end(
    run: tuple[Outcome, RecordingProgress], events: pl.DataFrame, tmp_path: Path
) -> None:
    class Killed(RecordingProgress):
        def finish_epoch(self, report: EpochReport) -> None:
            super().finish_epoch(report)
            if report.epoch == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(RUN, events, None, tmp_path, progress=Killed())
    progress = RecordingProgress()
    resumed = train(RUN, events, None, tmp_path, progress=progress)
    assert progress.epochs == [3]
    assert np.array_equal(item_vectors(resumed), item_vectors(run[0]))


def test_another_recipe_in_the_same_directory_is_refused(
    run: tuple[Outcome, RecordingProgress], events: pl.DataFrame
) -> None:
    other = RUN.model_copy(update={"item_bias": False})
    with pytest.raises(TrainingError, match="recipe and events it began with"):
        train(other, events, None, run[0].bundle.parent, progress=RecordingProgress())


def item_vectors(outcome: Outcome) -> NDArray[np.float32]:
    vectors: NDArray[np.float32] = (
        open_predictor(outcome.bundle).bundle.recommender.item_vectors().numpy()
    )
    return vectors


@pytest.mark.slow
def test_no_epoch_is_chosen_by_test_events_of_others(events: pl.DataFrame, tmp_path: Path) -> None:
    config = RUN.model_copy(update={"wide": WideConfig(), "split": LeaveOneOutConfig()})
    is_test = pl.col("timestamp") == pl.col("timestamp").max().over("user_id")
    # Items are numbered in the order of the rows.
    known, tested = events.filter(~is_test), events.filter(is_test)
    others = tested.with_columns(pl.col("item_id").reverse())
    assert not others.equals(tested)
    first, second = (
        train(config, each, None, tmp_path / f"{number}", progress=RecordingProgress())
        for number, each in enumerate(pl.concat([known, last]) for last in (tested, others))
    )
    assert [epoch.validation for epoch in first.epochs] == [
        epoch.validation for epoch in second.epochs
    ]
    # The live counts of the test hold them: those before a question are known when it is asked.
    assert "model_live" in first.report.rows


@pytest.mark.slow
def test_counting_is_tuned_before_the_validation_moves(
    events: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = CountingSettings(half_life_days=30, weight=0.1, window_days=1)
    questions = []

    def tune(split: Split, *, exclude_seen: bool) -> CountingSettings:
        questions.append(len(split.validation))
        return chosen

    monkeypatch.setattr("training.run.tune_counting", tune)
    fit = RUN.fit.model_copy(update={"epochs": 1, "refit_before_test": True})
    config = RUN.model_copy(update={"fit": fit})
    outcome = train(config, events, None, tmp_path, progress=RecordingProgress())
    assert outcome.report.counting == chosen
    assert len(questions) == 1
    assert questions[0] > 0


@pytest.mark.slow
def test_a_model_reads_the_clock_of_the_data(events: pl.DataFrame, tmp_path: Path) -> None:
    data = RUN.data.model_copy(update={"time_zone": "Asia/Kolkata"})
    fit = RUN.fit.model_copy(update={"epochs": 1})
    config = RUN.model_copy(update={"data": data, "wide": WideConfig(), "fit": fit})
    outcome = train(config, events, None, tmp_path, progress=RecordingProgress())
    wide = read_bundle(outcome.bundle).recommender.wide
    assert wide is not None
    assert wide.calendar is not None
    assert wide.repeats is not None
    for clock in (wide.calendar.clock, wide.repeats.clock):
        assert clock.offsets[-1] == 5.5 * 3_600 * 1_000_000


def test_a_split_without_test_questions_is_refused_at_once(tmp_path: Path) -> None:
    progress = RecordingProgress()
    with pytest.raises(TrainingError, match="of 30 events of 30 users it leaves none"):
        train(RUN, tiny.gap_world(users=30, length=1), None, tmp_path, progress=progress)
    assert progress.phases == []


def test_without_known_validation_items_the_last_epoch_is_kept(
    events: pl.DataFrame, tmp_path: Path
) -> None:
    late = events["timestamp"].quantile(0.7)
    renamed = events.with_columns(
        item_id=pl.when(pl.col("timestamp") >= late)
        .then(pl.lit("new ") + pl.col("item_id"))
        .otherwise("item_id")
    )
    outcome = train(RUN, renamed, None, tmp_path, progress=RecordingProgress())
    assert (len(outcome.epochs), outcome.best_epoch) == (RUN.fit.epochs, 0)
