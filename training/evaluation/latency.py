"""A bundle tried out the way the service will use it: how long an answer takes, what is found."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from model.history import Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from training.data.dataset import Dataset
from training.data.split import Questions

TRIED = 300
"""Questions asked."""

TOP = 10


class LatencyCheck(NamedTuple):
    """What was measured.

    Attributes:
        index_recall: mean share of the exact ten best items that the index found.
        p95_seconds: of an answer, end to end in this process, on one thread.
    """

    index_recall: float
    p95_seconds: float


def measure_latency(
    predictor: Predictor, dataset: Dataset, questions: Questions, seed: int = 0
) -> LatencyCheck:
    """Ask a bundle some of the questions, drawn at random, one at a time.

    Args:
        dataset: the events that the histories of the questions are in.
    """
    drawn = np.random.default_rng(seed).permutation(len(questions))[:TRIED]
    queries = [_query(dataset, questions, int(number)) for number in drawn]
    exact = predictor.bundle.recommender.index_vectors().numpy()[1:]
    seconds, recalls = [], []
    with _one_thread():
        for query in queries:
            began = time.perf_counter()
            predictor.recommend(query, Constraints(n=TOP, exclude_seen=False))
            seconds.append(time.perf_counter() - began)
            recalls += measure_recall(predictor, query, exact)
    # Without one usable history there is nothing the index could miss.
    recall = float(np.mean(recalls)) if recalls else 1.0
    return LatencyCheck(recall, float(np.quantile(seconds, 0.95)))


def measure_recall(predictor: Predictor, query: Query, exact: np.ndarray) -> list[float]:
    """The share found of the exact ten best; nothing where no event of the history is known."""
    history = predictor.look_up_history(query)
    if not history.events:
        return []
    user = predictor.bundle.recommender.index_queries(
        predictor.encode(query, history).user
    ).numpy()[0]
    is_distance = predictor.bundle.recommender.encoder.similarity == "l2"
    scores = -((exact - user) ** 2).sum(-1) if is_distance else exact @ user
    found, _ = predictor.bundle.index.search(user, TOP)
    wanted = min(TOP, len(scores))
    # An item that ties with the last of the best, but for rounding, is as good as that one.
    least = np.partition(scores, -wanted)[-wanted]
    slack = 1e-5 * max(1.0, abs(float(least)))
    return [float(np.count_nonzero(scores[found - 1] >= least - slack)) / wanted]


def _query(dataset: Dataset, questions: Questions, number: int) -> Query:
    history = dataset.history(int(questions.users[number]), int(questions.ends[number]))
    return Query(history, int(questions.query_times[number]))


@contextmanager
def _one_thread() -> Iterator[None]:
    """As many threads as the service runs the model on."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
