"""One run of a peer: its library fits it on the split of a recipe, and its scores are ranked."""

import tempfile
from pathlib import Path

import polars as pl

from benchmarks.papers.harness.cell import Cell, ProgressEvent, ReportProgress, Run, tune_cell
from benchmarks.papers.harness.provenance import digest_code
from benchmarks.papers.harness.question_ranks import RankedQuestions
from benchmarks.papers.harness.record import CurvePoint, PeerRun, TuningTrial
from benchmarks.papers.harness.search import check_validation, find_best, replace_peer_settings
from benchmarks.papers.harness.settings import Settings
from benchmarks.papers.peers.config import PeerConfig
from benchmarks.papers.peers.run import FitOptions, run_peer, validate_peer
from model.errors import TrainingError
from training.config import DataConfig
from training.data.split import Split
from training.evaluation.counting import tune_counting
from training.evaluation.report import MODEL, WITHHELD, rank_references, summarise_ranks
from training.run import build_dataset, split_dataset


def run_library(
    cell: Cell,
    peer: PeerConfig,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    report_progress: ReportProgress,
) -> Run:
    """Run another library's model on the same split, by its library, and rank its scores.

    Raises:
        TrainingError: if there is no validation question, the library failed, or the trials of an
            earlier run name no epochs.
    """
    data = cell.config.data
    whole = build_dataset(cell.config, events, items)
    split = split_dataset(cell.config, whole)
    check_validation(split)

    def report(point: tuple[float, int, dict[str, float]]) -> None:
        seconds, epoch, metrics = point
        report_progress(
            ProgressEvent(epoch=epoch, of=peer.epochs, share=1, validation=metrics, seconds=seconds)
        )

    options = FitOptions(
        seed=cell.seed,
        budget_seconds=cell.peer_budget_seconds,
        monitor=cell.config.fit.monitor,
        threads=cell.threads,
        report_evaluation=report,
    )

    def measure(changes: Settings) -> TuningTrial:
        return _measure_trial(peer, changes, split, data, options)

    # One trial finds the epochs, if there is no choice.
    tuning = tune_cell(cell, cell.search_space or ({},), measure, report_progress)
    best = find_best(tuning.trials)
    if best.epochs is None:
        raise TrainingError(
            "a trial of a peer has found the number of its epochs, but the best of "
            f"{cell.trials_file} names none; delete the file to make the trials again"
        )
    config = replace_peer_settings(peer, best.settings)
    refit = config.model_copy(update={"epochs": best.epochs})
    code = digest_code()
    with tempfile.TemporaryDirectory() as work:
        outcome = run_peer(refit, whole, split, data, Path(work), options)
    fit = outcome.fit
    counting = tune_counting(split, exclude_seen=data.exclude_seen)
    ranks_of = {
        MODEL: outcome.given,
        WITHHELD: outcome.withheld or outcome.given,
    } | rank_references(outcome.split, data, counting)
    return Run(
        config=config.model_dump(mode="json"),
        report=summarise_ranks(ranks_of, outcome.split, counting),
        ranks_of=ranks_of,
        questions=RankedQuestions.of(outcome.split, whole, data.predict, ranks_of, counting),
        curve=best.curve if best.seed == cell.seed else (),
        epochs=best.epochs,
        seconds_per_epoch=fit.fit_seconds / best.epochs,
        best_epoch=best.epochs,
        parameters=fit.parameters,
        tuning=tuning,
        code=code,
        peer=PeerRun(
            fit_seconds=round(fit.fit_seconds, 1),
            test_seconds=round(fit.test_seconds, 1),
            peak_mib=round(fit.peak_mib),
            known_items=fit.known_items,
            versions=fit.versions,
        ),
    )


def _measure_trial(
    peer: PeerConfig, changes: Settings, split: Split, data: DataConfig, options: FitOptions
) -> TuningTrial:
    """Fit a peer with changed settings on the training events, and validate it."""
    code = digest_code()  # a new process reads the files as they are now
    tried = replace_peer_settings(peer, changes)
    with tempfile.TemporaryDirectory() as work:
        trial = validate_peer(tried, split, data, Path(work), options)
    return TuningTrial(
        settings=changes,
        value=trial.best,
        seed=options.seed,
        epochs=trial.best_epoch,
        code=code,
        curve=tuple(
            CurvePoint(
                epoch=epoch, seconds=seconds, cpu_seconds=seconds, loss=None, validation=metrics
            )
            for seconds, epoch, metrics in trial.curve
        ),
    )
