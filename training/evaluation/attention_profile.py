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
from training.data.batches import Windows, collate
from training.data.dataset import Dataset
from training.evaluation.sampling import sample_windows
from training.evaluation.scoring import group_by_length

SHORTEST_DAYS = 1 / 1440
BINS = 16
"""Points of an observed curve, at most."""
HISTORIES_PER_BIN = 10
"""The least number of histories per point; a curve with few histories has fewer points."""
INSTANTS = 24
CATEGORIES = 12
"""The number of categories with their own curves, the most frequent first."""


def profile_attention(
    recommender: Recommender, dataset: Dataset, *, max_history: int, histories: int, seed: int = 0
) -> pl.DataFrame | None:
    """Compute the curves of a bundle's `attention_profile.parquet`; None without attention weights.

    Args:
        histories: sample size, at most one history per user. Each ends before a random event that
            is later than the one before it, so that it holds whole baskets.
        seed: of the sample.
    """
    known = dataset.known
    windows = sample_windows(known, max_history=max_history, histories=histories, seed=seed)
    if not len(windows):
        return None
    observed = _compute_last_weights(recommender, known, windows)
    if observed is None:
        return None
    last = windows.ends - 1
    elapsed = (windows.query_times - known.times[last]) / MICROSECONDS_PER_DAY
    parts = [_bin_intervals(_tabulate("observed", known, last, elapsed, observed))]
    longest = float(known.times.max() - known.times.min()) / MICROSECONDS_PER_DAY
    for days in np.geomspace(SHORTEST_DAYS, max(longest, 2 * SHORTEST_DAYS), INSTANTS):
        query_times = known.times[last] + int(days * MICROSECONDS_PER_DAY)
        later = Windows(windows.starts, windows.ends, query_times)
        predicted = _compute_last_weights(recommender, known, later)
        if predicted is not None:
            interval = np.full(len(last), days)
            parts.append(_tabulate("predicted", known, last, interval, predicted))
    return _aggregate(pl.concat(parts))


@torch.no_grad()
def _compute_last_weights(
    recommender: Recommender, known: Dataset, windows: Windows
) -> NDArray[np.float64] | None:
    recommender.eval()
    weights = np.empty(len(windows))
    for chosen in group_by_length(windows, np.arange(len(windows)), 1):
        batch = collate(known, windows.select(chosen), recommender.device)
        attention = recommender.compute_attention(batch)
        if attention is None:
            return None
        samples = torch.arange(len(chosen), device=recommender.device)
        weights[chosen] = attention.mean(1)[samples, batch.lengths - 1].cpu().numpy()
    return weights


def _tabulate(
    view: str,
    known: Dataset,
    last: NDArray[np.int64],
    days: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> pl.DataFrame:
    """Tabulate one row per history and curve; its last event decides the curves."""
    names = (None, *known.actions)
    histories = pl.DataFrame(
        {
            "view": [view] * len(last),
            "interval_days": days,
            "weight": weights,
            "action": [names[row] for row in known.action_rows[last]],
            "category": [list(known.catalog.categories[row - 1]) for row in known.rows[last]],
        },
        schema_overrides={"action": pl.String, "category": pl.List(pl.String)},
    )
    by_category = histories.explode("category").drop_nulls("category")
    counted = by_category["category"].value_counts()
    frequent = counted.sort("count", "category", descending=[True, False])["category"]
    parts = [
        histories.with_columns(by=pl.lit("all"), name=pl.lit("")),
        histories.drop_nulls("action").with_columns(by=pl.lit("action"), name="action"),
        by_category.filter(
            pl.col("category").is_in(frequent.head(CATEGORIES).implode())
        ).with_columns(by=pl.lit("category"), name="category"),
    ]
    return pl.concat(
        [part.select("view", "by", "name", "interval_days", "weight") for part in parts]
    )


def _bin_intervals(lines: pl.DataFrame) -> pl.DataFrame:
    """Replace every interval by the middle of its bin.

    The bins of a curve hold about equally many histories, equal intervals together; the middle is
    the geometric mean of their intervals.
    """
    curve = ("by", "name")
    histories = pl.len().over(curve)
    bins = (histories // HISTORIES_PER_BIN).clip(1, BINS)
    rank = pl.col("interval_days").rank("min").over(curve) - 1
    middle = pl.col("interval_days").log().mean().exp()
    return (
        lines.with_columns(bin=rank * bins // histories)
        .with_columns(interval_days=middle.over(*curve, "bin"))
        .drop("bin")
    )


def _aggregate(lines: pl.DataFrame) -> pl.DataFrame:
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
