"""Exporting a run: the trained recommender as a bundle in the output directory."""

import hashlib
import platform
import shutil
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from model.bundle.atomic import write_directory
from model.bundle.bundle import Bundle
from model.bundle.kernels import KernelCurve, Rhythm
from model.bundle.manifest import Counts, DataWindow
from model.bundle.provenance import EPOCHS, INDEX_RECALL, INITIAL_KERNELS, P95_SECONDS, Epoch
from model.bundle.signature import NO_KEYS, BundleKeys
from model.bundle.writing import write_bundle
from model.errors import ExportError
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor, warm_up
from training.config import NOT_FITTED, RunConfig
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation.attention_profile import profile_attention
from training.evaluation.latency import LatencyCheck, measure_latency
from training.evaluation.sampling import sample_users
from training.fitting.fit import EpochReport, FitState
from training.item_index import USERS, choose_index
from training.item_map import compute_item_map

_DIGITS = 6
"""Significant digits of recorded curves and measurements."""


@dataclass(frozen=True)
class TrainedModel:
    """A trained recommender and its training data.

    Attributes:
        config: what `recommender` was built from.
        dataset: the events, in terms of the recommender's catalog.
        is_training: per event, whether the recommender was trained on it.
        initial_kernels: the kernels before training.
    """

    config: RecommenderConfig
    recommender: Recommender
    dataset: Dataset
    is_training: NDArray[np.bool_]
    initial_kernels: tuple[KernelCurve, ...]

    @property
    def window(self) -> DataWindow:
        """The span of the training events."""
        return find_window(self.dataset, self.is_training)


@dataclass(frozen=True)
class Holdout:
    """The questions that a bundle is measured on.

    Attributes:
        dataset: the events that hold the histories of the questions.
    """

    dataset: Dataset
    questions: Questions


def export(
    config: RunConfig,
    trained: TrainedModel,
    state: FitState,
    metrics: dict[str, float],
    holdout: Holdout,
    output: Path,
    seconds: float,
    keys: BundleKeys = NO_KEYS,
) -> tuple[Path, LatencyCheck]:
    """Measure a trained recommender as a bundle in memory, write that bundle, and open it.

    Args:
        state: of the fit that `metrics` are of.
        metrics: on the test questions, by flat names.
        seconds: wall time of the run so far.
        keys: sign the bundle.

    Returns:
        The bundle's directory in `output`, and the measurements, which its provenance holds too.

    Raises:
        BundleError: if the recommender makes no consistent bundle, such as one with NaN weights, or
            if the written files do not open; they are then removed.
    """
    bundle = assemble(config, trained, state, metrics, seconds)
    if config.export_encoder:
        bundle = _export_encoder(bundle)
    bundle = _choose_index(bundle, config, trained.dataset)
    check = measure_latency(warm_up(bundle), holdout.dataset, holdout.questions)
    measured = bundle.with_provenance(
        INDEX_RECALL.write(round(check.index_recall, _DIGITS))
        | P95_SECONDS.write(_round_digits(check.p95_seconds))
    )
    return write(measured, output, keys), check


def write(bundle: Bundle, output: Path, keys: BundleKeys = NO_KEYS) -> Path:
    """Write a bundle into a directory of its version in `output`, and open it.

    Args:
        keys: sign the bundle.

    Raises:
        BundleError: if the written files do not open; they are then removed.
    """
    temporary = output / ".bundle"
    shutil.rmtree(temporary, ignore_errors=True)  # left by a killed run
    directory = write_directory(temporary, lambda empty: write_bundle(bundle, empty, keys))
    try:
        open_predictor(directory, keys)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return directory


def _choose_index(bundle: Bundle, config: RunConfig, dataset: Dataset) -> Bundle:
    """Give the bundle of a large catalog an index that needs not score every item."""
    if len(bundle.index) <= config.index.exact_up_to:
        return bundle
    users = sample_users(
        bundle.recommender, dataset, max_history=config.encoder.max_history, histories=USERS
    )
    return replace(bundle, index=choose_index(bundle.index, users, config.index))


def _export_encoder(bundle: Bundle) -> Bundle:
    """Give a bundle its encoder as a program; without one it serves as well, but slower."""
    try:
        return bundle.with_exported_encoder()
    except ExportError as error:
        return bundle.with_provenance({error.code: str(error)})


def assemble(
    config: RunConfig,
    trained: TrainedModel,
    state: FitState,
    metrics: dict[str, float],
    seconds: float,
) -> Bundle:
    """Assemble a bundle in memory, with the provenance of its training; see `export`."""
    dataset, is_training = trained.dataset, trained.is_training
    profile = None
    if config.profile_histories:
        profile = profile_attention(
            trained.recommender,
            dataset,
            max_history=config.encoder.max_history,
            histories=config.profile_histories,
        )
    return Bundle.assemble(
        recommender=trained.recommender,
        config=trained.config,
        catalog=dataset.catalog,
        data_window=trained.window,
        counts=Counts(
            events=int(is_training.sum()),
            users=len(np.unique(dataset.user_of[is_training])),
            items=len(dataset.catalog),
        ),
        metrics=metrics,
        provenance={
            "recipe": config.model_dump(mode="json"),
            "fingerprint": compute_fingerprint(config, dataset),
            "best_epoch": state.best_epoch,
            "refitted_after_measuring": config.fit.refit,
            "seconds": round(seconds, 1),
            "torch": torch.__version__,
            "python": platform.python_version(),
            **EPOCHS.write(tuple(_to_epoch(epoch) for epoch in state.reports)),
            **INITIAL_KERNELS.write(tuple(_round_curve(it) for it in trained.initial_kernels)),
        },
        attention_profile=profile,
        item_map=compute_item_map(
            trained.recommender, dataset.catalog.popularity, items=config.map_items
        ),
    )


def find_window(dataset: Dataset, chosen: NDArray[np.bool_]) -> DataWindow:
    """Find the span of some events."""
    times = dataset.times[chosen]
    return DataWindow(first_at=int(times.min()), last_at=int(times.max()))


def compute_fingerprint(config: RunConfig, dataset: Dataset) -> str:
    """Compute a digest of a recipe, except the settings `NOT_FITTED`, and its events."""
    digest = hashlib.sha256(config.model_dump_json(exclude={*NOT_FITTED}).encode())
    for column in (dataset.offsets, dataset.rows, dataset.times, dataset.action_rows):
        digest.update(column.tobytes())
    digest.update("\0".join(dataset.catalog.item_ids).encode())
    return digest.hexdigest()


def _to_epoch(report: EpochReport) -> Epoch:
    # A metric over no questions is NaN, which JSON cannot hold.
    validation = {name: value for name, value in report.validation.items() if isfinite(value)}
    return Epoch(report.epoch, report.loss, validation, round(report.seconds, 3))


def _round_curve(curve: KernelCurve) -> KernelCurve:
    spectrum = curve.spectrum
    return replace(
        curve,
        interval_days=tuple(map(_round_digits, curve.interval_days)),
        psi=tuple(map(_round_digits, curve.psi)),
        spectrum=(
            None
            if spectrum is None
            else tuple(
                Rhythm(_round_digits(rhythm.period_days), _round_digits(rhythm.power))
                for rhythm in spectrum
            )
        ),
    )


def _round_digits(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
