"""Bundles of untrained models over synthetic items, for measurements of speed.

The items are i0, i1 and so on. The counts of a wide part are drawn as well.
"""

import numpy as np
import torch

from model.bundle.bundle import Bundle
from model.bundle.manifest import Counts, DataWindow
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_DAY
from model.encoders.self_attention import SelfAttentionConfig
from model.followers import KEPT, Followers
from model.popularity import Popularity
from model.popularity_table import PopularityTable
from model.recommender import Recommender, RecommenderConfig
from model.time_encodings.mercer import MercerConfig
from model.wide import EventCounts, WideConfig

DIM = 64
DAYS, COUNTED = 400, 2_000_000


def build_bundle(
    items: int,
    *,
    last_at: int,
    wide: WideConfig | None = None,
    counts: EventCounts | None = None,
    seed: int = 0,
) -> Bundle:
    """Build a bundle of self-attention with Mercer's encoding, as in the shipped recipes.

    Width 64, two blocks, 200 events, 8 periods of degree 4. With its exported encoder.

    Args:
        items: the number of items.
        last_at: the end of the data window, in epoch microseconds.
        wide: the wide part, if any; it needs `counts`.
        counts: of `count_events`.
        seed: of the weights.
    """
    config = RecommenderConfig(
        items=items,
        wide=wide,
        encoder=SelfAttentionConfig(
            dim=DIM, dropout=0, time_encoding=MercerConfig(periods=8, degree=4)
        ),
    )
    torch.manual_seed(seed)
    recommender = config.build()
    if wide is not None:
        recommender.counts = counts
    return assemble(recommender, config, last_at=last_at)


def assemble(recommender: Recommender, config: RecommenderConfig, *, last_at: int) -> Bundle:
    """Assemble the bundle of a recommender for synthetic items, with its exported encoder."""
    items = config.items
    popularity = np.ones(items, dtype=np.int64)
    return Bundle.assemble(
        recommender=recommender,
        config=config,
        catalog=Catalog(
            item_ids=tuple(f"i{number}" for number in range(items)),
            titles=(None,) * items,
            categories=((),) * items,
            popularity=popularity,
            recent_popularity=popularity,
        ),
        data_window=DataWindow(first_at=last_at - DAYS * MICROSECONDS_PER_DAY, last_at=last_at),
        counts=Counts(events=COUNTED, users=1, items=items),
        metrics={},
        provenance={},
    ).with_exported_encoder()


def count_events(items: int, rng: np.random.Generator, *, last_at: int) -> EventCounts:
    """Count events whose items are popular by Zipf's law, and draw 32 followers per item."""
    rows = 1 + (items * rng.random(COUNTED) ** 4).astype(np.int32)
    times = rng.integers(last_at - DAYS * MICROSECONDS_PER_DAY, last_at, COUNTED)
    followed = np.repeat(np.arange(1, items + 1), KEPT)
    steps = (
        1
        + rng.integers(0, items // KEPT, len(followed))
        + np.tile(np.arange(KEPT) * (items // KEPT), items)
    )
    followers = 1 + (followed + steps) % items
    return EventCounts(
        PopularityTable(Popularity.count(rows, times, rows=items + 1)),
        Followers.rank(followed, followers, 1 + rng.random(len(followed)), rows=items + 1),
    )
