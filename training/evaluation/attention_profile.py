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
from training.evaluation.scoring import group_by_length

SHORTEST_DAYS = 1 / 1440
BINS = 16
"""Points of an observed curve, at most."""
HISTORIES_PER_BIN = 10
"""A curve has fewer points rather than fewer histories behind each."""
INSTANTS = 24
CATEGORIES = 12
"""The most frequent ones have curves of their own."""


def profile_attention(
    recommender: Recommender, dataset: Dataset, *, max_history: int, histories: int, seed: int = 0
) -> pl.DataFrame | None:
    """The curves of a bundle's `attention_profile.parquet`; None where the model does not attend.

    Args:
        histories: at most so many are asked, one of each user drawn; each ends before a random
            event that is later than the one before it, so that it holds whole baskets.
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
    waited = (windows.query_times - known.times[last]) / MICROSECONDS_PER_DAY
    parts = [_in_bins(_lines("observed", known, last, waited, observed))]
    longest = float(known.times.max() - known.times.min()) / MICROSECONDS_PER_DAY
    for days in np.geomspace(SHORTEST_DAYS, max(longest, 2 * SHORTEST_DAYS), INSTANTS):
        asked = known.times[last] + int(days * MICROSECONDS_PER_DAY)
        then = Windows(windows.starts, windows.ends, asked)
        predicted = _weights_on_last(recommender, known, then)
        if predicted is not None:
            interval = np.full(len(last), days)
            parts.append(_lines("predicted", known, last, interval, predicted))
    return _curves(pl.concat(parts))


def _draw(known: Dataset, max_history: int, histories: int, rng: np.random.Generator) -> Windows:
    """One history of each of some users, cut where time passed: between baskets, not within one."""
    is_later = (np.diff(known.user_of) == 0) & (np.diff(known.times) > 0)
    ends = rng.permutation(np.flatnonzero(is_later) + 1)
    _, first_of_user = np.unique(known.user_of[ends], return_index=True)
    ends = rng.permutation(ends[first_of_user])[:histories]
    starts = known.offsets[known.user_of[ends]]
    return Windows(np.maximum(starts, ends - max_history), ends, known.times[ends])


@torch.no_grad()
def _weights_on_last(
    recommender: Recommender, known: Dataset, windows: Windows
) -> NDArray[np.float64] | None:
    recommender.eval()
    weights = np.empty(len(windows))
    for chosen in group_by_length(windows, np.arange(len(windows)), 1):
        batch = collate(known, windows.select(chosen)).to(recommender.device)
        attention = recommender(batch).attention
        if attention is None:
            return None
        places = torch.arange(len(chosen), device=recommender.device)
        weights[chosen] = attention.mean(1)[places, batch.lengths - 1].cpu().numpy()
    return weights


def _lines(
    view: str,
    known: Dataset,
    last: NDArray[np.int64],
    days: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> pl.DataFrame:
    """One line per history and curve that it belongs to, by what its last event was."""
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


def _in_bins(lines: pl.DataFrame) -> pl.DataFrame:
    """The same with the middle of its bin as every line's interval.

    Bins hold about equally many histories of their curve, equal intervals together; the middle is
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


def _curves(lines: pl.DataFrame) -> pl.DataFrame:
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
