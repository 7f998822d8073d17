"""A small data set of chains and baskets, and its splits."""

from datetime import UTC, datetime, timedelta

import polars as pl

from training.data.dataset import Dataset
from training.data.split import ByTimeConfig, ByUserConfig, LeaveOneOutConfig, Predict, Split

ITEMS = 12
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

SPLITS: list[tuple[LeaveOneOutConfig | ByTimeConfig | ByUserConfig, Predict]] = [
    (LeaveOneOutConfig(), "next_event"),
    (ByTimeConfig(test=0.2, validation=0.2), "next_event"),
    (ByTimeConfig(test=0.2, validation=0.2), "next_basket"),
    (ByUserConfig(test=0.25, validation=0.25), "next_event"),
]


def chains(users: int = 20, length: int = 9) -> Dataset:
    """Every user walks from item to item; every third step is at the instant of the one before.

    One item is of a single late event, so that a split leaves it out of the catalog.
    """
    events = [
        {
            "user_id": f"u{user}",
            "item_id": f"i{(user + step) % ITEMS:02}",
            "timestamp": _BEGAN + timedelta(hours=user, days=step - (step % 3 == 2)),
            "action": None,
        }
        for user in range(users)
        for step in range(length + user % 3)
    ]
    late = events[-1] | {"item_id": "rare", "timestamp": _BEGAN + timedelta(days=length + 1)}
    following = late | {"item_id": "i00", "timestamp": _BEGAN + timedelta(days=length + 2)}
    frame = pl.DataFrame(
        [*events, late, following],
        schema={
            "user_id": pl.String,
            "item_id": pl.String,
            "timestamp": pl.Datetime("us", "UTC"),
            "action": pl.String,
        },
    )
    return Dataset.of(frame)


def split_chains(kind: int) -> tuple[Dataset, Split, Predict]:
    """Split the chains in one of the ways of `SPLITS`."""
    dataset = chains()
    config, predict = SPLITS[kind]
    return dataset, config.split(dataset, predict), predict
