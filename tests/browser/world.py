"""A small untrained service for the browser tests: 14 items, three users, one hostile title."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import torch

from model.bundle.bundle import Bundle
from model.bundle.manifest import Counts, DataWindow
from model.bundle.writing import write_bundle
from model.catalog import Catalog
from model.clock import from_datetime
from model.encoders.self_attention import SelfAttentionConfig
from model.recommender import RecommenderConfig
from model.store.store import BundleStore
from tests.processes import LOCAL_TOKEN

HOSTILE_TITLE = "<img src=x onerror=\"document.body.dataset.hacked='yes'\">"
TITLES = (
    HOSTILE_TITLE,
    "Regency cakestand, three tiers",
    "Assorted colour bird ornament",
    "Jumbo bag, red retrospot",
    "Party bunting",
    "Small popcorn holder",
    "White hanging heart T-light holder",
    "Lunch bag, black skull",
    "Wooden frame, antique white",
    "Pack of 72 retrospot cake cases",
    "Rex cash and carry jumbo shopper",
    "Home building block word",
    "Natural slate heart chalkboard",
    "Zinc star T-light holder",
)
ITEM_IDS = tuple(f"sku-{number:02}" for number in range(len(TITLES)))
START = datetime(2025, 1, 6, 9, tzinfo=UTC)
REGULAR, BASKETS, NEWCOMER = "customer-regular", "customer-baskets", "dept/новый"
HEADS = 2


def publish(root: Path) -> str:
    """Publish an untrained bundle, which is enough to draw attention; returns its version."""
    popularity = np.arange(len(ITEM_IDS), 0, -1, dtype=np.int64)
    config = RecommenderConfig(
        items=len(ITEM_IDS),
        encoder=SelfAttentionConfig(dim=16, heads=HEADS, layers=1, feed_forward=16, max_history=50),
    )
    torch.manual_seed(7)
    recommender = config.build()
    with torch.no_grad():
        # Larger than at initialization, so that attention weights differ visibly.
        for weights in recommender.parameters():
            if weights.ndim > 1:
                weights.mul_(3)
    bundle = Bundle.assemble(
        recommender=recommender,
        config=config,
        catalog=Catalog(
            item_ids=ITEM_IDS,
            titles=TITLES,
            categories=((),) * len(ITEM_IDS),
            popularity=popularity,
            recent_popularity=popularity,
        ),
        data_window=DataWindow(
            first_at=from_datetime(START), last_at=from_datetime(START + timedelta(days=200))
        ),
        counts=Counts(events=100, users=3, items=len(ITEM_IDS)),
        metrics={},
        provenance={},
    )
    return BundleStore(root).publish(partial(write_bundle, bundle))


def fill(service: str) -> None:
    """Send the events of the users to a running service."""
    events = [
        *(_event(REGULAR, number, days=number**1.5) for number in range(10)),
        *(
            _event(BASKETS, basket * 3 + index, days=40 * basket)
            for basket in range(3)
            for index in range(4)
        ),
        _event(NEWCOMER, 2, days=100) | {"item_id": "sku-unheard-of"},
        _event(NEWCOMER, 3, days=101),
    ]
    answer = httpx.post(f"{service}/v1/events", json={"events": events}, auth=LOCAL_TOKEN).json()
    assert answer["accepted"] == len(events), answer


def _event(user_id: str, item: int, *, days: float) -> dict[str, str]:
    return {
        "user_id": user_id,
        "item_id": ITEM_IDS[item],
        "action": "purchase",
        "timestamp": (START + timedelta(days=days)).isoformat(),
    }
