"""A whole run: events in, a measured and written bundle out."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, final

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from model.bundle.kernels import KernelCurve, kernel_curves
from model.catalog import Catalog
from model.errors import ForeignCheckpointError
from model.interfaces import CountingEncoder
from model.recommender import Recommender, RecommenderConfig
from training.config import RunConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.data.split import Questions, Split
from training.evaluation.evaluate import evaluate
from training.evaluation.latency import LatencyCheck
from training.evaluation.report import Report, measure
from training.export import Holdout, TrainedModel, export, fingerprint, window_of
from training.fitting.building import build_recommender, count_events
from training.fitting.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from training.fitting.fit import EpochReport, FitState, fit, make_optimizer


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
        trial: what was measured of the bundle.
        epochs: what every epoch of the fit did; none where counting was all.
        best_epoch: the epoch whose weights were kept.
        parameters: numbers that were learned.
        seconds: wall time of the run.
    """

    bundle: Path
    report: Report
    trial: LatencyCheck
    epochs: tuple[EpochReport, ...]
    best_epoch: int
    parameters: int
    seconds: float


@dataclass(frozen=True)
class Fitted:
    """What a run has after fitting, and before it is measured.

    Attributes:
        whole: every event.
        split: the events cut for measurement; `recommender` learned from its training part.
        initial_kernels: of `recommender`, before it learned.
    """

    whole: Dataset
    split: Split
    described: RecommenderConfig
    recommender: Recommender
    initial_kernels: tuple[KernelCurve, ...]
    state: FitState


Prepare = Callable[[RecommenderConfig, Recommender, Catalog], None]
"""Sets the weights of a fresh recommender for a catalogue."""


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
    run = Run(config, output, progress=progress, device=device)
    fitted = run.fit(events, items)
    return run.complete(fitted, run.measure(fitted))


@final
class Run:
    """A run in steps, for whoever has something to do between them.

    Args:
        prepare: sets the weights that fitting begins from; by default the seed alone decides.
        begins_anew: where the checkpoint is of another run, remove it instead of refusing to go on.
    """

    def __init__(
        self,
        config: RunConfig,
        output: Path,
        *,
        progress: Progress,
        device: torch.device | None = None,
        prepare: Prepare | None = None,
        begins_anew: bool = False,
    ) -> None:
        self._began = time.monotonic()
        self._config = config
        self._output = output
        self._progress = progress
        self._device = device or torch.device("cpu")
        self._prepare = prepare
        self._begins_anew = begins_anew

    def fit(self, events: pl.DataFrame, items: pl.DataFrame | None) -> Fitted:
        """Fit to the training events, going on from a checkpoint where there is one.

        Raises:
            TrainingError: if the run cannot start or go on.
            DivergedError: if the loss, or a score, stops being a number.
        """
        self._output.mkdir(parents=True, exist_ok=True)
        whole = lay_out(self._config, events, items)
        split = self._config.split.split(whole, self._config.data.predict)
        described, recommender, initial = self._build(split.dataset, split.is_training)
        if isinstance(recommender.encoder, CountingEncoder):
            state = FitState()
            count_events(recommender, split.dataset, split.is_training)
        else:
            try:
                state = _fit(self._config, split, recommender, self._output, self._progress)
            except ForeignCheckpointError:
                if not self._begins_anew:
                    raise
                (self._output / CHECKPOINT).unlink()
                state = _fit(self._config, split, recommender, self._output, self._progress)
        return Fitted(whole, split, described, recommender.to("cpu"), initial, state)

    def measure(self, fitted: Fitted) -> Report:
        """Rank the test questions, beside the references; the report goes into the output."""
        report = measure(
            fitted.recommender,
            fitted.split,
            self._config.data,
            max_history=self._config.encoder.max_history,
        )
        report.write(self._output / "report.json")
        return report

    def complete(
        self, fitted: Fitted, report: Report, questions: Questions | None = None
    ) -> Outcome:
        """Refit on all events where the recipe asks for it, write the bundle and try it out.

        Args:
            questions: what to try it out with; by default those of the test.

        Raises:
            DivergedError: if the loss of the refit stops being a number.
            BundleError: if what was learned makes no sound bundle.
        """
        config, state = self._config, fitted.state
        described, recommender, initial = (
            fitted.described,
            fitted.recommender,
            fitted.initial_kernels,
        )
        dataset, learned = fitted.split.dataset, fitted.split.is_training
        if config.fit.refit:
            dataset, learned = fitted.whole, np.ones(len(fitted.whole), dtype=np.bool_)
            described, recommender, initial = self._build(dataset, learned)
            if isinstance(recommender.encoder, CountingEncoder):
                count_events(recommender, dataset, learned)
            else:
                self._progress.phase("refit", state.best_epoch)
                fit(
                    recommender,
                    _windows(config, dataset, dataset.offsets[1:]),
                    config.fit,
                    evaluate=None,
                    stop_after=state.best_epoch,
                    on_step=self._progress.step,
                    on_epoch=lambda now, *_: self._progress.epoch(now.reports[-1]),
                )
            recommender.to("cpu")
        seconds = time.monotonic() - self._began
        bundle, trial = export(
            config,
            TrainedModel(described, recommender, dataset, learned, initial),
            state,
            report,
            Holdout(fitted.whole, fitted.split.test if questions is None else questions),
            self._output,
            seconds,
        )
        return Outcome(
            bundle=bundle,
            report=report,
            trial=trial,
            epochs=tuple(state.reports),
            best_epoch=state.best_epoch,
            parameters=sum(
                weight.numel() for weight in recommender.parameters() if weight.requires_grad
            ),
            seconds=seconds,
        )

    def _build(
        self, dataset: Dataset, learned: NDArray[np.bool_]
    ) -> tuple[RecommenderConfig, Recommender, tuple[KernelCurve, ...]]:
        """A recommender that has not learned yet, and its kernels."""
        described, recommender = build_recommender(self._config, dataset, learned)
        if self._prepare is not None:
            self._prepare(described, recommender, dataset.catalog)
        initial = kernel_curves(recommender, window_of(dataset, learned).days)
        return described, recommender.to(self._device), initial


def _fit(
    config: RunConfig, split: Split, recommender: Recommender, output: Path, progress: Progress
) -> FitState:
    begun_with = fingerprint(config, split.dataset)
    optimizer = make_optimizer(recommender, config.fit)
    state = load_checkpoint(output, begun_with, recommender, optimizer)

    def validate(current: Recommender) -> dict[str, float]:
        return evaluate(
            current,
            split.dataset,
            split.validation,
            max_history=config.encoder.max_history,
            exclude_seen=config.data.exclude_seen,
        ).summarise()

    def keep(now: FitState, current: Recommender, moments: torch.optim.Optimizer) -> None:
        save_checkpoint(output, begun_with, now, current, moments)
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
