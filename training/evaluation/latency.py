"""Latency of a bundle, and the recall of its index, measured as the service uses it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch

from model.bundle.faiss_file import limit_search_threads
from model.history import Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from training.data.dataset import Dataset
from training.data.split import Questions

SAMPLE = 300
"""Questions measured."""

TOP = 10


class LatencyCheck(NamedTuple):
    """Recall and latency of a bundle.

    Attributes:
        index_recall: mean share of the exact ten best items that the index found.
        p95_seconds: 95th percentile of `Predictor.recommend`, in this process on one thread.
    """

    index_recall: float
    p95_seconds: float


def measure_latency(
    predictor: Predictor, dataset: Dataset, questions: Questions, seed: int = 0
) -> LatencyCheck:
    """Measure latency and index recall on a random sample of questions, one at a time.

    Args:
        dataset: the events that hold the histories of the questions.
        seed: of the sample.
    """
    drawn = np.random.default_rng(seed).permutation(len(questions))[:SAMPLE]
    queries = [_build_query(dataset, questions, int(number)) for number in drawn]
    exact = predictor.bundle.recommender.index_vectors().numpy()[1:]
    seconds, recalls = [], []
    with limit_to_one_thread():
        for query in queries:
            began = time.perf_counter()
            predictor.recommend(query, Constraints(n=TOP, exclude_seen=False))
            seconds.append(time.perf_counter() - began)
            recalls += measure_recall(predictor, query, exact)
    # Without a usable history, the index misses nothing.
    recall = float(np.mean(recalls)) if recalls else 1.0
    return LatencyCheck(recall, float(np.quantile(seconds, 0.95)))


def measure_recall(predictor: Predictor, query: Query, exact: np.ndarray) -> list[float]:
    """Measure the share of the exact ten best items that the index finds; empty for no known event.

    Args:
        exact: the vectors of all items, without padding.
    """
    history = predictor.look_up_history(query)
    if not history.events:
        return []
    user = predictor.bundle.recommender.index_queries(
        predictor.encode(query, history).user
    ).numpy()[0]
    is_distance = predictor.bundle.recommender.encoder.similarity == "l2"
    scores = -((exact - user) ** 2).sum(-1) if is_distance else exact @ user
    found, _ = predictor.bundle.index.search(user, TOP)
    count = min(TOP, len(scores))
    # An item that ties with the last of the best up to rounding counts as found.
    least = np.partition(scores, -count)[-count]
    slack = 1e-5 * max(1.0, abs(float(least)))
    return [float(np.count_nonzero(scores[found - 1] >= least - slack)) / count]


def _build_query(dataset: Dataset, questions: Questions, number: int) -> Query:
    history = dataset.history(int(questions.users[number]), int(questions.ends[number]))
    return Query(history, int(questions.query_times[number]))


@contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """Limit torch and the index to one thread, as in the service."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with limit_search_threads():
            yield
    finally:
        torch.set_num_threads(threads)
