"""Small fixtures shared by many tests: a catalog, bundles of it, and events with a pattern."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import torch

from model.bundle import writing
from model.bundle.bundle import Bundle
from model.bundle.manifest import Counts, DataWindow
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_DAY
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.followers import Followers
from model.popularity import Popularity
from model.popularity_table import PopularityTable
from model.recommender import Recommender, RecommenderConfig
from model.time_encodings.mercer import MercerConfig
from model.wide import EventCounts

ITEMS = 24
DAY = MICROSECONDS_PER_DAY
FIRST_AT = 1_700_000_000_000_000
LAST_AT = FIRST_AT + 200 * DAY
WINDOW = DataWindow(first_at=FIRST_AT, last_at=LAST_AT)
ITEM_IDS = tuple(f"i{number}" for number in range(ITEMS))

ENCODER = SelfAttentionConfig(
    dim=8, heads=2, layers=2, feed_forward=8, max_history=6, time_encoding=MercerConfig(periods=3)
)


def catalog() -> Catalog:
    """Build 24 items of descending popularity; only i23 is recently popular."""
    popularity = np.arange(ITEMS, 0, -1, dtype=np.int64)
    recent = np.where(np.arange(ITEMS) == ITEMS - 1, 1, 0).astype(np.int64)
    return Catalog(
        item_ids=ITEM_IDS,
        titles=tuple(None if n == 3 else f"Item {n}" for n in range(ITEMS)),
        categories=tuple(("even", "all") if n % 2 == 0 else () for n in range(ITEMS)),
        popularity=popularity,
        recent_popularity=recent,
    )


def recommender_config(encoder: EncoderConfig = ENCODER, **changed: object) -> RecommenderConfig:
    """Build the configuration of a recommender of this catalog."""
    fields: dict[str, object] = {"items": ITEMS, "encoder": encoder}
    return RecommenderConfig.model_validate(fields | changed)


def recommender(config: RecommenderConfig, seed: int = 0) -> Recommender:
    """Build a recommender with perturbed weights, so that outputs differ."""
    torch.manual_seed(seed)
    built = config.build().eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        built.items.weight[0].zero_()
    if config.wide is not None:
        built.counts = event_counts(config.items)
    return built


def event_counts(items: int = ITEMS) -> EventCounts:
    """Count random events over the window, and random followers."""
    rng = np.random.default_rng(0)
    rows = rng.integers(1, items + 1, 500).astype(np.int32)
    times = rng.integers(FIRST_AT, LAST_AT, 500)
    pairs = rng.permutation(items * items)[: 4 * items]
    followers = Followers.rank(
        pairs // items + 1, pairs % items + 1, rng.uniform(1, 9, len(pairs)), rows=items + 1, kept=4
    )
    return EventCounts(PopularityTable(Popularity.count(rows, times, rows=items + 1)), followers)


def writer(
    config: RecommenderConfig,
    weights: Recommender,
    attention_profile: pl.DataFrame | None = None,
) -> Callable[[Path], str]:
    """The function that `BundleStore.publish` calls to write a bundle into a directory."""
    bundle = Bundle.assemble(
        recommender=weights,
        config=config,
        catalog=catalog(),
        data_window=WINDOW,
        counts=Counts(events=1000, users=30, items=ITEMS),
        metrics={"ndcg@10": 0.25},
        provenance={"seed": 0},
        attention_profile=attention_profile,
    )
    return partial(writing.write_bundle, bundle)


def write_bundle(root: Path, seed: int = 0, config: RecommenderConfig | None = None) -> Path:
    """Write a bundle to disk, outside any store."""
    config = config or recommender_config()
    unnamed = root / "unnamed"
    unnamed.mkdir(parents=True)
    version = writer(config, recommender(config, seed))(unnamed)
    return unnamed.rename(root / version)


def gap_world(users: int = 200, length: int = 12, seed: int = 0) -> pl.DataFrame:
    """Generate events whose item depends only on the interval since the previous event.

    After a short gap (about half an hour) the item is one of the first ten, after a long one (about
    two weeks) one of the last ten; the item within the ten and the gap are random. The order is
    therefore uninformative, and the query time determines the half.
    """
    rng = np.random.default_rng(seed)
    events: list[tuple[str, str, int]] = []
    for user in range(users):
        is_long = rng.random(length) < 0.5
        days = np.where(is_long, 14.0, 1 / 48) * rng.uniform(0.7, 1.4, length)
        at = FIRST_AT + (rng.uniform(0, 100) + np.cumsum(days)) * DAY
        items = rng.integers(10, size=length) + 10 * is_long
        events += [(f"u{user}", f"i{n}", int(t)) for n, t in zip(items, at, strict=True)]
    return event_log(events)


def event_log(events: list[tuple[str, str, int]], action: str = "event") -> pl.DataFrame:
    """Build an event table from (user, item, epoch microseconds) as `read_events` returns it."""
    users, items, times = zip(*events, strict=True) if events else ((), (), ())
    return pl.DataFrame(
        {"user_id": users, "item_id": items, "timestamp": times},
        schema={"user_id": pl.String, "item_id": pl.String, "timestamp": pl.Int64},
    ).with_columns(
        pl.col("timestamp").cast(pl.Datetime("us", "UTC")),
        action=pl.lit(action),
        value=pl.lit(None, pl.Float64),
    )
