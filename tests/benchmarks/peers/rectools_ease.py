"""Compares EASE with its paper's formulas; runs in the environment of RecTools.

python -m tests.benchmarks.peers.rectools_ease
"""

import numpy as np

from benchmarks.papers.peers.files import Sequences, Task
from benchmarks.papers.peers.rectools_runner import EASE

ITEMS, USERS, LENGTH, REGULARIZATION = 12, 40, 6, 3.0


def main() -> None:
    """Fit, and compare the scores of some histories; row 3 is in no sequence."""
    settings = {"kind": "rectools_ease", "regularization": REGULARIZATION}
    task = Task(settings, 0, 1, 60.0, "ndcg@10", exclude_seen=True, session_seconds=3_600)
    rng = np.random.default_rng(0)
    known = np.setdiff1d(np.arange(1, ITEMS + 1), [3])
    rows = rng.choice(known, (USERS, LENGTH)).astype(np.int32)  # with repeats
    offsets = np.arange(USERS + 1) * LENGTH
    sequences = Sequences(np.array(ITEMS), rows.ravel(), np.arange(rows.size), offsets)
    peer = EASE(task, sequences)
    peer.fit(1, lambda: False)
    assert peer.known.nonzero()[0].tolist() == known.tolist()

    owned = np.zeros((USERS, ITEMS + 1))
    np.put_along_axis(owned, rows.astype(np.int64), 1.0, axis=1)
    owned = owned[:, known]
    inverse = np.linalg.inv(owned.T @ owned + REGULARIZATION * np.eye(len(known)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)

    histories = np.array([[0, 0, 5, 1], [0, 7, 7, 3], [0, 0, 0, 0]], dtype=np.int32)
    scores = peer.score(histories, histories, histories[:, 0])
    read = np.zeros((3, ITEMS + 1))
    for line, history in enumerate(histories):
        read[line, history[history > 0]] = 1.0
    np.testing.assert_allclose(scores[:, known], read[:, known] @ weights, atol=1e-5)
    assert (scores[2] == 0).all()


if __name__ == "__main__":
    main()
