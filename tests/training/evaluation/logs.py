"""Small logs of events, and the order in which a reference ranks their items."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from training.data.columns import EVENT_SCHEMA
from training.data.dataset import Dataset
from training.data.split import Questions
from training.evaluation.references import Reference

Happening = tuple[str, str, float]  # user, item, day


def dataset_of(*happenings: Happening) -> Dataset:
    users, items, days = zip(*happenings, strict=True)
    columns = {
        "user_id": users,
        "item_id": items,
        "timestamp": [round(day * MICROSECONDS_PER_DAY) for day in days],
        "action": ["event"] * len(users),
        "value": [None] * len(users),
    }
    return Dataset.of(pl.DataFrame(columns, schema=EVENT_SCHEMA))


def everything(dataset: Dataset) -> NDArray[np.bool_]:
    return np.ones(len(dataset), dtype=np.bool_)


def question_at(dataset: Dataset, user: str, day: float) -> Questions:
    """Build the question of a user's next items on a day, given the events before it."""
    which = dataset.user_ids.index(user)
    at = round(day * MICROSECONDS_PER_DAY)
    start, end = dataset.offsets[which : which + 2]
    return Questions(
        users=np.array([which]),
        ends=start + np.searchsorted(dataset.times[start:end], [at]),
        query_times=np.array([at]),
        target_offsets=np.array([0, 0]),
        target_rows=np.array([], dtype=np.int32),
    )


def ranking(dataset: Dataset, reference: Reference, questions: Questions) -> str:
    """Items best first, such as "b a=c": a and c share a score."""
    scores = reference.score(questions)[0]
    levels = np.unique(scores[1:])[::-1]
    named = (sorted(_names(dataset, scores, level)) for level in levels)
    return " ".join("=".join(names) for names in named)


def _names(dataset: Dataset, scores: NDArray[np.float32], level: np.float32) -> list[str]:
    return [dataset.catalog.item_id(row) for row in np.flatnonzero(scores == level) if row > 0]
