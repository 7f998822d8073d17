"""A model that is counted in seconds, to serve until another one is trained."""

import time
from pathlib import Path

import numpy as np
import polars as pl

from model.bundle.signature import NO_KEYS, BundleKeys
from model.encoders.counting import CountingConfig
from training.config import DataConfig, FitConfig, RunConfig
from training.data.dataset import Dataset
from training.data.split import Split
from training.evaluation.evaluate import evaluate
from training.export import TrainedModel, assemble, write
from training.fitting.building import build_recommender, count_events
from training.fitting.fit import FitState
from training.run import build_dataset, split_dataset


def configure_counting(data: DataConfig) -> RunConfig:
    """Configure a counting model that reads and predicts the same events as another recipe.

    Its bundle has counted all events. No curves of its attention are computed, which would take
    longer than all else.
    """
    return RunConfig(
        data=data.model_copy(update={"read_actions": False}),
        encoder=CountingConfig(),
        fit=FitConfig(refit_before_test=True, refit=True),
        profile_histories=0,
    )


def write_counting_bundle(
    data: DataConfig,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    output: Path,
    *,
    keys: BundleKeys = NO_KEYS,
) -> Path:
    """Count events into a bundle, and return its directory in `output`.

    The metrics are of the same counts of the events before the test, on the test questions of a
    split by time. Events that leave no test question give a bundle without metrics. Neither the
    latency nor the recall of the index is measured.

    Args:
        keys: sign the bundle.

    Raises:
        TrainingError: if the settings leave no event.
        BundleError: if the counts make no valid bundle.
    """
    began = time.monotonic()
    config = configure_counting(data)
    whole = build_dataset(config, events, items)
    split = split_dataset(config, whole)
    split = split.move_to_test(whole, data.predict)
    metrics = _measure(config, split) if len(split.test) else {}
    everything = np.ones(len(whole), dtype=np.bool_)
    limited = whole.limit_catalog(everything, min_item_events=data.min_item_events)
    counted = _count(config, limited, limited.rows > 0)
    bundle = assemble(config, counted, FitState(), metrics, time.monotonic() - began)
    output.mkdir(parents=True, exist_ok=True)
    return write(bundle, output, keys)


def _measure(config: RunConfig, split: Split) -> dict[str, float]:
    """Rank the test questions by counts of the events before the test."""
    model = _count(config, split.dataset, split.is_known_before_test)
    ranks = evaluate(
        model.recommender,
        split.dataset,
        split.test,
        max_history=config.encoder.max_history,
        exclude_seen=config.data.exclude_seen,
    )
    return ranks.summarise()


def _count(config: RunConfig, dataset: Dataset, is_counted: np.ndarray) -> TrainedModel:
    described, recommender = build_recommender(config, dataset, is_counted)
    count_events(recommender, dataset, is_counted)
    return TrainedModel(described, recommender, dataset, is_counted, ())
