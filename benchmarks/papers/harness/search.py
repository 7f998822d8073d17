"""The choice of a row's settings on the validation questions."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl
import torch
from pydantic import JsonValue, TypeAdapter, ValidationError

from benchmarks.papers.harness.record import TuningTrial
from benchmarks.papers.harness.settings import Settings, merge
from benchmarks.papers.peers.config import PeerConfig
from model.errors import TrainingError
from model.interfaces import CountingEncoder
from training.config import RunConfig
from training.coordinate_search import search_by_coordinate
from training.data.split import Split
from training.evaluation.evaluate import evaluate
from training.fitting.building import build_recommender, count_events
from training.fitting.fit import EpochReport
from training.problems import format_problems
from training.run import begin_run, build_dataset, fit_recommender, split_dataset

SearchSpace = Mapping[str, Sequence[JsonValue]] | Sequence[Settings]
"""What settings are chosen from: values by the dotted name of a setting, of which one is changed at
a time, beginning with the first of each; or tables of settings by dotted name."""


def search_settings(
    space: SearchSpace, measure: Callable[[Settings], TuningTrial]
) -> tuple[TuningTrial, ...]:
    """Try all tables of settings, or change one setting at a time until no change helps.

    Args:
        measure: tries some settings.

    Returns:
        What was tried, in order.
    """
    if not isinstance(space, Mapping):
        return tuple(measure(each) for each in space)
    measured: list[TuningTrial] = []

    def add(settings: Settings) -> float:
        measured.append(measure(settings))
        return measured[-1].value

    search_by_coordinate(space, {name: values[0] for name, values in space.items()}, add)
    return tuple(measured)


def find_best(trials: Sequence[TuningTrial]) -> TuningTrial:
    """Find the trial with the largest metric; the first of equal ones."""
    return max(trials, key=lambda trial: trial.value)


def build_measure(
    config: RunConfig, events: pl.DataFrame, items: pl.DataFrame | None, device: torch.device
) -> Callable[[Settings], TuningTrial]:
    """Build what tries settings of a recipe, by its monitored metric on the validation questions.

    It raises TrainingError if a setting is unknown or a value invalid.

    Raises:
        TrainingError: if there is no validation question.
    """
    split = split_dataset(config, build_dataset(config, events, items))
    check_validation(split)

    def measure(changes: Settings) -> TuningTrial:
        value = _validate(replace_settings(config, changes), split, events, items, device)
        return TuningTrial(settings=changes, value=value, seed=config.fit.seed)

    return measure


def check_validation(split: Split) -> None:
    """Check that a split has validation questions, by which settings are chosen.

    Raises:
        TrainingError: if it has none.
    """
    if not len(split.validation):
        raise TrainingError(
            "settings are chosen by a metric on validation questions, but the split has none; give "
            "the suite's [base.split] a larger validation, or the row no choice of settings"
        )


def replace_settings(config: RunConfig, changes: Settings) -> RunConfig:
    """Replace settings of a recipe, by dotted name.

    Raises:
        TrainingError: if a setting is unknown or a value invalid.
    """
    settings: Settings = config.model_dump(mode="json")
    for name, value in changes.items():
        *tables, last = name.split(".")
        change: Settings = {last: value}
        for part in reversed(tables):
            change = {part: change}
        settings = merge(settings, change)
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        raise TrainingError(
            f"a search names known settings with values that fit, but {changes} does not: "
            f"{format_problems(error)}; correct the row"
        ) from error


def replace_peer_settings(peer: PeerConfig, changes: Settings) -> PeerConfig:
    """Replace settings of a peer, by name.

    Raises:
        TrainingError: if a setting is unknown or a value invalid.
    """
    try:
        replaced: PeerConfig = TypeAdapter(PeerConfig).validate_python(peer.model_dump() | changes)
    except ValidationError as error:
        raise TrainingError(
            f"a trial of a peer names known settings with values that fit, but {changes} does not: "
            f"{format_problems(error)}; correct the row"
        ) from error
    return replaced


def check_choice(space: SearchSpace, start: RunConfig | PeerConfig) -> None:
    """Check what settings are chosen from, before anything is trained.

    Args:
        start: the settings that are changed.

    Raises:
        TrainingError: if a setting is unknown or a value invalid.
    """
    if isinstance(space, Mapping):
        first = {name: values[0] for name, values in space.items()}
        space = [first | {name: value} for name, values in space.items() for value in values]
    for changes in space:
        if isinstance(start, RunConfig):
            replace_settings(start, changes)
        else:
            replace_peer_settings(start, changes)


def _validate(
    config: RunConfig,
    split: Split,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    device: torch.device,
) -> float:
    """Fit on the training part; return the monitored metric on the validation questions."""
    _, recommender = build_recommender(config, split.dataset, split.is_training)
    if isinstance(recommender.encoder, CountingEncoder):
        count_events(recommender, split.dataset, split.is_training)
        ranks = evaluate(
            recommender,
            split.dataset,
            split.validation,
            max_history=config.encoder.max_history,
            exclude_seen=config.data.exclude_seen,
        )
        return float(ranks.per_question(config.fit.monitor).mean())
    short = config.model_copy(
        update={"fit": config.fit.model_copy(update={"refit_before_test": False})}
    )
    with tempfile.TemporaryDirectory() as output:
        run = begin_run(short, Path(output), progress=_NoProgress(), device=device)
        return fit_recommender(run, events, items).state.best_value


class _NoProgress:
    def start_fit(self, name: str, epochs: int, done: int = 0) -> None: ...

    def finish_step(self, done: int, of: int, loss: float) -> None: ...

    def finish_epoch(self, report: EpochReport) -> None: ...
