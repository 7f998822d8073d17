import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.papers.peers.environments import CODE
from benchmarks.papers.peers.export import export_split
from benchmarks.papers.peers.files import FIT, VALIDATION, QuestionFile, Sequences, Task
from benchmarks.papers.peers.fitting import (
    Fitting,
    collect_histories,
    cut_windows,
    rank_questions,
    sample_questions,
    score_questions,
)
from tests.benchmarks.peers.chain_peer import BEST, ChainPeer
from tests.benchmarks.peers.small_splits import split_chains
from training.data.split import Split
from training.evaluation.evaluate import rank_targets
from training.evaluation.scoring import ScoreBlock

SETTINGS = {
    "max_history": 4,
    "windows": "latest",
    "epochs": 20,
    "patience": 3,
    "evaluate_every": 1,
    "validation_questions": 1_000,
}


def _task(**changed: object) -> Task:
    return Task(
        settings=SETTINGS | changed,
        seed=0,
        threads=1,
        budget_seconds=60.0,
        monitor="accuracy",
        exclude_seen=False,
        session_seconds=3_600,
    )


def _read(folder: Path, kind: int) -> tuple[Split, Sequences, QuestionFile]:
    _, split, _ = split_chains(kind)
    export_split(folder, split, None, shuffle_seed=None)
    return split, Sequences.read(folder / FIT), QuestionFile.read(folder / VALIDATION)


def _sequences(*lengths: int) -> Sequences:
    count = sum(lengths)
    return Sequences(
        np.array(count),
        np.arange(1, count + 1, dtype=np.int32),
        np.arange(count) * 10,
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
    )


def _list_windows(sequences: Sequences) -> list[list[int]]:
    return [part.tolist() for part in np.split(sequences.rows, sequences.offsets[1:-1])]


def test_the_latest_window_has_one_event_more_than_targets() -> None:
    cut = cut_windows(_sequences(7, 1, 0, 2), 3, cuts_all=False)
    assert _list_windows(cut) == [[4, 5, 6, 7], [9, 10]]
    assert cut.times.tolist() == [30, 40, 50, 60, 80, 90]


def test_all_windows_have_every_target_once() -> None:
    cut = cut_windows(_sequences(8, 1, 0, 2), 3, cuts_all=True)
    assert _list_windows(cut) == [[5, 6, 7, 8], [2, 3, 4, 5], [1, 2], [10, 11]]


@pytest.mark.parametrize("cuts_all", [True, False])
def test_users_of_one_event_leave_nothing_to_learn(cuts_all: bool) -> None:
    with pytest.raises(ValueError, match="no user has two training events; give it other data"):
        cut_windows(_sequences(1, 1, 0), 3, cuts_all=cuts_all)


def test_histories_are_the_latest_known_events() -> None:
    questions = QuestionFile(
        items=np.array(5),
        rows=np.array([1, 2, 3, 4, 5], dtype=np.int32),
        times=np.array([10, 20, 30, 40, 50]),
        starts=np.array([0, 0, 3]),
        ends=np.array([5, 1, 4]),
        query_times=np.array([60, 11, 41]),
        target_offsets=np.zeros(4, dtype=np.int64),
        target_rows=np.zeros(0, dtype=np.int32),
    )
    known = np.array([False, True, True, True, False, True])
    rows, times = collect_histories(questions, np.arange(3), known, 3)
    assert rows.tolist() == [[2, 3, 5], [0, 0, 1], [0, 0, 0]]
    assert times.tolist() == [[20, 30, 50], [10, 10, 10], [0, 0, 0]]


def test_validation_ranks_equal_those_of_our_evaluation(tmp_path: Path) -> None:
    for kind in (0, 2):
        split, sequences, questions = _read(tmp_path, kind)
        peer = ChainPeer(_task(), sequences)
        every = np.arange(len(questions))
        for exclude_seen in (False, True):
            task = Task(**(_task().__dict__ | {"exclude_seen": exclude_seen}))
            found = rank_questions(peer, task, sequences, questions, every)
            blocks = (
                ScoreBlock(block, torch.from_numpy(scores))
                for block, scores in score_questions(
                    peer, task, sequences, questions, every, withheld=False
                )
            )
            own = rank_targets(blocks, split.dataset, split.validation, exclude_seen=exclude_seen)
            assert np.array_equal(found.ranks, own.ranks)
            assert found.summarise() == own.summarise()


def test_unknown_rows_are_never_ranked(tmp_path: Path) -> None:
    _, sequences, questions = _read(tmp_path, 1)
    peer = ChainPeer(_task(), sequences)
    peer.known[3] = False
    for _, scores in score_questions(
        peer, _task(), sequences, questions, np.arange(len(questions)), withheld=False
    ):
        assert (scores[:, [0, 3]] == -np.inf).all()
        assert np.isfinite(np.delete(scores, [0, 3], axis=1)).all()


def test_a_history_without_known_events_gets_popularity(tmp_path: Path) -> None:
    _, sequences, questions = _read(tmp_path, 0)
    peer = ChainPeer(_task(), sequences)
    last = questions.rows[questions.starts[0] : questions.ends[0]]
    peer.known[last] = False
    ((_, scores),) = score_questions(
        peer, _task(), sequences, questions, np.array([0]), withheld=False
    )
    counts = np.bincount(sequences.rows, minlength=len(peer.known))
    ranked = np.argsort(-scores[0])[: peer.known.sum()]
    assert (np.diff(counts[ranked]) <= 0).all()
    assert set(ranked) == set(np.flatnonzero(peer.known))


def test_a_fit_stops_early_and_finds_the_best_epoch(tmp_path: Path) -> None:
    _, sequences, questions = _read(tmp_path, 0)
    fitting = Fitting(ChainPeer(_task(), sequences), _task(), sequences, questions)
    fitting.run()
    assert fitting.best_epoch == BEST
    assert [epoch for _, epoch, _ in fitting.curve] == [1, 2, 3, 4, 5]
    seconds = [seconds for seconds, _, _ in fitting.curve]
    assert seconds == sorted(seconds)
    assert fitting.seconds < seconds[-1]
    assert seconds[-1] <= fitting.seconds + fitting.validation_seconds + 0.001
    assert fitting.validation_seconds > 0


def test_a_spent_budget_ends_the_fit_after_an_evaluation(tmp_path: Path) -> None:
    _, sequences, questions = _read(tmp_path, 0)
    task = Task(**(_task(evaluate_every=7).__dict__ | {"budget_seconds": 0.0}))
    fitting = Fitting(ChainPeer(task, sequences), task, sequences, questions)
    fitting.run()
    assert [epoch for _, epoch, _ in fitting.curve] == [1]


def test_the_sample_of_questions_is_the_same_every_time() -> None:
    assert sample_questions(5, 9).tolist() == [0, 1, 2, 3, 4]
    drawn = sample_questions(1_000, 30)
    assert len(np.unique(drawn)) == 30
    assert np.array_equal(drawn, sample_questions(1_000, 30))


def test_a_peer_process_imports_nothing_but_numpy() -> None:
    printed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, benchmarks.papers.peers.fitting;"
            "print({name.partition('.')[0] for name in sys.modules} & "
            "{'torch', 'polars', 'pydantic', 'scipy', 'fastapi'})",
        ],
        cwd=CODE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == "set()"
