"""Average attention on the last event, as a function of the time since (Xu et al. 2019, Figure 2).

Figure 2a and 2b are the observed curves by action and by category, Figure 2c the predicted ones.
"""

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from model.bundle.attention_profile import SCHEMA
from model.clock import MICROSECONDS_PER_DAY
from model.recommender import Recommender
from training.batches import Windows, gather
from training.dataset import Dataset
from training.scoring import by_length

SHORTEST_DAYS = 1 / 1440
BINS = 16
INSTANTS = 24
CATEGORIES = 12
"""The most frequent ones have curves of their own."""


def profile_attention(
    recommender: Recommender, dataset: Dataset, *, max_history: int, histories: int, seed: int = 0
) -> pl.DataFrame | None:
    """The curves of a bundle's `attention_profile.parquet`; None where the model does not attend.

    Args:
        histories: at most so many are asked, one of each user drawn; each ends at a random event
            that has a next one.
        seed: of the draws.
    """
    known = dataset.known
    windows = _draw(known, max_history, histories, np.random.default_rng(seed))
    if not len(windows):
        return None
    observed = _weights_on_last(recommender, known, windows)
    if observed is None:
        return None
    last = windows.ends - 1
    longest = (known.times.max() - known.times.min()) / MICROSECONDS_PER_DAY
    longest = max(float(longest), 2 * SHORTEST_DAYS)
    edges = np.geomspace(SHORTEST_DAYS, longest, BINS + 1)
    waited = (windows.query_times - known.times[last]) / MICROSECONDS_PER_DAY
    bins = np.clip(np.searchsorted(edges, waited, side="right") - 1, 0, BINS - 1)
    middles = np.sqrt(edges[:-1] * edges[1:])
    points = [_points("observed", known, last, middles[bins], observed)]
    for days in np.geomspace(SHORTEST_DAYS, longest, INSTANTS):
        asked = known.times[last] + int(days * MICROSECONDS_PER_DAY)
        then = Windows(windows.starts, windows.ends, asked)
        predicted = _weights_on_last(recommender, known, then)
        if predicted is not None:
            points.append(_points("predicted", known, last, np.full(len(last), days), predicted))
    return _curves(pl.concat(points))


def _draw(known: Dataset, max_history: int, histories: int, rng: np.random.Generator) -> Windows:
    starts, stops = known.offsets[:-1], known.offsets[1:]
    users = np.flatnonzero(stops - starts >= 2)
    users = rng.permutation(users)[:histories]
    ends = rng.integers(starts[users] + 1, stops[users])
    return Windows(np.maximum(starts[users], ends - max_history), ends, known.times[ends])


@torch.no_grad()
def _weights_on_last(
    recommender: Recommender, known: Dataset, windows: Windows
) -> NDArray[np.float64] | None:
    recommender.eval()
    weights = np.empty(len(windows))
    for chosen in by_length(windows, np.arange(len(windows)), 1):
        batch = gather(known, windows.select(chosen)).to(recommender.device)
        attention = recommender(batch).attention
        if attention is None:
            return None
        places = torch.arange(len(chosen), device=recommender.device)
        weights[chosen] = attention.mean(1)[places, batch.lengths - 1].cpu().numpy()
    return weights


def _points(
    view: str,
    known: Dataset,
    last: NDArray[np.int64],
    days: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> pl.DataFrame:
    """One line per history, with what its last event was."""
    names = (None, *known.actions)
    return pl.DataFrame(
        {
            "view": [view] * len(last),
            "interval_days": days,
            "weight": weights,
            "action": [names[row] for row in known.action_rows[last]],
            "category": [list(known.catalog.categories[row - 1]) for row in known.rows[last]],
        },
        schema_overrides={"action": pl.String, "category": pl.List(pl.String)},
    )


def _curves(points: pl.DataFrame) -> pl.DataFrame:
    by_category = points.explode("category").drop_nulls("category")
    frequent = by_category["category"].value_counts(sort=True)["category"].head(CATEGORIES)
    parts = [
        points.with_columns(by=pl.lit("all"), name=pl.lit("")),
        points.drop_nulls("action").with_columns(by=pl.lit("action"), name="action"),
        by_category.filter(pl.col("category").is_in(frequent.implode())).with_columns(
            by=pl.lit("category"), name="category"
        ),
    ]
    lines = pl.concat(
        [part.select("view", "by", "name", "interval_days", "weight") for part in parts]
    )
    return (
        lines.group_by("view", "by", "name", "interval_days")
        .agg(
            mean=pl.col("weight").mean(),
            sd=pl.col("weight").std().fill_null(0.0),
            count=pl.len().cast(pl.Int64),
        )
        .sort("view", "by", "name", "interval_days")
        .select(SCHEMA.keys())
    )
