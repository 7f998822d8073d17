"""Real bundles of twenty items, built and opened in milliseconds."""

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import torch
from pydantic import JsonValue

from model.bundle.bundle import Bundle
from model.bundle.manifest import WEIGHTS, Counts, DataWindow
from model.bundle.writing import write_bundle
from model.catalog import Catalog
from model.encoders import EncoderConfig
from model.encoders.self_attention import SelfAttentionConfig
from model.followers import Followers
from model.popularity import Popularity
from model.popularity_table import PopularityTable
from model.recommender import RecommenderConfig
from model.store.store import BundleStore
from model.wide import EventCounts, WideConfig

ITEM_IDS = tuple(f"i{number}" for number in range(20))
FIRST_AT = 1_767_225_600_000_000
"""Midnight, the first of January 2026, UTC."""
HOUR = 3_600_000_000
LAST_AT = FIRST_AT + 100 * 24 * HOUR
HEADS = 2
MAX_HISTORY = 50


ENCODER = SelfAttentionConfig(dim=8, heads=HEADS, layers=1, feed_forward=8, max_history=MAX_HISTORY)


def count_events(items: int) -> EventCounts:
    """Ten events of every item, evenly over the days of training; nothing follows anything."""
    rows = np.tile(np.arange(1, items + 1, dtype=np.int32), 10)
    times = np.linspace(FIRST_AT, LAST_AT, len(rows)).astype(np.int64)
    none = np.zeros(0, dtype=np.int64)
    return EventCounts(
        PopularityTable(Popularity.count(rows, times, rows=items + 1)),
        Followers.rank(none, none, np.zeros(0), rows=items + 1),
    )


def publish(
    root: Path,
    seed: int,
    *,
    activate: bool = True,
    encoder: EncoderConfig = ENCODER,
    groups: tuple[str, ...] = (),
    items: int = len(ITEM_IDS),
    profile: pl.DataFrame | None = None,
    provenance: dict[str, JsonValue] | None = None,
    wide: WideConfig | None = None,
    ignored_actions: tuple[str, ...] = (),
) -> str:
    """Publishes a bundle with weights drawn from `seed`; returns its version."""
    popularity = np.arange(items, 0, -1, dtype=np.int64)
    catalog = Catalog(
        item_ids=tuple(f"i{number}" for number in range(items)),
        titles=tuple(f"Item {number}" for number in range(items)),
        categories=(("even",), ("odd",)) * (items // 2),
        popularity=popularity,
        recent_popularity=popularity,
    )
    config = RecommenderConfig(
        items=items, encoder=encoder, groups=groups, wide=wide, ignored_actions=ignored_actions
    )
    torch.manual_seed(seed)
    recommender = config.build()
    if wide is not None:
        recommender.counts = count_events(items)
    bundle = Bundle.assemble(
        recommender=recommender,
        config=config,
        catalog=catalog,
        data_window=DataWindow(first_at=FIRST_AT, last_at=LAST_AT),
        counts=Counts(events=1000, users=30, items=items),
        metrics={"ndcg@10": 0.25},
        provenance={"seed": seed} | (provenance or {}),
        attention_profile=profile,
    )
    return BundleStore(root).publish(partial(write_bundle, bundle), activate=activate)


def damage(root: Path, version: str) -> None:
    """Flips one bit of a published bundle's weights."""
    weights = root / version / WEIGHTS
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
