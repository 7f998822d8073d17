"""Compares scores with RecTools' own recommendations; runs in its environment.

python -m tests.benchmarks.peers.rectools_recommendations KIND
"""

import sys
from datetime import UTC, datetime

import numpy as np
import pandas as pd
from rectools import Columns
from rectools.dataset import Dataset

from benchmarks.papers.peers.files import Sequences, Task
from benchmarks.papers.peers.fitting import cut_windows
from benchmarks.papers.peers.rectools_runner import MICROSECONDS, RecTools

HOUR = 3_600 * MICROSECONDS
ITEMS, USERS, LENGTH, MAX_HISTORY, TOP = 20, 30, 9, 6, 5


def main() -> None:
    """Fit for two epochs, and compare the best items of every user."""
    settings = {
        "kind": sys.argv[1],
        "dim": 8,
        "blocks": 2,
        "heads": 2,
        "dropout": 0.1,
        "max_history": MAX_HISTORY,
        "batch_size": 8,
        "learning_rate": 0.01,
        "loss": "softmax",
        "negatives": 4,
        "calibration": 0.5,
        "session_weight": 0.25,
        "feed_forward_factor": 2,
        "temperature": 0.05,
        "relative_time": sys.argv[1] == "rectools_hstu",
        "relative_positions": True,
    }
    task = Task(settings, 0, 1, 60.0, "ndcg@10", exclude_seen=False, session_seconds=3_600)
    rng = np.random.default_rng(0)
    rows = rng.integers(1, ITEMS + 1, (USERS, LENGTH), dtype=np.int32)
    began = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * MICROSECONDS
    gaps = rng.integers(0, 10**12, (USERS, LENGTH))
    gaps[:, 4:7] = HOUR - 1, HOUR, 0
    times = began + np.cumsum(gaps, axis=1)
    offsets = np.arange(USERS + 1) * LENGTH
    sequences = Sequences(np.array(ITEMS), rows.ravel(), times.ravel(), offsets)
    peer = RecTools(task, cut_windows(sequences, MAX_HISTORY, cuts_all=False))
    peer.fit(2, lambda: False)
    check_weights(peer, times)
    query_times = times[:, -1] + rng.integers(10**9, 10**13, USERS)
    scores = peer.score(rows[:, -MAX_HISTORY:], times[:, -MAX_HISTORY:], query_times)
    users = np.arange(USERS)
    table = pd.DataFrame(
        {
            Columns.User: np.repeat(users, LENGTH),
            Columns.Item: rows.ravel(),
            Columns.Weight: 1.0,
            Columns.Datetime: pd.to_datetime(pd.Series(times.ravel() // MICROSECONDS), unit="s"),
        }
    )
    context = pd.DataFrame(
        {
            Columns.User: users,
            Columns.Weight: 1.0,
            Columns.Datetime: pd.to_datetime(pd.Series(query_times // MICROSECONDS), unit="s"),
        }
    )
    found = peer._model.recommend(
        users=users,
        dataset=Dataset.construct(table),
        k=TOP,
        filter_viewed=False,
        context=context if settings["relative_time"] else None,
    )
    scores[:, ~peer.known] = -np.inf
    best = np.sort(scores, axis=1)[:, ::-1][:, :TOP]
    np.testing.assert_allclose(
        found[Columns.Score].to_numpy().reshape(USERS, TOP), best, rtol=1e-4, atol=1e-5
    )
    chosen = found[Columns.Item].to_numpy().reshape(USERS, TOP)
    np.testing.assert_allclose(
        np.take_along_axis(scores, chosen, axis=1), best, rtol=1e-4, atol=1e-5
    )
    later = peer.score(rows[:, -MAX_HISTORY:], times[:, -MAX_HISTORY:], query_times + 10**13)
    assert (later != scores)[:, peer.known].any() == settings["relative_time"]


def check_weights(peer: RecTools, times: np.ndarray) -> None:
    """Targets within an hour of the event before reach the loss with the weight of a session."""
    loader = peer._model.data_preparator.get_dataloader_train()
    weights = {tuple(each) for batch in loader for each in batch["yw"].numpy().round(6).tolist()}
    gaps = np.diff(times[:, -MAX_HISTORY - 1 :], axis=1)
    assert {tuple(each) for each in np.where(gaps < HOUR, 0.25, 1.0).tolist()} == weights
    assert (gaps == HOUR).any()


if __name__ == "__main__":
    main()
