"""The challenger: read its events, fit it, compare it with the champion, and apply the gate."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl
import torch

from model.bundle.signature import BundleKeys
from model.clock import now, to_datetime
from model.errors import BundleError, DivergedError, TrainingError
from model.inference.predictor import Predictor
from model.recommender import Recommender
from training.data.database_source import read_erasures
from training.data.erasures import Erasures
from training.data.limited_users import drop_excess, find_largest_item_share, find_largest_share
from training.data.plausible_times import drop_implausible
from training.data.sources import format_location, is_database, read_events, read_items
from training.evaluation.latency import LatencyCheck
from training.retraining.comparison import CHALLENGER, CHAMPION, POPULARITY, Comparison, compare
from training.retraining.gate import Decision, Evidence, decide
from training.retraining.job import Phase, RetrainingJob, RetrainingProgress
from training.retraining.report import DataSummary, FitSummary
from training.retraining.warm_start import copy_champion_weights
from training.run import begin_run, evaluate_on_test, fit_recommender, write_outcome


class EvaluatedChallenger(NamedTuple):
    """A challenger and the gate's decision on it.

    Attributes:
        comparison: None where the challenger is not usable; so are `learned` and `bundle`.
        bundle: its directory.
    """

    data: DataSummary
    decision: Decision
    comparison: Comparison | None = None
    learned: FitSummary | None = None
    bundle: Path | None = None


def evaluate_challenger(
    job: RetrainingJob,
    champion: Predictor | None,
    directory: Path,
    *,
    progress: RetrainingProgress,
    start_phase: Callable[[Phase], None],
    device: torch.device | None,
    keys: BundleKeys,
) -> EvaluatedChallenger:
    """Train a challenger, compare it with the champion, write its bundle and apply the gate.

    A challenger with NaN or infinite weights or scores is not compared; the gate refuses it.

    Args:
        champion: None if there is none to compare with or to begin from.
        directory: of the run; a checkpoint of the same recipe and events in it is resumed.
        start_phase: called when a phase begins.
        keys: sign the bundle.

    Raises:
        KairosError: if no challenger can be trained.
    """
    config = job.config
    start_phase("read")
    events, data = read_training_data(
        job.events,
        until=job.until,
        known_by=job.known_by,
        erasures=Erasures({}) if job.database is None else read_erasures(job.database),
    )
    items = None if job.items is None else read_items(job.items)
    is_warm = champion is not None and job.warm_start
    # The checkpoint is of other events if users were erased since: it is replaced.
    run = begin_run(
        config,
        directory,
        progress=progress,
        device=device,
        initialise_weights=copy_champion_weights(champion) if champion and is_warm else None,
        replaces_checkpoint=True,
        keys=keys,
    )
    try:
        start_phase("fit")
        fitted = fit_recommender(run, events, items)
        _require_finite(fitted.model.recommender)
        start_phase("evaluate")
        comparison, questions = compare(fitted, config, champion, is_warm=is_warm)
        report = evaluate_on_test(run, fitted)
        start_phase("write")
        outcome = write_outcome(run, fitted, report, questions)
    except (DivergedError, BundleError) as error:
        return EvaluatedChallenger(data, decide(config.gate, Evidence(unsound=str(error))))
    learned = FitSummary(
        epochs=len(outcome.epochs),
        best_epoch=outcome.best_epoch,
        parameters=outcome.parameters,
        refitted=config.fit.refit,
        seconds=round(outcome.seconds, 1),
    )
    start_phase("gate")
    evidence = _gather_evidence(comparison, outcome.latency, data)
    decision = decide(config.gate, evidence)
    return EvaluatedChallenger(data, decision, comparison, learned, outcome.bundle)


def identify_erasures(job: RetrainingJob) -> str:
    """Return a digest of the users whom the job leaves out now: the service's and the source's.

    Raises:
        EventSourceError: if a database cannot be read.
    """
    source = job.events if is_database(job.events) else None
    addresses = dict.fromkeys(it for it in (job.database, source) if it is not None)
    return "-".join(read_erasures(address).identify() for address in addresses)


def read_training_data(
    location: str, *, until: int, known_by: int, erasures: Erasures
) -> tuple[pl.DataFrame, DataSummary]:
    """Read the events that had happened by one instant and arrived by another.

    Args:
        location: as for `training.data.sources.read_events`.
        until: epoch microseconds; later events are left out.
        known_by: epoch microseconds; events that arrived later are left out, where the source
            records arrival.
        erasures: users whose events are left out; files may still hold old copies of them.

    Raises:
        EventSourceError: if the events cannot be read.
        TrainingError: if there are none.
    """
    read = read_events(location, until, known_by=known_by)
    allowed = erasures.drop_erased(read)
    plausible, left_out = drop_implausible(allowed, now())
    events, excess = drop_excess(plausible)
    if events.is_empty():
        raise TrainingError(
            f"a run learns from events, but {format_location(location)} had none by "
            f"{to_datetime(until)} that had arrived by {to_datetime(known_by)}; import events "
            "(kairos import-events), check --until, or give --known-by a later instant where old "
            "events were imported"
        )
    summary = DataSummary.model_validate(
        {
            "source": format_location(location),
            "until": to_datetime(until),
            "known_by": to_datetime(known_by),
            "events": len(events),
            "users": events["user_id"].n_unique(),
            "items": events["item_id"].n_unique(),
            "first_at": events["timestamp"].min(),
            "last_at": events["timestamp"].max(),
            "erased_events": len(read) - len(allowed),
            "implausible_times": left_out.describe() or None,
            "excess_events": excess.describe() or None,
            "largest_user_share": find_largest_share(events),
            "largest_item_share": find_largest_item_share(events),
        }
    )
    return events, summary


def _require_finite(recommender: Recommender) -> None:
    count = sum(int((~weight.isfinite()).sum()) for weight in recommender.parameters())
    if count:
        raise DivergedError(f"{count} weights are NaN or infinite; lower the learning rate")


def _gather_evidence(comparison: Comparison, latency: LatencyCheck, data: DataSummary) -> Evidence:
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
        index_recall=latency.index_recall,
        p95_seconds=latency.p95_seconds,
        user_share=data.largest_user_share,
        item_share=data.largest_item_share,
    )
