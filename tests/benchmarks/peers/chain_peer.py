"""A peer without a library: the item after the last one, learned in two epochs, then forgotten."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.peers.files import Sequences, Task
from benchmarks.papers.peers.fitting import find_trained_rows, run_task

BEST = 2


class ChainPeer:
    """Knows the successor of every row; other epochs than the second rank it last.

    With a learning rate above 1 it diverges in the second; with a dropout of 0.3 it ranks the
    successor second, behind row 1.
    """

    parameters = 7

    def __init__(self, task: Task, sequences: Sequences) -> None:
        self.known = find_trained_rows(sequences)
        self.epoch = 0
        self.diverges = task.settings.get("learning_rate", 0) > 1
        self.prefers_first = task.settings.get("dropout") == 0.3
        self.following = np.zeros(len(self.known), dtype=np.int64)
        later = np.diff(np.repeat(np.arange(len(sequences)), np.diff(sequences.offsets))) == 0
        self.following[sequences.rows[:-1][later]] = sequences.rows[1:][later]

    def fit(self, epochs: int, finish_epoch: Callable[[], bool]) -> None:
        for epoch in range(1, epochs + 1):
            self.epoch = epoch
            if finish_epoch():
                break

    def score(
        self, rows: NDArray[np.int32], times: NDArray[np.int64], query_times: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        assert ((rows > 0).any(axis=1)).all()
        assert (np.diff(times) >= 0).all()
        scores = -(np.arange(len(self.known)) + query_times[:, None] % 1_009).astype(np.float32)
        if self.diverges and self.epoch == BEST:
            scores[0, 1] = np.nan
        best = 1e6 if self.epoch == BEST else -1e6
        scores[np.arange(len(rows)), self.following[rows[:, -1]]] = best
        if self.prefers_first:
            scores[:, 1] = 2e6
        return scores


if __name__ == "__main__":
    run_task(Path(sys.argv[1]), ChainPeer, ("numpy",))
