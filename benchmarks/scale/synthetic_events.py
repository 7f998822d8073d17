"""Synthetic events of any number, drawn from what a real log is like.

    python -m benchmarks.scale.synthetic_events --events 100_000_000 --output var/events

Every user has the baskets of a user of the demo, drawn at random, at times that vary around those:
their number and sizes, the intervals and the first. Fitted to the demo are also the hours of a
week, how popular items are and how that drifts from month to month, and how often a user chooses an
item again. Events are drawn for blocks of users, and each
block is written into one Parquet file per month, `month=2010-01/block-00000.parquet`: about four
million events are in memory at a time, whatever their number. Equal arguments give equal files.

    python -m benchmarks.scale.synthetic_events --compare

Draws as many events of as many items as the demo has, measures both alike, and writes
benchmarks/scale/results/synthetic_events.json.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from training.data.split import expand_spans

DEMO = Path(__file__).parents[2] / "demo" / "events.parquet"
RESULTS = Path(__file__).parent / "results" / "synthetic_events.json"
BLOCK_EVENTS = 4_000_000

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_HOURS_OF_WEEK = 168
_MONDAY = 4 * _DAY
"""The first Monday after the epoch."""
_STEPS = np.linspace(0, 1, 501)
_VARIATION = 0.3
"""How far the intervals and sizes of baskets are from those of the demo, as a share."""


@dataclass(frozen=True)
class Fit:
    """What a log is like.

    Attributes:
        first_at: the beginning of the log, epoch microseconds.
        span: from its first event to its last, microseconds.
        offsets: user `u` owns baskets `offsets[u]` up to `offsets[u + 1]`.
        elapsed: per basket, microseconds since the beginning of the log.
        sizes: events per basket.
        week: share of the baskets per hour of the week.
        popularity: log of an item's share of a month's events, less that of an average item, at 501
            even steps from the most popular item to the least.
        drift: standard deviation of an item's monthly change of that logarithm.
        persistence: its correlation from one month to the next.
        repeats: share of a user's later events that are of an item the user chose before.
        cancellations: share of the events that cancel.
    """

    first_at: int
    span: int
    offsets: NDArray[np.int64]
    elapsed: NDArray[np.int64]
    sizes: NDArray[np.int64]
    week: NDArray[np.float64]
    popularity: NDArray[np.float64]
    drift: float
    persistence: float
    repeats: float
    cancellations: float

    @property
    def events_per_user(self) -> float:
        """The mean."""
        return float(self.sizes.sum() / (len(self.offsets) - 1))


def fit(events: pl.DataFrame) -> Fit:
    """Fit to a log, as `training.data.sources.read_events` returns it."""
    at = pl.col("timestamp").to_physical()
    events = events.with_columns(at=at).sort("at")
    first_at, span = int(events["at"][0]), int(events["at"][-1] - events["at"][0])
    baskets = events.group_by("user_id", "at").len().sort("user_id", "at")
    ends = baskets.group_by("user_id", maintain_order=True).len()["len"].cum_sum()
    week = np.bincount(_find_hour(baskets["at"].to_numpy()), minlength=_HOURS_OF_WEEK)
    drift, persistence = _fit_drift(events)
    return Fit(
        first_at=first_at,
        span=span,
        offsets=np.concatenate(([0], ends)).astype(np.int64),
        elapsed=(baskets["at"] - first_at).to_numpy(),
        sizes=baskets["len"].to_numpy().astype(np.int64),
        week=week / week.sum(),
        popularity=_fit_popularity(events),
        drift=drift,
        persistence=persistence,
        repeats=_measure_repeats(events),
        cancellations=float((events["action"] == "cancel").mean()),
    )


def _count_by_month(events: pl.DataFrame) -> NDArray[np.int64]:
    """Count the events: items x months."""
    month = ((pl.col("at") - pl.col("at").min()) // (30 * _DAY)).alias("month")
    counted = events.group_by(month, "item_id").len().sort("month", "item_id")
    table = counted.pivot("month", index="item_id", values="len").drop("item_id").fill_null(0)
    return table.to_numpy().astype(np.int64)


def _fit_popularity(events: pl.DataFrame) -> NDArray[np.float64]:
    counts = np.sort(_count_by_month(events), axis=0)[::-1].mean(1)
    logs = np.log(np.maximum(counts, 0.01) / counts.mean())
    return np.interp(_STEPS, np.linspace(0, 1, len(logs)), logs)


def _find_hour(at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find the hour of the week of some instants, from Monday's first."""
    return (at - _MONDAY) // _HOUR % _HOURS_OF_WEEK


