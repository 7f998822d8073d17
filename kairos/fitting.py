"""Fitting a model on a frame of events."""

import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import torch
from rich.console import Console

from kairos.frames import Source, to_events, to_items
from kairos.histories import Histories
from kairos.model import Model
from model.clock import now
from model.store.opening import open_predictor
from training.config import RunConfig
from training.data.limited_users import drop_excess
from training.data.plausible_times import drop_implausible
from training.device import parse_device
from training.fitting.checkpoint import CHECKPOINT
from training.fitting.fit import EpochReport
from training.inspection.profile import profile_events
from training.inspection.recommendation import recommend_recipe
from training.progress import TrainingProgress
from training.run import Outcome, Progress, train


def fit(
    events: Source,
    items: Source | None = None,
    *,
    recipe: RunConfig | str | Path | None = None,
    epochs: int | None = None,
    seed: int | None = None,
    device: str = "cpu",
    output: str | Path | None = None,
    quiet: bool = False,
) -> Model:
    """Fit a model on events, and measure it on the latest of them, as `kairos train` does.

    Interrupting it is safe: nothing is left of it, except in `output`.

    Args:
        events: a frame with `user_id`, `item_id`, `timestamp` and, optionally, `action` and
            `value`; or a location of files. Timestamps are aware datetimes, texts with an offset or
            epoch seconds.
        items: `item_id` and, optionally, `title` and `categories`.
        recipe: settings, a TOML file, or the name of a shipped one; by default the recipe that
            `kairos inspect` recommends for the events.
        epochs: replaces the most epochs of the recipe.
        seed: replaces the recipe's seed. Equal events, recipe, seed and number of threads give
            equal models.
        device: of torch, such as "cuda".
        output: the directory of checkpoint, report and bundle; the same call resumes an interrupted
            one. By default a temporary one, which lasts as long as the model.
        quiet: show no progress.

    Raises:
        EventSourceError: if an event or an item is invalid; the message names row and column.
        TrainingError: if the recipe does not fit the events, or a checkpoint is of another run.
        DivergedError: if the loss, or a score, is NaN or infinite.

    Example:
        >>> model = kairos.fit("demo/events.parquet", "demo/items.parquet")  # doctest: +SKIP
        >>> model.recommend("13085", at="2011-12-01T09:00:00Z", n=3)  # doctest: +SKIP
    """
    event_table = to_events(events)
    item_table = None if items is None else to_items(items)
    config = _build_config(recipe, event_table, item_table, epochs=epochs, seed=seed)
    _warn_of_events_left_out(event_table)
    with _open_output(output) as (directory, is_temporary):
        outcome = _train(config, event_table, item_table, directory, parse_device(device), quiet)
        if is_temporary:
            (directory / CHECKPOINT).unlink(missing_ok=True)
        model = Model(
            open_predictor(outcome.bundle),
            outcome.bundle,
            histories=Histories(event_table),
            report=outcome.report,
        )
        if is_temporary:
            # Also when the interpreter exits.
            weakref.finalize(model, shutil.rmtree, directory, ignore_errors=True)
        return model


def _build_config(
    recipe: RunConfig | str | Path | None,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    *,
    epochs: int | None,
    seed: int | None,
) -> RunConfig:
    if recipe is None:
        config = recommend_recipe(profile_events(events, items)).config
    else:
        config = recipe if isinstance(recipe, RunConfig) else RunConfig.read(recipe)
    given = {"epochs": epochs, "seed": seed}
    changes = {name: value for name, value in given.items() if value is not None}
    return config.replace_fit(changes) if changes else config


def _warn_of_events_left_out(events: pl.DataFrame) -> None:
    plausible, left_out = drop_implausible(events, now())
    _, excess = drop_excess(plausible)
    if left_out.total:
        warnings.warn(f"left out {left_out.describe()}", stacklevel=3)
    if excess.events:
        warnings.warn(f"left out {excess.describe()}", stacklevel=3)


@contextmanager
def _open_output(output: str | Path | None) -> Iterator[tuple[Path, bool]]:
    """Yield the output directory, and whether it is temporary; that is removed on failure."""
    if output is not None:
        yield Path(output), False
        return
    directory = Path(tempfile.mkdtemp(prefix="kairos-"))
    try:
        yield directory, True
    except BaseException:  # an interrupt, too
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _train(
    config: RunConfig,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    output: Path,
    device: torch.device,
    quiet: bool,
) -> Outcome:
    def run(progress: Progress) -> Outcome:
        return train(config, events, items, output, progress=progress, device=device)

    if quiet:
        return run(_NoProgress())
    with TrainingProgress(config.fit.monitor, Console(file=sys.stderr)) as progress:
        return run(progress)


class _NoProgress:
    """Shows nothing."""

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:
        """Do nothing."""

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Do nothing."""

    def finish_epoch(self, report: EpochReport) -> None:
        """Do nothing."""
