"""Runs a peer on a split, and ranks its scores by the metrics of this project."""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.papers.peers.config import PeerConfig, find_library
from benchmarks.papers.peers.environments import CODE, find_interpreter
from benchmarks.papers.peers.export import export_split
from benchmarks.papers.peers.files import (
    PROBLEM,
    PROGRESS,
    RESULT,
    SCORES,
    SCORES_WITHHELD,
    TASK,
    Task,
)
from model.errors import DivergedError, TrainingError
from training.blocks import split_into_blocks
from training.config import SESSION_SECONDS, DataConfig
from training.data.dataset import Dataset
from training.data.split import Split
from training.evaluation.evaluate import rank_targets
from training.evaluation.metrics import Ranks
from training.evaluation.report import draw_candidates
from training.evaluation.scoring import BLOCK_ELEMENTS, ScoreBlock

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that bound the threads of a peer's process."""

Evaluation = tuple[float, int, dict[str, float]]
"""Seconds of fitting, epoch and validation metrics."""

ReportEvaluation = Callable[[Evaluation], None]
"""Receives every evaluation of the learning curve."""

ERROR_LINES = 3
"""Lines of a failed process that are reported."""


@dataclass(frozen=True)
class PeerTrial:
    """How a peer learned, with early stopping.

    Attributes:
        curve: processor seconds of fitting and validation, epoch and metrics, after every
            evaluation.
        best_epoch: the first epoch with the best validation metric.
        best: that metric.
    """

    curve: tuple[Evaluation, ...]
    best_epoch: int
    best: float


@dataclass(frozen=True)
class PeerFit:
    """How a peer was fitted on all events before the test; seconds are of the processor.

    Attributes:
        fit_seconds: of the fit.
        test_seconds: of the scores of the test questions.
        peak_mib: largest resident set of the process.
        parameters: number of learned parameters.
        known_items: catalog items that the model knows.
        versions: of Python and of the packages.
    """

    fit_seconds: float
    test_seconds: float
    peak_mib: float
    parameters: int
    known_items: int
    versions: dict[str, str]


@dataclass(frozen=True)
class PeerOutcome:
    """The results of a peer on the test questions.

    Attributes:
        fit: how it was fitted.
        split: the split of the test questions; its catalog is that of the fit.
        given: ranks with the query time, for a model that reads it.
        withheld: ranks with the time of the last event in its place; None for other models.
    """

    fit: PeerFit
    split: Split
    given: Ranks
    withheld: Ranks | None


class FitOptions(NamedTuple):
    """How a peer is fitted, beside its settings.

    Attributes:
        seed: of weights and batches.
        budget_seconds: a fit with validation ends with the first epoch after these seconds of the
            processor, which do not count what other processes take.
        threads: of the process.
        monitor: the validation metric of early stopping.
        report_evaluation: receives every point of the learning curve.
    """

    seed: int
    budget_seconds: float
    monitor: str = "ndcg@10"
    threads: int = 1
    report_evaluation: ReportEvaluation = lambda _: None


def validate_peer(
    config: PeerConfig, split: Split, data: DataConfig, work: Path, options: FitOptions
) -> PeerTrial:
    """Fit a peer on the training events, with early stopping: one trial of its settings.

    Args:
        work: an empty folder for the files of the process.

    Raises:
        TrainingError: if there is no environment, or the library failed.
        DivergedError: if a score is NaN.
    """
    result = _run(config, split, None, data, work, options)
    curve = tuple((seconds, epoch, metrics) for seconds, epoch, metrics in result["curve"])
    best = max(metrics[options.monitor] for _, _, metrics in curve)
    return PeerTrial(curve, result["best_epoch"], best)


def run_peer(
    config: PeerConfig,
    whole: Dataset,
    split: Split,
    data: DataConfig,
    work: Path,
    options: FitOptions,
) -> PeerOutcome:
    """Fit a peer for all of its epochs on the events before the test; rank the test questions.

    Args:
        config: with the number of epochs that a trial has found.
        whole: the data set that was split.
        data: whether seen items are left out, and sampled metrics are computed.
        work: an empty folder for the files of the process.

    Raises:
        TrainingError: if there is no environment, or the library failed.
        DivergedError: if a score is NaN.
    """
    final = split.move_to_test(whole, data.predict)
    result = _run(config, None, final, data, work, options)
    withheld = work / SCORES_WITHHELD
    return PeerOutcome(
        fit=PeerFit(**result),
        split=final,
        given=rank_scores(work / SCORES, final, data),
        withheld=rank_scores(withheld, final, data) if withheld.exists() else None,
    )


def rank_scores(file: Path, split: Split, data: DataConfig) -> Ranks:
    """Rank the test questions by the scores in a file, as every model of a suite is ranked."""
    return rank_targets(
        _read_blocks(file),
        split.dataset,
        split.test,
        exclude_seen=data.exclude_seen,
        candidates=draw_candidates(split, data),
    )


def _read_blocks(file: Path) -> Iterator[ScoreBlock]:
    scores = np.load(file, mmap_mode="r")
    for block in split_into_blocks(len(scores), BLOCK_ELEMENTS // scores.shape[1]):
        questions = np.arange(len(scores))[block]
        yield ScoreBlock(questions, torch.from_numpy(np.array(scores[block])))


def _run(
    config: PeerConfig,
    split: Split | None,
    final: Split | None,
    data: DataConfig,
    work: Path,
    options: FitOptions,
) -> dict[str, Any]:
    """Run the process of a peer: a trial on a split, or a fit for the test of a final one."""
    shuffle_seed = options.seed if config.shuffle_instants else None
    export_split(work, split, final, shuffle_seed=shuffle_seed)
    Task(
        settings=config.model_dump(mode="json"),
        seed=options.seed,
        threads=options.threads,
        budget_seconds=options.budget_seconds,
        monitor=options.monitor,
        exclude_seen=data.exclude_seen,
        session_seconds=SESSION_SECONDS,
    ).write(work / TASK)
    library = find_library(config)
    runner = f"benchmarks.papers.peers.{library}_runner"
    _call(
        [str(find_interpreter(library)), "-m", runner, str(work.absolute())],
        options.threads,
        options.report_evaluation,
    )
    result: dict[str, Any] = json.loads((work / RESULT).read_text("utf-8"))
    if PROBLEM in result:
        raise DivergedError(f"{config.kind}: {result[PROBLEM]}")
    return result


def _call(command: list[str], threads: int, report_evaluation: ReportEvaluation) -> None:
    """Run a peer's process in the checkout.

    Raises:
        TrainingError: if it fails, with its last lines.
    """
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads)) | {"PYTHONPATH": str(CODE)}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        with subprocess.Popen(
            command,
            cwd=CODE,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if line.startswith(PROGRESS):  # libraries print, too
                        seconds, epoch, metrics = json.loads(line.removeprefix(PROGRESS))
                        report_evaluation((seconds, epoch, metrics))
            except BaseException:
                process.kill()  # it would go on until it prints
                raise
        if not process.returncode:
            return
        errors.seek(0)
        lines = [line for line in errors.read().splitlines() if line.strip()][-ERROR_LINES:]
        reason = describe_kill(process.returncode) or (
            f"ended with {process.returncode}: {' / '.join(lines)}; look at its settings"
        )
        raise TrainingError(f"a peer must run to its end, but {command[2]} {reason}")


def describe_kill(code: int) -> str | None:
    """Describe the signal that ended a process, with a remedy; None if none did.

    Args:
        code: of its exit, negative if a signal ended it.
    """
    if code >= 0:
        return None
    return f"was ended by {signal.Signals(-code).name}; free memory and disk for it"
