"""The run of a peer in its own environment: a fit with early stopping, or one for the test.

Needs no package but numpy and jaxtyping, which the metrics of this project need. A runner of a
library calls `run_task` with a function that builds its model.
"""

import json
import platform
import resource
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.peers.files import (
    FIT,
    PROBLEM,
    PROGRESS,
    REFIT,
    RESULT,
    SCORES,
    SCORES_WITHHELD,
    TASK,
    TEST,
    VALIDATION,
    QuestionFile,
    Sequences,
    Task,
)
from model.errors import DivergedError
from training.evaluation.metrics import MISS, Ranks, compute_ranks

BLOCK_QUESTIONS = 128
"""Questions per forward pass."""


class Peer(Protocol):
    """A library's model of some training sequences.

    Attributes:
        known: whether the model knows each row; row 0 is padding.
        parameters: number of learned parameters, once it is fitted.
    """

    known: NDArray[np.bool_]
    parameters: int

    def fit(self, epochs: int, finish_epoch: Callable[[], bool]) -> None:
        """Train for at most some epochs; stop if `finish_epoch`, called after each, returns True.

        `finish_epoch` may call the other methods.
        """

    def score(
        self, rows: NDArray[np.int32], times: NDArray[np.int64], query_times: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Score every row for some histories.

        Args:
            rows: the latest known events, one history a line, padded with 0 on the left.
            times: epoch microseconds of these, padded with the first.
            query_times: epoch microseconds.

        Returns:
            One line a history and one column a row; those of unknown rows are ignored.
        """


read_clock = time.process_time
"""Seconds of the processor, which do not count what other processes take; on one thread of an idle
machine they are those of the wall."""

BuildPeer = Callable[[Task, Sequences], Peer]
"""Builds a model for training sequences that `cut_windows` returned, from the task's seed."""


def run_task(folder: Path, build: BuildPeer, packages: tuple[str, ...]) -> None:
    """Run the task of a folder, and write scores and result there.

    The result of a model that diverges is the problem alone.

    Args:
        packages: whose versions are recorded.
    """
    try:
        result = _fit_and_score(folder, build, packages)
    except DivergedError as error:
        result = {PROBLEM: str(error)}
    (folder / RESULT).write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def _fit_and_score(folder: Path, build: BuildPeer, packages: tuple[str, ...]) -> dict[str, Any]:
    task = Task.read(folder / TASK)
    limits = task.settings["max_history"], task.settings["windows"] == "all"
    if (folder / FIT).exists():
        sequences = Sequences.read(folder / FIT)
        peer = build(task, cut_windows(sequences, *limits))
        fitting = Fitting(peer, task, sequences, QuestionFile.read(folder / VALIDATION))
        fitting.run()
        return {"curve": fitting.curve, "best_epoch": fitting.best_epoch}
    sequences = Sequences.read(folder / REFIT)
    began = read_clock()
    peer = build(task, cut_windows(sequences, *limits))
    peer.fit(task.settings["epochs"], _finish_refit_epoch)
    fit_seconds = read_clock() - began
    began = read_clock()
    test = QuestionFile.read(folder / TEST)
    write_scores(folder / SCORES, peer, task, sequences, test, withheld=False)
    if task.settings.get("relative_time"):
        write_scores(folder / SCORES_WITHHELD, peer, task, sequences, test, withheld=True)
    return {
        "parameters": peer.parameters,
        "known_items": int(peer.known.sum()),
        "fit_seconds": fit_seconds,
        "test_seconds": read_clock() - began,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in packages},
    }


def _finish_refit_epoch() -> bool:
    # If the parent process is gone, this fails, and the process ends, as after an evaluation.
    print("refit", flush=True)
    return False


class Fitting:
    """A fit with early stopping on the validation questions.

    Attributes:
        curve: seconds of fitting and validation, epoch and metrics, after each evaluation.
        best_epoch: the first epoch with the best validation metric.
        seconds: of fitting, validation not counted.
        validation_seconds: of validation.
    """

    def __init__(
        self, peer: Peer, task: Task, sequences: Sequences, questions: QuestionFile
    ) -> None:
        self.curve: list[tuple[float, int, dict[str, float]]] = []
        self.best_epoch = 1
        self.seconds = 0.0
        self.validation_seconds = 0.0
        self._peer = peer
        self._task = task
        self._sequences = sequences
        self._questions = questions
        self._chosen = sample_questions(len(questions), task.settings["validation_questions"])
        self._epoch = 0
        self._best = -1.0
        self._evaluations_since = 0
        self._began = 0.0

    def run(self) -> None:
        """Fit until the budget, the epochs or the patience is used up."""
        self._began = read_clock()
        self._peer.fit(self._task.settings["epochs"], self._finish_epoch)

    def _finish_epoch(self) -> bool:
        ended = read_clock()
        self.seconds += ended - self._began
        self._epoch += 1
        settings = self._task.settings
        is_last = self.seconds >= self._task.budget_seconds or self._epoch == settings["epochs"]
        if is_last or self._epoch % settings["evaluate_every"] == 0:
            self._evaluate(ended)
        self._began = read_clock()
        self.validation_seconds += self._began - ended
        return is_last or self._evaluations_since >= settings["patience"]

    def _evaluate(self, began: float) -> None:
        """Evaluate the model; the clock stood at `began` then."""
        task = self._task
        metrics = rank_questions(
            self._peer, task, self._sequences, self._questions, self._chosen
        ).summarise()
        seconds = self.seconds + self.validation_seconds + read_clock() - began
        self.curve.append((round(seconds, 3), self._epoch, metrics))
        print(PROGRESS + json.dumps(self.curve[-1]), flush=True)
        self._evaluations_since += 1
        if metrics[task.monitor] > self._best:
            self._best, self.best_epoch = metrics[task.monitor], self._epoch
            self._evaluations_since = 0


