"""Tables of events with known properties."""

import numpy as np
import polars as pl

from training.data.columns import EVENT_SCHEMA

DAY = 86_400_000_000
HOUR = DAY // 24
START = 1_704_067_200_000_000
"""2024-01-01T00:00:00Z, a Monday."""


def make_events(
    rows: list[tuple[str, str, int]], action: str | list[str] = "event"
) -> pl.DataFrame:
    """Build a table from (user, item, microseconds after the start)."""
    users, items, offsets = zip(*rows, strict=True)
    actions = [action] * len(rows) if isinstance(action, str) else action
    return pl.DataFrame(
        {
            "user_id": users,
            "item_id": items,
            "timestamp": pl.Series([START + offset for offset in offsets]).cast(
                EVENT_SCHEMA["timestamp"]
            ),
            "action": actions,
            "value": pl.Series([None] * len(rows), dtype=pl.Float64),
        },
        schema=EVENT_SCHEMA,
    )


def draw_events(
    *, events: int = 4_000, users: int = 40, items: int = 30, days: float = 200, seed: int = 0
) -> pl.DataFrame:
    """Draw users, items and seconds independently and evenly."""
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.integers(0, int(days * 86_400), events))
    return make_events(
        [
            (f"u{user}", f"i{item}", int(second) * 1_000_000)
            for user, item, second in zip(
                rng.integers(0, users, events), rng.integers(0, items, events), seconds, strict=True
            )
        ]
    )


def draw_sessions(*, gap_seconds: int, users: int = 30, baskets: int = 12) -> pl.DataFrame:
    """Draw baskets of three items that no user chooses twice, the same time apart."""
    return make_events(
        [
            (
                f"u{user}",
                f"i{3 * basket + place}",
                basket * gap_seconds * 1_000_000 + user * 7_000_000,
            )
            for user in range(users)
            for basket in range(baskets)
            for place in range(3)
        ]
    )


def draw_choices_by_weekday(*, users: int, shuffled: bool = False) -> pl.DataFrame:
    """Draw one choice a day per user: at weekends of other items than on workdays.

    Args:
        shuffled: whether the items are exchanged between days, so that weekdays predict nothing.
    """
    rng = np.random.default_rng(0)
    days = np.tile(np.arange(60), users)
    items = rng.integers(0, 8, len(days)) + np.where(days % 7 >= 5, 8, 0)
    if shuffled:
        rng.shuffle(items)
    return make_events(
        [
            (f"u{number // 60}", f"i{item}", int(day) * DAY + number * 1_000_000)
            for number, (day, item) in enumerate(zip(days, items, strict=True))
        ]
    )
