"""From events to a challenger, and to what the gate says of it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from model.errors import BundleError, DivergedError
from model.inference.predictor import Predictor
from model.recommender import Recommender
from training.data.database_source import read_erasures
from training.data.erasures import Erasures
from training.data.sources import read_items
from training.evaluation.latency import LatencyCheck
from training.retraining.comparison import (
    CHALLENGER,
    CHAMPION,
    POPULARITY,
    Comparison,
    compare,
)
from training.retraining.gate import Decision, Evidence, decide
from training.retraining.journal import Phase, Watcher
from training.retraining.report import DataRead, Learned
from training.retraining.settings import RetrainingJob
from training.retraining.training_data import read_known
from training.retraining.warm_start import beginning_from
from training.run import Run


class Candidate(NamedTuple):
    """A challenger, as far as it came.

    Attributes:
        bundle: its directory; None where it came to no bundle.
    """

    data: DataRead
    decision: Decision
    comparison: Comparison | None = None
    learned: Learned | None = None
    bundle: Path | None = None


def evaluate_candidate(
    order: RetrainingJob,
    champion: Predictor | None,
    directory: Path,
    *,
    watcher: Watcher,
    enter: Callable[[Phase], None],
    device: torch.device | None,
) -> Candidate:
    """Read, fit, compare, write, and ask the gate.

    A challenger that is not made of numbers is not compared: the gate refuses it as it is.

    Args:
        directory: of the run; a checkpoint in it is gone on with.
        enter: called when a phase begins.

    Raises:
        KairosError: if there is no challenger to speak of.
    """
    config = order.config
    enter("read")
    known = read_known(
        order.events,
        until=order.until,
        known_by=order.known_by,
        erasures=Erasures({}) if order.database is None else read_erasures(order.database),
    )
    items = None if order.items is None else read_items(order.items)
    prepare = beginning_from(champion) if champion is not None and order.warm_start else None
    # Who was erased since the checkpoint is in no run any more: the events may be others by now.
    run = Run(
        config,
        directory,
        progress=watcher,
        device=device,
        prepare=prepare,
        begins_anew=True,
    )
    try:
        enter("fit")
        fitted = run.fit(known.events, items)
        _require_finite(fitted.recommender)
        enter("evaluate")
        compared = compare(fitted, config, champion, is_warm=prepare is not None)
        report = run.measure(fitted)
        enter("write")
        outcome = run.complete(fitted, report, compared.questions)
    except (DivergedError, BundleError) as error:
        return Candidate(known.described, decide(config.gate, Evidence(unsound=str(error))))
    learned = Learned(
        epochs=len(outcome.epochs),
        best_epoch=outcome.best_epoch,
        parameters=outcome.parameters,
        refitted=config.fit.refit,
        seconds=round(outcome.seconds, 1),
    )
    enter("gate")
    evidence = _evidence(compared.comparison, outcome.trial)
    return Candidate(
        known.described,
        decide(config.gate, evidence),
        compared.comparison,
        learned,
        outcome.bundle,
    )


def _require_finite(recommender: Recommender) -> None:
    count = sum(int((~weight.isfinite()).sum()) for weight in recommender.parameters())
    if count:
        raise DivergedError(f"{count} weights are NaN or infinite; lower the learning rate")


def _evidence(comparison: Comparison, trial: LatencyCheck) -> Evidence:
    """What the gate is told of a challenger that can be used."""
    metric, rows, leads = comparison.metric, comparison.rows, comparison.leads
    popularity = min(POPULARITY, key=lambda name: leads[name].low)
    has_champion = CHAMPION in rows
    return Evidence(
        questions=comparison.questions,
        metric=rows[CHALLENGER][metric],
        champion=rows[CHAMPION][metric] if has_champion else None,
        over_champion=leads[CHAMPION].low if has_champion else None,
        popularity=rows[popularity][metric],
        over_popularity=leads[popularity].low,
        index_recall=trial.index_recall,
        p95_seconds=trial.p95_seconds,
    )
