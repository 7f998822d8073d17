"""Event logs with all that a preparation must keep: repeats, baskets, crawlers, wrong times."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from model.clock import MICROSECONDS_PER_DAY
from tests import tiny
from training.data.columns import EVENT_SCHEMA
from training.engines import open_engine
from training.preparation.events import PreparedEvents
from training.preparation.prepare import prepare

NOW = tiny.LAST_AT + 20 * MICROSECONDS_PER_DAY


def odd_world(events: int = 4_000, users: int = 60, seed: int = 0) -> pl.DataFrame:
    """Draw events in no order, with repeats, a crawler, rare items and actions, and strays."""
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 60, events) * MICROSECONDS_PER_DAY
    user = np.minimum(rng.geometric(0.08, events), users)
    drawn = pl.DataFrame(
        {
            "user_id": [f"user-{number}é" for number in user],
            "item_id": [f"{number}" for number in rng.geometric(0.04, events)],
            "timestamp": tiny.FIRST_AT + days + rng.integers(0, 5, events),
            "action": rng.choice(["view", "purchase", "like", "cancel"], events),
            "value": rng.uniform(size=events),
        }
    )
    crawled = drawn.head(1).with_columns(user_id=pl.lit("crawler"), item_id=pl.lit("7"))
    stray = drawn.head(3).with_columns(timestamp=pl.lit(tiny.FIRST_AT // 2 + 7))
    ahead = drawn.head(2).with_columns(timestamp=pl.lit(NOW * 2))
    repeated = drawn.sample(200, seed=seed)
    crawl = pl.concat([crawled] * 150).with_columns(
        timestamp=tiny.FIRST_AT + pl.int_range(150), action=pl.lit("view")
    )
    parts = [drawn, repeated, crawl, stray, ahead]
    mixed = pl.concat(parts).sample(fraction=1, shuffle=True, seed=seed)
    return mixed.with_columns(pl.col("timestamp").cast(EVENT_SCHEMA["timestamp"]))


def write_parts(events: pl.DataFrame, folder: Path, parts: int = 3) -> Path:
    """Write events into files of unequal length, the order of whose names is that of the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.linspace(0, 1, parts + 1) ** 2 * len(events)
    for number, (begin, end) in enumerate(pairwise(ends.astype(int).tolist())):
        events[begin:end].write_parquet(folder / f"part-{number:03}.parquet", row_group_size=97)
    return folder


def prepare_into(source: Path | str, directory: Path | str, shards: int = 5) -> PreparedEvents:
    """Prepare events in this process."""
    with open_engine("local") as engine:
        prepare(str(source), str(directory), engine, shards=shards)
    return PreparedEvents.open(str(directory))
