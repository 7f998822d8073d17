"""Live counts: popularity counted up to each query time, as in a running service."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from jaxtyping import Bool

from model.popularity_table import PopularityTable
from model.recommender import Recommender
from model.wide import EventCounts
from training.data.dataset import Dataset
from training.data.event_counts import count_popularity


def count_live(
    recommender: Recommender, dataset: Dataset, known: Bool[np.ndarray, " events"] | None = None
) -> EventCounts | None:
    """Count the popularity of items; None for a recommender that reads no counts.

    What a query reads of it is from before its time. The followers are those of the training.

    Args:
        known: whether each event is counted; all are by default.
    """
    if recommender.counts is None:
        return None
    counted = np.ones(len(dataset), dtype=np.bool_) if known is None else known
    popularity = count_popularity(dataset, counted)
    return EventCounts(PopularityTable(popularity, whole=True), recommender.counts.followers)


@contextmanager
def use_counts(recommender: Recommender, counts: EventCounts | None) -> Iterator[None]:
    """Let a recommender read other counts for a while."""
    own, recommender.counts = recommender.counts, counts
    try:
        yield
    finally:
        recommender.counts = own
