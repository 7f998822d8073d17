"""What a run has learned, as a bundle in its output directory."""

import hashlib
import platform
import shutil
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import JsonValue

from model.bundle.kernels import KernelCurve, Rhythm
from model.bundle.manifest import Counts, DataWindow, Manifest
from model.bundle.provenance import EPOCHS, INDEX_RECALL, INITIAL_KERNELS, P95_SECONDS, Epoch
from model.bundle.writing import write_bundle
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation.attention_profile import profile_attention
from training.evaluation.latency import LatencyCheck, measure_latency
from training.evaluation.report import Report
from training.fitting.fit import EpochReport, FitState

_DIGITS = 6
"""Significant digits of a curve before training: it is drawn, not calculated with."""


@dataclass(frozen=True)
class Trained:
    """A recommender that has learned, and what from.

    Attributes:
        dataset: the events, in terms of the recommender's catalogue.
        chosen: per event, whether the recommender has learned from it.
        initial_kernels: its kernels before that.
    """

    described: RecommenderConfig
    recommender: Recommender
    dataset: Dataset
    chosen: NDArray[np.bool_]
    initial_kernels: tuple[KernelCurve, ...]

    @property
    def window(self) -> DataWindow:
        """The span of the events it has learned from."""
        return window_of(self.dataset, self.chosen)


@dataclass(frozen=True)
class Asked:
    """What a bundle is tried out with.

    Attributes:
        dataset: the events that the histories of the questions are in.
    """

    dataset: Dataset
    questions: Questions


def export(
    config: RunConfig,
    trained: Trained,
    state: FitState,
    report: Report,
    asked: Asked,
    output: Path,
    seconds: float,
) -> tuple[Path, LatencyCheck]:
    """Write the bundle of a recommender into a directory that bears its version, and try it out.

    Args:
        state: how the fit went that was measured.
        seconds: what the run took so far.

    Returns:
        The directory, and what was measured of the bundle, which it also tells itself.

    Raises:
        BundleError: if what was learned makes no sound bundle.
    """
    dataset, chosen = trained.dataset, trained.chosen
    profile = None
    if config.profile_histories:
        profile = profile_attention(
            trained.recommender,
            dataset,
            max_history=config.encoder.max_history,
            histories=config.profile_histories,
        )
    unfinished = output / ".bundle"
    shutil.rmtree(unfinished, ignore_errors=True)  # what a killed run left of it
    unnamed = unfinished / "unnamed"
    unnamed.mkdir(parents=True)
    version = write_bundle(
        unnamed,
        recommender=trained.recommender,
        config=trained.described,
        catalog=dataset.catalog,
        data_window=trained.window,
        counts=Counts(
            events=int(chosen.sum()),
            users=len(np.unique(dataset.user_of[chosen])),
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
            **EPOCHS.write(tuple(_told(epoch) for epoch in state.reports)),
            **INITIAL_KERNELS.write(tuple(_rounded(curve) for curve in trained.initial_kernels)),
        },
        attention_profile=profile,
    )
    untried = unnamed.rename(unfinished / version)
    trial = measure_latency(open_predictor(untried), asked.dataset, asked.questions)
    version = _add(
        untried,
        INDEX_RECALL.write(round(trial.index_recall, _DIGITS))
        | P95_SECONDS.write(_short(trial.p95_seconds)),
    )
    named = untried.rename(output / version)
    unfinished.rmdir()
    return named, trial


def window_of(dataset: Dataset, chosen: NDArray[np.bool_]) -> DataWindow:
    """The span of some events."""
    times = dataset.times[chosen]
    return DataWindow(first_at=int(times.min()), last_at=int(times.max()))


def fingerprint(config: RunConfig, dataset: Dataset) -> str:
    """Identifies a recipe and the events it is run on; what the gate asks decides no weight."""
    digest = hashlib.sha256(config.model_dump_json(exclude={"gate"}).encode())
    for column in (dataset.offsets, dataset.rows, dataset.times, dataset.action_rows):
        digest.update(column.tobytes())
    digest.update("\0".join(dataset.catalog.item_ids).encode())
    return digest.hexdigest()


def _add(directory: Path, told: dict[str, JsonValue]) -> str:
    """Put more into the provenance of a bundle; answers the version that it must then be named."""
    manifest = Manifest.read(directory)
    more = manifest.model_copy(update={"provenance": manifest.provenance | told})
    return more.write(directory)


def _told(epoch: EpochReport) -> Epoch:
    # JSON has no word for a metric over no questions.
    validation = {name: value for name, value in epoch.validation.items() if isfinite(value)}
    return Epoch(epoch.epoch, epoch.loss, validation, round(epoch.seconds, 3))


def _rounded(curve: KernelCurve) -> KernelCurve:
    spectrum = curve.spectrum
    return replace(
        curve,
        interval_days=tuple(map(_short, curve.interval_days)),
        psi=tuple(map(_short, curve.psi)),
        spectrum=(
            None
            if spectrum is None
            else tuple(Rhythm(_short(told.period_days), _short(told.power)) for told in spectrum)
        ),
    )


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