def _fit_drift(events: pl.DataFrame) -> tuple[float, float]:
    """Fit an autoregression to the logarithms of the items' monthly counts.

    Their covariance from one month to another falls with the distance, from which noise of counting
    is absent; what is left after a year is how popular an item is on average.
    """
    table = _count_by_month(events)
    table = np.log1p(table[table.sum(1) > 10 * table.shape[1]])
    table = table - table.mean(0)

    def covary(lag: int) -> float:
        return float((table[:, lag:] * table[:, :-lag]).mean())

    constant, next_month, quarter = covary(12), covary(1), covary(3)
    changing = max(next_month - constant, 1e-6)
    persistence = float(np.clip(max(quarter - constant, 0) / changing, 0, 1) ** 0.5)
    return float((changing / max(persistence, 0.1)) ** 0.5), persistence


def _measure_repeats(events: pl.DataFrame) -> float:
    """Measure the share of the events of an item that the same user had before."""
    again = pl.int_range(pl.len()).over("user_id", "item_id") > 0
    return float(events.select(again.mean()).item())


def describe(events: pl.DataFrame) -> dict[str, float]:
    """Measure what a fit describes, to compare synthetic events with real ones."""
    events = events.with_columns(at=pl.col("timestamp").to_physical()).sort("at")
    baskets = events.group_by("user_id", "at").len()
    gaps = baskets.sort("user_id", "at").select(pl.col("at").diff().over("user_id"))["at"]
    shares = np.sort(events["item_id"].value_counts()["count"].to_numpy())
    hours = np.bincount(_find_hour(baskets["at"].to_numpy()) % 24, minlength=24)
    drift, persistence = _fit_drift(events)
    return {
        "events_per_user": len(events) / events["user_id"].n_unique(),
        "basket_size": float(baskets["len"].mean() or 0),
        "median_days_between_baskets": float(gaps.drop_nulls().median() or 0) / _DAY,
        "share_of_top_tenth_of_items": float(shares[-len(shares) // 10 :].sum() / shares.sum()),
        "share_of_busiest_four_hours": float(np.sort(hours)[-4:].sum() / hours.sum()),
        "repeats": _measure_repeats(events),
        "drift": drift,
        "persistence": persistence,
    }


def write_events(
    output: Path, fitted: Fit, *, events: int, items: int, seed: int = 0
) -> tuple[int, int]:
    """Write about so many events into a directory; return the exact numbers of events and users."""
    rng = np.random.default_rng(seed)
    orders = _draw_orders(fitted, items, rng)
    shares = np.cumsum(np.exp(np.interp(np.linspace(0, 1, items), _STEPS, fitted.popularity)))
    # Some items are chosen again by chance alone.
    few = _draw_block(replace(fitted, repeats=0), orders, shares / shares[-1], 0, 500, rng)
    chance = _measure_repeats(few)
    again = max(fitted.repeats - chance, 0) / (1 - chance)
    fitted = replace(fitted, repeats=again)
    users_of_block = max(int(BLOCK_EVENTS / fitted.events_per_user), 1)
    written = users = block = 0
    while written < events:
        drawn = _draw_block(
            fitted, orders, shares / shares[-1], block * users_of_block, users_of_block, rng
        )
        drawn = drawn.head(events - written)
        for month, part in _divide_by_month(drawn):
            folder = output / f"month={month}"
            folder.mkdir(parents=True, exist_ok=True)
            part.write_parquet(folder / f"block-{block:05}.parquet", compression_level=1)
        written += len(drawn)
        users += drawn["user_id"].n_unique()
        block += 1
    return written, users


def _draw_orders(fitted: Fit, items: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw the order of the items by popularity in every month: months x items."""
    base = np.interp(np.linspace(0, 1, items), _STEPS, fitted.popularity)
    change = rng.normal(scale=fitted.drift, size=items)
    months = fitted.span // (30 * _DAY) + 1
    renewal = fitted.drift * (1 - fitted.persistence**2) ** 0.5
    orders = np.empty((months, items), dtype=np.int32)
    for month in range(months):
        orders[month] = np.argsort(-(base + change))
        change = fitted.persistence * change + rng.normal(scale=renewal, size=items)
    return orders


def _draw_block(
    fitted: Fit,
    orders: NDArray[np.int32],
    shares: NDArray[np.float64],
    first_user: int,
    users: int,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Draw all events of some users, in the order of users and time."""
    model = rng.integers(0, len(fitted.offsets) - 1, users)
    baskets = np.diff(fitted.offsets)[model]
    user = np.repeat(np.arange(users), baskets)
    basket = expand_spans(fitted.offsets[model], baskets)
    elapsed = fitted.elapsed[basket]
    gaps = np.diff(elapsed, prepend=0) * rng.lognormal(sigma=_VARIATION, size=len(basket))
    first = np.cumsum(baskets) - baskets
    gaps[first] = 0
    elapsed = np.cumsum(gaps)
    elapsed -= elapsed[first][user]
    begin = fitted.elapsed[fitted.offsets[model]] * rng.uniform(1 - _VARIATION, 1, users)
    # In the time that is left, where the intervals became longer.
    left, needed = fitted.span - begin, elapsed[first + baskets - 1]
    elapsed *= np.minimum(left / np.maximum(needed, 1), 1)[user]
    at = _keep_rhythm(fitted, (begin[user] + elapsed).astype(np.int64), rng)
    sizes = fitted.sizes[basket] * rng.lognormal(sigma=_VARIATION, size=len(basket))
    sizes = np.maximum(sizes.round().astype(np.int64), 1)
    inside = (at >= 0) & (at <= fitted.span)
    user, at, sizes = user[inside], at[inside], sizes[inside]
    order = np.lexsort((at, user))
    user, at, sizes = user[order], at[order], sizes[order]
    user, at = np.repeat(user, sizes), np.repeat(at, sizes)
    rank = np.searchsorted(shares, rng.uniform(size=len(user)))
    item = orders[at // (30 * _DAY), np.minimum(rank, orders.shape[1] - 1)]
    item = item[_choose_again(fitted, user, rng)]
    cancels = rng.uniform(size=len(user)) < fitted.cancellations
    return pl.select(
        user_id=pl.lit("user-") + pl.lit(pl.Series(user + first_user)).cast(pl.String),
        item_id=pl.lit("item-") + pl.lit(pl.Series(item)).cast(pl.String),
        timestamp=pl.lit(pl.Series(at + fitted.first_at)).cast(pl.Datetime("us", "UTC")),
        action=pl.when(pl.lit(pl.Series(cancels)))
        .then(pl.lit("cancel"))
        .otherwise(pl.lit("purchase")),
    )


def _keep_rhythm(
    fitted: Fit, elapsed: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Move instants within their week to the hours at which users come."""
    week = 7 * _DAY
    monday = (elapsed + fitted.first_at - _MONDAY) // week * week + _MONDAY
    hours = np.searchsorted(np.cumsum(fitted.week), rng.uniform(size=len(elapsed)))
    minutes = rng.integers(0, 60, len(elapsed)) * 60_000_000
    return monday + np.minimum(hours, _HOURS_OF_WEEK - 1) * _HOUR + minutes - fitted.first_at


def _choose_again(
    fitted: Fit, user: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return, per event, the index of the event whose item it takes: its own, or an earlier one."""
    index = np.arange(len(user))
    begins = np.flatnonzero(np.r_[True, np.diff(user) != 0])
    first = begins[np.cumsum(np.r_[True, np.diff(user) != 0]) - 1]
    repeats = (rng.uniform(size=len(user)) < fitted.repeats) & (index > first)
    earlier = first + (rng.uniform(size=len(user)) * (index - first)).astype(np.int64)
    source = np.where(repeats, earlier, index)
    while True:
        further = source[source]
        if np.array_equal(further, source):
            return source
        source = further


def _divide_by_month(events: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    month = pl.col("timestamp").dt.strftime("%Y-%m").alias("month")
    parts = events.with_columns(month).partition_by(
        "month", as_dict=True, include_key=False, maintain_order=True
    )
    for (name,), part in sorted(parts.items()):
        yield str(name), part.sort("timestamp", maintain_order=True)


def compare(real: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Measure a log, and synthetic events of the same number and of as many items."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        items = real["item_id"].n_unique()
        write_events(output, fit(real), events=len(real), items=items)
        drawn = pl.read_parquet(output / "**" / "*.parquet", hive_partitioning=False)
    return {"demo": describe(real), "synthetic": describe(drawn)}


def main() -> None:
    """Write events into a directory, or compare them with the demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--compare", action="store_true")
    chosen = parser.parse_args()
    demo = pl.read_parquet(DEMO)
    if chosen.compare:
        record = {"command": "python -m benchmarks.scale.synthetic_events --compare"}
        text = json.dumps(record | compare(demo), indent=1) + "\n"
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(text, "utf-8")
        print(text)
        return
    if chosen.output is None:
        parser.error("events are written into a directory: name one with --output")
    events, users = write_events(
        chosen.output, fit(demo), events=chosen.events, items=chosen.items, seed=chosen.seed
    )
    print(f"{events:,} events of {users:,} users in {chosen.output}")


if __name__ == "__main__":
    main()
