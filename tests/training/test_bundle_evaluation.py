from pathlib import Path

import polars as pl
import pytest

from model.store.opening import open_predictor
from tests import tiny
from tests.training.progress import RecordingProgress
from tests.training.recipes import RUN
from training.bundle_evaluation import evaluate_bundle
from training.config import RunConfig
from training.run import train

REFIT_BEFORE_TEST = RUN.replace_fit({"refit_before_test": True, "epochs": 1})


def with_new_items() -> pl.DataFrame:
    """Events in which users choose items of another name from some day on."""
    events = tiny.gap_world(users=60, length=12)
    late = pl.col("timestamp") > pl.col("timestamp").quantile(0.72)
    renamed = pl.when(late).then(pl.col("item_id") + "new").otherwise(pl.col("item_id"))
    return events.with_columns(renamed.alias("item_id"))


@pytest.mark.parametrize("predict", ["next_event", "next_basket"])
def test_a_bundle_knows_the_items_it_was_refitted_on(tmp_path: Path, predict: str) -> None:
    data = RUN.data.model_copy(update={"predict": predict})
    config: RunConfig = REFIT_BEFORE_TEST.model_copy(update={"data": data})
    events = with_new_items()
    outcome = train(config, events, None, tmp_path, progress=RecordingProgress())
    bundle = open_predictor(outcome.bundle).bundle
    found = evaluate_bundle(bundle, config, events)
    assert outcome.report.rows["model"]["recall@10"] > 0
    assert found.cold_targets == outcome.report.cold_targets < 0.5
    assert found.rows["model"] == pytest.approx(outcome.report.rows["model"], abs=1e-6)
    assert found.rows["popular_all_time"] == outcome.report.rows["popular_all_time"]


def test_a_bundle_of_other_items_ranks_no_target(tmp_path: Path) -> None:
    events = tiny.gap_world(users=30, length=8)
    outcome = train(RUN, events, None, tmp_path, progress=RecordingProgress())
    others = events.with_columns(pl.col("item_id") + "of another shop")
    found = evaluate_bundle(open_predictor(outcome.bundle).bundle, RUN, others)
    assert found.cold_targets == 1
    assert found.rows["model"]["recall@10"] == 0
