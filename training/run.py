"""A whole run: events in, a measured and written bundle out."""

import hashlib
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import torch

from model.bundle.manifest import Counts, DataWindow
from model.bundle.writing import write_bundle
from model.interfaces import CountingEncoder
from model.recommender import Recommender, RecommenderConfig
from training.attention_profile import profile_attention
from training.batches import TrainingWindows
from training.building import build_recommender, count_events
from training.checkpoint import load_checkpoint, save_checkpoint
from training.config import RunConfig
from training.dataset import Dataset
from training.evaluate import evaluate
from training.fit import EpochReport, FitState, fit, make_optimizer
from training.report import Report, measure
from training.split import Split


class Progress(Protocol):
    """Whoever wants to know how far a run has come."""

    def phase(self, name: str, epochs: int) -> None:
        """A phase begins: "fit" or "refit", of at most so many epochs."""

    def step(self, done: int, of: int, loss: float) -> None:
        """A batch is done."""

    def epoch(self, report: EpochReport) -> None:
        """An epoch is done."""


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind.

    Attributes:
        bundle: the directory of the bundle, named by its version.
        report: what was measured on the test questions.
        epochs: what every epoch of the fit did; none where counting was all.
        best_epoch: the epoch whose weights were kept.
        parameters: numbers that were learned.
        seconds: wall time of the run.
    """

    bundle: Path
    report: Report
    epochs: tuple[EpochReport, ...]
    best_epoch: int
    parameters: int
    seconds: float


def lay_out(config: RunConfig, events: pl.DataFrame, items: pl.DataFrame | None) -> Dataset:
    """The events as the recipe wants them."""
    return Dataset.of(
        events,
        items,
        min_item_events=config.data.min_item_events,
        min_user_events=config.data.min_user_events,
        ignored_actions=config.data.ignored_actions,
    )


def train(
    config: RunConfig,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    output: Path,
    *,
    progress: Progress,
    device: torch.device | None = None,
) -> Outcome:
    """Fit, measure on the test questions, refit where asked, and write a bundle.

    A checkpoint in `output` from the same recipe and events is gone on with.

    Raises:
        TrainingError: if the run cannot start or go on.
    """
    began = time.monotonic()
    output.mkdir(parents=True, exist_ok=True)
    whole = lay_out(config, events, items)
    split = config.split.split(whole, config.data.predict)
    described, recommender = build_recommender(config, split.dataset, split.is_training)
    device = device or torch.device("cpu")
    recommender.to(device)
    if isinstance(recommender.encoder, CountingEncoder):
        state = FitState()
        count_events(recommender, split.dataset, split.is_training)
    else:
        state = _fit(config, split, recommender, output, progress)
    recommender.to("cpu")
    report = measure(recommender, split, config.data, max_history=config.encoder.max_history)
    report.write(output / "report.json")
    dataset, learned = split.dataset, split.is_training
    if config.fit.refit:
        dataset, learned = whole, np.ones(len(whole), dtype=np.bool_)
        described, recommender = build_recommender(config, dataset, learned)
        recommender.to(device)
        if isinstance(recommender.encoder, CountingEncoder):
            count_events(recommender, dataset, learned)
        else:
            progress.phase("refit", state.best_epoch)
            fit(
                recommender,
                _windows(config, dataset, dataset.offsets[1:]),
                config.fit,
                evaluate=None,
                stop_after=state.best_epoch,
                on_step=progress.step,
                on_epoch=lambda now, *_: progress.epoch(now.reports[-1]),
            )
        recommender.to("cpu")
    seconds = time.monotonic() - began
    bundle = _write(
        config, described, recommender, dataset, learned, state, report, output, seconds
    )
    return Outcome(
        bundle=bundle,
        report=report,
        epochs=tuple(state.reports),
        best_epoch=state.best_epoch,
        parameters=sum(
            weight.numel() for weight in recommender.parameters() if weight.requires_grad
        ),
        seconds=seconds,
    )


def _fit(
    config: RunConfig, split: Split, recommender: Recommender, output: Path, progress: Progress
) -> FitState:
    fingerprint = _fingerprint(config, split.dataset)
    optimizer = make_optimizer(recommender, config.fit)
    state = load_checkpoint(output, fingerprint, recommender, optimizer)

    def validate(current: Recommender) -> dict[str, float]:
        return evaluate(
            current,
            split.dataset,
            split.validation,
            max_history=config.encoder.max_history,
            exclude_seen=config.data.exclude_seen,
        ).summarise()

    def keep(now: FitState, current: Recommender, moments: torch.optim.Optimizer) -> None:
        save_checkpoint(output, fingerprint, now, current, moments)
        progress.epoch(now.reports[-1])

    progress.phase("fit", config.fit.epochs)
    return fit(
        recommender,
        _windows(config, split.dataset, split.train_ends),
        config.fit,
        evaluate=validate,
        state=state,
        optimizer=optimizer,
        on_step=progress.step,
        on_epoch=keep,
    )


def _windows(config: RunConfig, dataset: Dataset, ends: np.ndarray) -> TrainingWindows:
    return TrainingWindows(
        dataset, ends, predict=config.data.predict, max_history=config.encoder.max_history
    )


def _fingerprint(config: RunConfig, dataset: Dataset) -> str:
    """Identifies a recipe and the events it is run on."""
    digest = hashlib.sha256(config.model_dump_json().encode())
    for column in (dataset.offsets, dataset.rows, dataset.times, dataset.action_rows):
        digest.update(column.tobytes())
    digest.update("\0".join(dataset.catalog.item_ids).encode())
    return digest.hexdigest()


def _write(
    config: RunConfig,
    described: RecommenderConfig,
    recommender: Recommender,
    dataset: Dataset,
    learned: np.ndarray,
    state: FitState,
    report: Report,
    output: Path,
    seconds: float,
) -> Path:
    profile = None
    if config.profile_histories:
        profile = profile_attention(
            recommender,
            dataset,
            max_history=config.encoder.max_history,
            histories=config.profile_histories,
        )
    unnamed = output / ".bundle"
    unnamed.mkdir(exist_ok=True)
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
            "fingerprint": _fingerprint(config, dataset),
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
