"""A training run: events in, a measured bundle out.

`train` runs all of it. Retraining calls the same four functions, `begin_run`,
`fit_recommender`, `evaluate_on_test` and `write_outcome`, and compares models between them.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from model.bundle.kernels import compute_kernel_curves
from model.bundle.signature import NO_KEYS, BundleKeys
from model.catalog import Catalog
from model.clock import now
from model.errors import ForeignCheckpointError, TrainingError
from model.interfaces import CountingEncoder
from model.recommender import Recommender, RecommenderConfig
from model.wide import EventCounts
from training.config import FitConfig, RunConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.data.limited_users import drop_excess
from training.data.plausible_times import drop_implausible
from training.data.split import Questions, Split, is_before
from training.distributed import ALONE, ProcessGroup
from training.evaluation.counting import CountingSettings, tune_counting
from training.evaluation.evaluate import evaluate
from training.evaluation.latency import LatencyCheck
from training.evaluation.live_counts import count_live, use_counts
from training.evaluation.metrics import Ranks
from training.evaluation.report import Report, rank_test_questions, summarise_ranks
from training.export import Holdout, TrainedModel, compute_fingerprint, export, find_window
from training.fitting.building import build_recommender, count_events
from training.fitting.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from training.fitting.fit import EpochReport, FitState, fit, make_optimizer
from training.fitting.weights import LearnedWeights
from training.preparation.events import PlausibleEvents, TrainingEvents

CONTINUED = 0.5
"""Share of the epochs and of the learning rates of a refit from fitted weights."""


class Progress(Protocol):
    """Receives the progress of a run."""

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        """Report that a phase begins: "fit" or "refit", of at most `epochs` epochs.

        Args:
            done: epochs that an interrupted run has completed.
        """

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Report that a batch is done."""

    def finish_epoch(self, report: EpochReport) -> None:
        """Report that an epoch is done."""


InitialiseWeights = Callable[[RecommenderConfig, Recommender, Catalog], None]
"""Replaces the weights of a fresh recommender for a catalog, before it is fitted."""


@dataclass(frozen=True)
class Run:
    """What every step of a run needs.

    Attributes:
        output: the directory of checkpoint, report and bundle.
        initialise_weights: sets the weights that fitting begins from; by default the seed alone
            decides them.
        replaces_checkpoint: whether the checkpoint of another run is removed instead of refused.
        began: `time.monotonic()` at the beginning.
        keys: sign the bundle.
        group: the processes that fit together; only the leader measures, writes and reports.
    """

    config: RunConfig
    output: Path
    progress: Progress
    device: torch.device
    initialise_weights: InitialiseWeights | None
    replaces_checkpoint: bool
    began: float
    keys: BundleKeys
    group: ProcessGroup


@dataclass(frozen=True)
class Fitted:
    """A fitted recommender, before it is measured.

    Attributes:
        whole: every event.
        split: the events cut for measurement; without validation questions if the validation
            events moved into the training part (`fit.refit_before_test`).
        model: the recommender, fitted to the training part of the split.
        live: counts of all events, for a model that reads counts.
        counting: the settings of the counting reference, chosen on the validation questions.
    """

    whole: Dataset
    split: Split
    model: TrainedModel
    state: FitState
    live: EventCounts | None
    counting: CountingSettings


@dataclass(frozen=True)
class Outcome:
    """The results of a run.

    Attributes:
        bundle: the directory of the bundle, named by its version.
        report: metrics on the test questions.
        latency: recall of the index and latency of the bundle.
        epochs: the figures of every epoch; empty for encoders fitted by counting.
        best_epoch: the epoch whose weights were kept.
        parameters: the number of learned parameters.
        seconds: wall time of the run.
    """

    bundle: Path
    report: Report
    latency: LatencyCheck
    epochs: tuple[EpochReport, ...]
    best_epoch: int
    parameters: int
    seconds: float


def train(
    config: RunConfig,
    events: TrainingEvents,
    items: pl.DataFrame | None,
    output: Path,
    *,
    progress: Progress,
    device: torch.device | None = None,
    keys: BundleKeys = NO_KEYS,
    group: ProcessGroup = ALONE,
) -> Outcome:
    """Fit on the training events, measure on the test questions, and write a bundle.

    Resumes from the checkpoint in `output`, if it is of the same recipe and events.

    Args:
        group: the processes that fit together. Each calls this with the same arguments, and returns
            the outcome.

    Raises:
        TrainingError: if the recipe does not fit the events, or the checkpoint is of another run.
        DivergedError: if the loss, or a score, is NaN or infinite.
        BundleError: if the result makes no valid bundle.
    """
    run = begin_run(config, output, progress=progress, device=device, keys=keys, group=group)
    fitted = fit_recommender(run, events, items)
    report = group.run_on_leader(lambda: evaluate_on_test(run, fitted))
    return write_outcome(run, fitted, report, fitted.split.test)


