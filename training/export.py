"""What a run has learned, as a bundle in its output directory."""

import hashlib
import platform
import shutil
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from model.bundle.manifest import Counts, DataWindow
from model.bundle.writing import write_bundle
from model.recommender import Recommender, RecommenderConfig
from training.attention_profile import profile_attention
from training.config import RunConfig
from training.dataset import Dataset
from training.fit import FitState
from training.report import Report


def export(
    config: RunConfig,
    described: RecommenderConfig,
    recommender: Recommender,
    dataset: Dataset,
    learned: NDArray[np.bool_],
    state: FitState,
    report: Report,
    output: Path,
    seconds: float,
) -> Path:
    """Write the bundle of a recommender into a directory that bears its version; answers which.

    Args:
        learned: per event of the data set, whether the recommender has learned from it.
        state: how the fit went.
        seconds: what it took.
    """
    profile = None
    if config.profile_histories:
        profile = profile_attention(
            recommender,
            dataset,
            max_history=config.encoder.max_history,
            histories=config.profile_histories,
        )
    unnamed = output / ".bundle"
    shutil.rmtree(unnamed, ignore_errors=True)  # what a killed run left of it
    unnamed.mkdir()
    times = dataset.times[learned]
    version = write_bundle(
        unnamed,
        recommender=recommender,
        config=described,
        catalog=dataset.catalog,
        data_window=DataWindow(first_at=int(times.min()), last_at=int(times.max())),
        counts=Counts(
            events=int(learned.sum()),
            users=len(np.unique(dataset.user_of[learned])),
            items=len(dataset.catalog),
        ),
        metrics=report.metrics,
        provenance={
            "recipe": config.model_dump(mode="json"),
            "fingerprint": fingerprint(config, dataset),
            "best_epoch": state.best_epoch,
            "refitted_after_measuring": config.fit.refit,
            "seconds": round(seconds, 1),
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        attention_profile=profile,
    )
    named = output / version
    unnamed.rename(named)
    return named


def fingerprint(config: RunConfig, dataset: Dataset) -> str:
    """Identifies a recipe and the events it is run on; what the gate asks decides no weight."""
    digest = hashlib.sha256(config.model_dump_json(exclude={"gate"}).encode())
    for column in (dataset.offsets, dataset.rows, dataset.times, dataset.action_rows):
        digest.update(column.tobytes())
    digest.update("\0".join(dataset.catalog.item_ids).encode())
    return digest.hexdigest()