def cut_windows(sequences: Sequences, max_history: int, cuts_all: bool) -> Sequences:
    """Cut training sequences of at most `max_history` targets; shorter than two events are dropped.

    Args:
        cuts_all: whether all windows of a user are kept, of which neighbours share an event;
            otherwise the latest, as the libraries choose them.

    Raises:
        ValueError: if no user has two events.
    """
    offsets = sequences.offsets.tolist()
    spans = [
        (max(last - max_history, start), last + 1)
        for start, stop in pairwise(offsets)
        for last in range(stop - 1, start, -(max_history if cuts_all else stop - start + 1))
    ]
    if not spans:
        raise ValueError(
            "a peer learns what follows an event, but no user has two training events; give it "
            "other data, or leave its row out"
        )
    events = np.concatenate([np.arange(*span) for span in spans])
    counts = [end - start for start, end in spans]
    return Sequences(
        sequences.items,
        sequences.rows[events],
        sequences.times[events],
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    )


def sample_questions(count: int, most: int) -> NDArray[np.int64]:
    """Sample questions for validation, the same in every run; all if they are not more than `most`.

    Returns:
        Indices, ascending.
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


def rank_questions(
    peer: Peer,
    task: Task,
    sequences: Sequences,
    questions: QuestionFile,
    chosen: NDArray[np.int64],
) -> Ranks:
    """Rank the targets of the chosen questions, by the metrics' tie rule."""
    ranks: list[NDArray[np.int64]] = []
    for block, scores in score_questions(peer, task, sequences, questions, chosen, withheld=False):
        if task.exclude_seen:
            for line, question in enumerate(block):
                scores[
                    line, questions.rows[questions.starts[question] : questions.ends[question]]
                ] = -np.inf
        spans = [
            questions.target_rows[questions.target_offsets[q] : questions.target_offsets[q + 1]]
            for q in block
        ]
        lines = np.repeat(np.arange(len(block)), [len(span) for span in spans])
        ranks.append(compute_ranks(scores, np.concatenate(spans).astype(np.int64), lines))
    counts = np.diff(questions.target_offsets)[chosen]
    every = np.concatenate(ranks) if ranks else np.full(0, MISS, dtype=np.int64)
    return Ranks(every, np.repeat(np.arange(len(chosen)), counts), len(chosen))


def write_scores(
    file: Path,
    peer: Peer,
    task: Task,
    sequences: Sequences,
    questions: QuestionFile,
    *,
    withheld: bool,
) -> None:
    """Write the scores of every row for every question, float32, into a file that can be mapped."""
    shape = (len(questions), int(questions.items) + 1)
    mapped = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
    every = np.arange(len(questions))
    for block, scores in score_questions(
        peer, task, sequences, questions, every, withheld=withheld
    ):
        mapped[block] = scores
    mapped.flush()


def score_questions(
    peer: Peer,
    task: Task,
    sequences: Sequences,
    questions: QuestionFile,
    chosen: NDArray[np.int64],
    *,
    withheld: bool,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Score questions in blocks: their indices, and one line of scores for each.

    Rows that the peer does not know have the score -inf; a history without a known event is scored
    by popularity in the training sequences.

    Args:
        withheld: whether the query time is replaced by the time of the last event.
    """
    popular = _order_by_popularity(sequences, peer.known)
    for begin in range(0, len(chosen), BLOCK_QUESTIONS):
        block = chosen[begin : begin + BLOCK_QUESTIONS]
        rows, times = collect_histories(questions, block, peer.known, task.settings["max_history"])
        query_times = times[:, -1] if withheld else questions.query_times[block]
        has_events = rows[:, -1] > 0
        scores = np.tile(popular, (len(block), 1))
        if has_events.any():
            scores[has_events] = peer.score(
                rows[has_events], times[has_events], query_times[has_events]
            )
        scores[:, ~peer.known] = -np.inf
        yield block, scores


def collect_histories(
    questions: QuestionFile, chosen: NDArray[np.int64], known: NDArray[np.bool_], max_history: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Collect the latest known events of some questions, as `Peer.score` takes them."""
    rows = np.zeros((len(chosen), max_history), dtype=np.int32)
    times = np.zeros((len(chosen), max_history), dtype=np.int64)
    for line, question in enumerate(chosen):
        span = slice(questions.starts[question], questions.ends[question])
        is_known = known[questions.rows[span]]
        latest = questions.rows[span][is_known][-max_history:]
        if len(latest):
            latest_times = questions.times[span][is_known][-max_history:]
            rows[line, -len(latest) :] = latest
            times[line] = latest_times[0]
            times[line, -len(latest) :] = latest_times
    return rows, times


def find_trained_rows(sequences: Sequences) -> NDArray[np.bool_]:
    """Find the rows that occur in training sequences; row 0 does not."""
    found = np.zeros(int(sequences.items) + 1, dtype=np.bool_)
    found[sequences.rows] = True
    return found


def _order_by_popularity(sequences: Sequences, known: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return distinct scores, the larger the more popular; ties are in the order of the rows."""
    counts = np.bincount(sequences.rows, minlength=len(known))
    scores = np.empty(len(known), dtype=np.float32)
    scores[np.argsort(-counts, kind="stable")] = np.arange(len(known), 0, -1)
    return scores


def count_parameters(model: Any) -> int:
    """Count the learned parameters of a torch module."""
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