def begin_run(
    config: RunConfig,
    output: Path,
    *,
    progress: Progress,
    device: torch.device | None = None,
    initialise_weights: InitialiseWeights | None = None,
    replaces_checkpoint: bool = False,
    keys: BundleKeys = NO_KEYS,
    group: ProcessGroup = ALONE,
) -> Run:
    """Start the clock of a run and make its output directory; see `Run` for the arguments."""
    output.mkdir(parents=True, exist_ok=True)
    return Run(
        config=config,
        output=output,
        progress=progress,
        device=device or torch.device("cpu"),
        initialise_weights=initialise_weights,
        replaces_checkpoint=replaces_checkpoint,
        began=time.monotonic(),
        keys=keys,
        group=group,
    )


def build_dataset(config: RunConfig, events: TrainingEvents, items: pl.DataFrame | None) -> Dataset:
    """Lay out the events, filtered by the recipe's `[data]` table, except for rare items.

    Events of implausible times are left out, and what a single user has too much of. Rare items are
    left out by the split, which alone knows the training events.
    """
    if isinstance(events, PlausibleEvents):
        return events.build_dataset(
            items,
            min_user_events=config.data.min_user_events,
            ignored_actions=config.data.ignored_actions,
        )
    plausible, _ = drop_implausible(events, now())
    limited, _ = drop_excess(plausible)
    return Dataset.of(
        limited,
        items,
        min_user_events=config.data.min_user_events,
        ignored_actions=config.data.ignored_actions,
    )


def split_dataset(config: RunConfig, whole: Dataset) -> Split:
    """Split events that `build_dataset` returned, and leave rare items out, as the recipe says."""
    return config.split.split(whole, config.data.predict, config.data.min_item_events)


def fit_recommender(run: Run, events: TrainingEvents, items: pl.DataFrame | None) -> Fitted:
    """Split the events and fit to their training part, resuming from a checkpoint if there is one.

    Raises:
        TrainingError: if the recipe does not fit the events, or the checkpoint is of another run.
        DivergedError: if the loss, or a score, is NaN or infinite.
    """
    whole = build_dataset(run.config, events, items)
    split = split_dataset(run.config, whole)
    if not len(split.test):
        raise TrainingError(
            "a split must leave a test question, a user with events before and in the test, but of "
            f"{len(whole):,} events of {len(whole.user_ids):,} users it leaves none; change the "
            "split, or bring users with events at more instants"
        )
    model = _build_model(run, split.dataset, split.is_training)
    # Where users are split, or leave one event out, others' test events may be before a validation
    # question: no epoch is chosen by them.
    live = count_live(model.recommender, split.dataset, split.is_known_before_test)
    if isinstance(model.recommender.encoder, CountingEncoder):
        count_events(model.recommender, split.dataset, split.is_training)
        state = FitState()
    else:
        state = _fit_with_checkpoints(run, split, model.recommender, live)
    counting = run.group.run_on_leader(
        lambda: tune_counting(split, exclude_seen=run.config.data.exclude_seen)
    )
    live = None  # Its memory is free during the refit.
    if run.config.fit.refit_before_test:
        split = split.move_to_test(whole, run.config.data.predict)
        model = _refit(run, split.dataset, split.train_ends, state, model)
    live = count_live(model.recommender, split.dataset)
    model.recommender.to("cpu")
    return Fitted(whole, split, model, state, live, counting)


def evaluate_on_test(run: Run, fitted: Fitted) -> Report:
    """Measure model and references on the test questions; write the report into the output."""
    report = summarise_ranks(rank_on_test(run, fitted), fitted.split, fitted.counting)
    report.write(run.output / "report.json")
    return report


def rank_on_test(run: Run, fitted: Fitted) -> dict[str, Ranks]:
    """Rank the test questions by model and references; the keys are the rows of a report."""
    return rank_test_questions(
        fitted.model.recommender,
        fitted.split,
        run.config.data,
        max_history=run.config.encoder.max_history,
        live=fitted.live,
        counting=fitted.counting,
    )


def write_outcome(run: Run, fitted: Fitted, report: Report, questions: Questions) -> Outcome:
    """Refit on all events if `fit.refit` is set, write the bundle and measure its latency.

    Args:
        questions: what latency and index recall are measured with, in terms of the whole data set.

    Raises:
        DivergedError: if the loss of the refit is NaN or infinite.
        BundleError: if the result makes no valid bundle.
    """
    model = fitted.model
    if run.config.fit.refit:
        every = fitted.whole.limit_catalog(
            np.ones(len(fitted.whole), dtype=np.bool_),
            min_item_events=run.config.data.min_item_events,
        )
        model = _refit(run, every, every.offsets[1:], fitted.state, model)
    seconds = time.monotonic() - run.began
    bundle, latency = run.group.run_on_leader(
        lambda: export(
            run.config,
            model,
            fitted.state,
            report.metrics,
            Holdout(fitted.whole, questions),
            run.output,
            seconds,
            run.keys,
        )
    )
    learned = (weight for weight in model.recommender.parameters() if weight.requires_grad)
    return Outcome(
        bundle=bundle,
        report=report,
        latency=latency,
        epochs=tuple(fitted.state.reports),
        best_epoch=fitted.state.best_epoch,
        parameters=sum(weight.numel() for weight in learned),
        seconds=seconds,
    )


