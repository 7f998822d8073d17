"""One run of a recipe of ours: its settings are chosen, it is fitted, measured and exported."""

import time
from pathlib import Path
from typing import final

import polars as pl
import torch

from benchmarks.papers.harness.cell import Cell, ProgressEvent, ReportProgress, Run, tune_cell
from benchmarks.papers.harness.question_ranks import RankedQuestions
from benchmarks.papers.harness.record import CurvePoint, ProfilePoint
from benchmarks.papers.harness.search import build_measure, find_best, replace_settings
from benchmarks.papers.harness.tuning import Tuning
from model.store.opening import open_predictor
from training.evaluation.report import summarise_ranks
from training.fitting.fit import EpochReport
from training.run import begin_run, fit_recommender, rank_on_test, write_outcome


def run_recipe(
    cell: Cell,
    events: pl.DataFrame,
    items: pl.DataFrame | None,
    output: Path,
    report_progress: ReportProgress,
) -> Run:
    """Run a recipe of ours: choose its settings, fit, evaluate and export.

    Args:
        output: an empty folder for the bundle.
    """
    reporter = _ProgressReporter(report_progress)

    tuning, config, device = Tuning(), cell.config, torch.device(cell.device)
    if cell.search_space:
        measure = build_measure(config, events, items, device)
        tuning = tune_cell(cell, cell.search_space, measure, report_progress)
        config = replace_settings(config, find_best(tuning.trials).settings)
    run = begin_run(config, output, progress=reporter, device=device)
    fitted = fit_recommender(run, events, items)
    ranks_of = rank_on_test(run, fitted)
    report = summarise_ranks(ranks_of, fitted.split, fitted.counting)
    outcome = write_outcome(run, fitted, report, fitted.split.test)
    profile = open_predictor(outcome.bundle).bundle.attention_profile
    epochs = len(outcome.epochs)
    return Run(
        config=config.model_dump(mode="json"),
        report=report,
        ranks_of=ranks_of,
        questions=RankedQuestions.of(
            fitted.split, fitted.whole, config.data.predict, ranks_of, fitted.counting
        ),
        curve=tuple(reporter.curve),
        epochs=epochs,
        seconds_per_epoch=sum(done.seconds for done in outcome.epochs) / max(epochs, 1),
        best_epoch=outcome.best_epoch,
        parameters=outcome.parameters,
        tuning=tuning,
        attention_profile=None
        if profile is None
        else [ProfilePoint(**point) for point in profile.iter_rows(named=True)],
        bundle=outcome.bundle,
    )


@final
class _ProgressReporter:
    """Reports the progress of a run, at most once a second within an epoch.

    Attributes:
        curve: the epochs of the fit so far, without those of a refit.
    """

    def __init__(self, report_progress: ReportProgress) -> None:
        self.curve: list[CurvePoint] = []
        self._report = report_progress
        self._of = 0
        self._epoch = 1
        self._reported_at = 0.0
        self._is_fit = False
        self._began, self._busy = 0.0, 0.0

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:  # noqa: ARG002
        self._of, self._epoch, self._is_fit = epochs, 1, name == "fit"
        self._began, self._busy = time.monotonic(), time.process_time()

    def finish_step(self, done: int, of: int, loss: float) -> None:
        if time.monotonic() - self._reported_at >= 1:
            self._reported_at = time.monotonic()
            self._report(ProgressEvent(epoch=self._epoch, of=self._of, share=done / of, loss=loss))

    def finish_epoch(self, report: EpochReport) -> None:
        self._epoch = report.epoch + 1
        if self._is_fit:
            self.curve.append(
                CurvePoint(
                    epoch=report.epoch,
                    seconds=round(time.monotonic() - self._began, 1),
                    cpu_seconds=round(time.process_time() - self._busy, 1),
                    loss=report.loss,
                    validation=report.validation,
                )
            )
        self._report(
            ProgressEvent(
                epoch=report.epoch,
                of=self._of,
                share=1.0,
                loss=report.loss,
                validation=report.validation,
                seconds=report.seconds,
            )
        )
