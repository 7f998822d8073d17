"""`min_item_events`: rare items are chosen by the training events alone."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from model.store.opening import open_predictor
from tests import tiny
from tests.training.progress import RecordingProgress
from training.config import DataConfig, RunConfig
from training.data.split import LeaveOneOutConfig
from training.engines import open_engine
from training.preparation.events import PlausibleEvents, read_training_events
from training.preparation.prepare import prepare
from training.run import Fitted, begin_run, build_dataset, evaluate_on_test, fit_recommender, train

OFTEN = ("a", "b", "c", "d")
RARE = RunConfig.model_validate(
    {
        "data": {"min_item_events": 3},
        "split": {"kind": "leave_one_out"},
        "encoder": {"kind": "popularity"},
        "map_items": 0,
        "profile_histories": 0,
    }
)


def log_with_last(item: str, users: int = 8) -> pl.DataFrame:
    """Build a log: two users have "rare" in their training part, and one ends with `item`."""
    log = []
    for user in range(users):
        items = [OFTEN[(user + step) % 4] for step in range(6)]
        if user < 2:
            items[1] = "rare"
        if user == users - 1:
            items[-1] = item
        log += [
            (f"u{user}", one, tiny.FIRST_AT + (user + 10 * step) * tiny.DAY)
            for step, one in enumerate(items)
        ]
    return tiny.event_log(log)


def fit(config: RunConfig, events: pl.DataFrame | PlausibleEvents, output: Path) -> Fitted:
    return fit_recommender(begin_run(config, output, progress=RecordingProgress()), events, None)


@pytest.mark.parametrize("refits", [False, True])
def test_the_test_does_not_decide_which_items_are_kept(tmp_path: Path, refits: bool) -> None:
    """The third event of "rare" is a target of the test, or is not there."""
    config = RARE.model_copy(
        update={"fit": RARE.fit.model_copy(update={"refit_before_test": refits})}
    )
    kept = [
        set(fit(config, log_with_last(item), tmp_path / item).split.dataset.catalog.item_ids)
        for item in ("rare", "a")
    ]
    assert kept == [set(OFTEN), set(OFTEN)]


def test_a_target_of_a_rare_item_is_cold_and_counted(tmp_path: Path) -> None:
    run = begin_run(RARE, tmp_path, progress=RecordingProgress())
    fitted = fit_recommender(run, log_with_last("rare"), None)
    assert len(fitted.split.test) == 8
    assert (fitted.split.test.target_rows == 0).sum() == 1
    assert evaluate_on_test(run, fitted).cold_targets == pytest.approx(1 / 8)


def test_histories_are_without_rare_items(tmp_path: Path) -> None:
    split = fit(RARE, log_with_last("a"), tmp_path).split
    assert [event.item_id for event in split.dataset.history(0)] == ["a", "c", "d", "a", "b"]


def test_a_refit_on_all_events_counts_all_of_them(tmp_path: Path) -> None:
    """For the model that is served, no event is of a test."""
    refit = RARE.model_copy(update={"fit": RARE.fit.model_copy(update={"refit": True})})
    for config, expected in ((RARE, {*OFTEN}), (refit, {*OFTEN, "rare"})):
        outcome = train(
            config,
            log_with_last("rare"),
            None,
            tmp_path / str(config.fit.refit),
            progress=RecordingProgress(),
        )
        manifest = open_predictor(outcome.bundle).bundle
        assert {*manifest.catalog.item_ids} == expected


def test_a_learned_model_skips_rare_items_where_it_refits(tmp_path: Path) -> None:
    encoder = tiny.ENCODER.model_copy(update={"dim": 4})
    config = RARE.model_copy(
        update={
            "data": DataConfig(min_item_events=4),
            "encoder": encoder,
            "export_encoder": False,
            "fit": RARE.fit.model_copy(update={"refit": True, "epochs": 1}),
        }
    )
    outcome = train(config, log_with_last("rare"), None, tmp_path, progress=RecordingProgress())
    bundle = open_predictor(outcome.bundle).bundle
    assert {*bundle.catalog.item_ids} == {*OFTEN}
    # Of 48 events, three are of "rare".
    assert bundle.manifest.counts.events == 45


def test_prepared_events_keep_the_same_items(tmp_path: Path) -> None:
    log = log_with_last("rare")
    log.write_parquet(tmp_path / "events.parquet")
    with open_engine("local") as engine:
        prepare(str(tmp_path / "events.parquet"), str(tmp_path / "prepared"), engine, shards=2)
    prepared = read_training_events(str(tmp_path / "prepared"), tiny.LAST_AT + 999 * tiny.DAY)
    assert isinstance(prepared, PlausibleEvents)
    of_file, of_prepared = (build_dataset(RARE, events, None) for events in (log, prepared))
    splits = [LeaveOneOutConfig().split(data, "next_event", 3) for data in (of_file, of_prepared)]
    assert splits[0].dataset.catalog.item_ids == splits[1].dataset.catalog.item_ids
    assert np.array_equal(splits[0].test.target_rows, splits[1].test.target_rows)