def _build_model(
    run: Run,
    dataset: Dataset,
    is_training: NDArray[np.bool_],
    learned: LearnedWeights | None = None,
) -> TrainedModel:
    """Build a recommender for a data set, and compute its kernels before it is fitted.

    Args:
        learned: weights to continue from, in place of `run.initialise_weights`.
    """
    config, recommender = build_recommender(run.config, dataset, is_training, learned=learned)
    if run.initialise_weights is not None and learned is None:
        run.initialise_weights(config, recommender, dataset.catalog)
    initial_kernels = compute_kernel_curves(recommender, find_window(dataset, is_training).days)
    return TrainedModel(config, recommender.to(run.device), dataset, is_training, initial_kernels)


def _fit_with_checkpoints(
    run: Run, split: Split, recommender: Recommender, live: EventCounts | None
) -> FitState:
    """Fit with early stopping on the validation questions, writing a checkpoint every epoch.

    Args:
        live: the counts that are read for the validation questions.
    """
    config = run.config
    identity = compute_fingerprint(config, split.dataset)
    run.group.require_agreement(
        "recipe and events",
        identity,
        "let all read the same, such as prepared events instead of a database that is written to",
    )
    optimizer = make_optimizer(recommender, config.fit)
    try:
        state = load_checkpoint(run.output, identity, recommender, optimizer)
    except ForeignCheckpointError:
        if not run.replaces_checkpoint:
            raise
        (run.output / CHECKPOINT).unlink()
        state = None
    run.group.require_agreement(
        "checkpoint, read from the output directory",
        "none" if state is None else f"that of epoch {state.epoch}",
        "put it on a file system that the machines share",
    )

    def validate(current: Recommender) -> dict[str, float]:
        with use_counts(current, live):
            return evaluate(
                current,
                split.dataset,
                split.validation,
                max_history=config.encoder.max_history,
                exclude_seen=config.data.exclude_seen,
            ).summarise()

    def save(now: FitState, current: Recommender, moments: torch.optim.Optimizer) -> None:
        if run.group.is_leader:
            save_checkpoint(run.output, identity, now, current, moments)
        run.progress.finish_epoch(now.reports[-1])

    run.progress.start_fit("fit", config.fit.epochs, 0 if state is None else state.epoch)
    return fit(
        recommender,
        _build_windows(config, split.dataset, split.train_ends, run.device),
        config.fit,
        # Without a known target every epoch scores zero, so the first would count as the best.
        evaluate=(
            (lambda current: run.group.run_on_leader(lambda: validate(current)))
            if split.validation.target_rows.any()
            else None
        ),
        state=state,
        optimizer=optimizer,
        group=run.group,
        on_step=run.progress.finish_step,
        on_epoch=save,
    )


def _refit(
    run: Run,
    dataset: Dataset,
    train_ends: NDArray[np.int64],
    state: FitState,
    fitted: TrainedModel,
) -> TrainedModel:
    """Train again, on the events before `train_ends`; see `FitConfig.refit_from`."""
    is_training = is_before(dataset, train_ends) & (dataset.rows > 0)
    config = run.config.fit
    learned: LearnedWeights | None = None
    if config.refit_from == "fitted":
        learned = LearnedWeights(fitted.recommender, fitted.dataset.catalog)
    model = _build_model(run, dataset, is_training, learned)
    if isinstance(model.recommender.encoder, CountingEncoder):
        count_events(model.recommender, dataset, is_training)
    else:
        epochs = state.best_epoch or config.epochs
        # The learning rate decays to the last of the epochs.
        changes: dict[str, float] = {"epochs": count_refit_epochs(config, epochs)}
        if learned is not None:
            changes |= {
                "learning_rate": config.learning_rate * CONTINUED,
                "scalar_learning_rate": (config.scalar_learning_rate or config.learning_rate)
                * CONTINUED,
                "frequency_learning_rate": config.frequency_learning_rate * CONTINUED,
            }
        run.progress.start_fit("refit", int(changes["epochs"]))
        fit(
            model.recommender,
            _build_windows(run.config, dataset, train_ends, run.device),
            config.model_copy(update=changes),
            evaluate=None,
            group=run.group,
            on_step=run.progress.finish_step,
            on_epoch=lambda now, *_: run.progress.finish_epoch(now.reports[-1]),
        )
    model.recommender.to("cpu")
    return model


def count_refit_epochs(config: FitConfig, epochs: int) -> int:
    """Count the epochs of a refit after a fit of so many; see `FitConfig.refit_from`."""
    return math.ceil(epochs * CONTINUED) if config.refit_from == "fitted" else epochs


def _build_windows(
    config: RunConfig, dataset: Dataset, train_ends: NDArray[np.int64], device: torch.device
) -> TrainingWindows:
    return TrainingWindows(
        dataset,
        train_ends,
        predict=config.data.predict,
        max_history=config.encoder.max_history,
        device=device,
    )
