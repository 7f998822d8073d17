"""Synthetic events with one planted pattern each, and the probabilities that drew them.

Every generator returns two predictors beside the events: the oracle, which is the probability that
drew the event, and the blind one, which knows everything but the pattern. A model is measured
between the two.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Float, Int64
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from tests import tiny

HOURS = 24

CADENCES = (7.0, 14.0, 30.0, 60.0, 90.0)
"""Days after which items return, in turn."""

POPULAR = (0.36, 0.24, 0.14, 0.06)
"""Shares of the popular items of a season; the others share the rest evenly."""


@dataclass(frozen=True)
class PlantedEvents:
    """Events sorted by user and time, and what could be known of each just before it.

    Attributes:
        users: the user of each event, ascending.
        items: the item of each event, from 0.
        days: days since `tiny.FIRST_AT`, a midnight of UTC plus some hours.
        oracle: probability of every item at each event, given its time and the pattern.
        blind: probability of every item without the pattern.
    """

    users: Int64[np.ndarray, " events"]
    items: Int64[np.ndarray, " events"]
    days: Float[np.ndarray, " events"]
    oracle: Float[np.ndarray, "events items"]
    blind: Float[np.ndarray, "events items"]

    def to_frame(self) -> pl.DataFrame:
        """Build the table of events that a training run reads."""
        times = tiny.FIRST_AT + np.rint(self.days * MICROSECONDS_PER_DAY).astype(np.int64)
        return tiny.event_log(
            [
                (f"u{user}", f"i{item}", at)
                for user, item, at in zip(
                    self.users.tolist(), self.items.tolist(), times.tolist(), strict=True
                )
            ]
        )


def plant_drift(
    seed: int, *, users: int = 800, items: int = 40, season: float = 21.0, seasons: int = 20
) -> PlantedEvents:
    """Plant a drift: every `season` days, four other items are the popular ones.

    No user has a taste, and no two events of a user are in one season, so a history says nothing
    about the season of the query. Every item is popular once before any is again.
    """
    rng = np.random.default_rng(seed)
    popular = np.concatenate(
        [rng.permutation(items) for _ in range(-(-seasons * len(POPULAR) // items))]
    ).reshape(-1, len(POPULAR))[:seasons]
    popularity = np.full((seasons, items), (1 - sum(POPULAR)) / (items - len(POPULAR)))
    np.put_along_axis(popularity, popular, np.array(POPULAR), axis=1)
    visits = []
    for user in range(users):
        days = rng.uniform(-2 * season, season) + np.cumsum(
            rng.uniform(season, 3 * season, seasons)
        )
        visits += [(user, day) for day in days if 0 <= day < season * seasons]
    who, days = _to_columns(visits)
    oracle = popularity[(days // season).astype(np.int64)]
    blind = np.full_like(oracle, 1 / items)
    return PlantedEvents(who, _draw(oracle, rng), days, oracle, blind)


def plant_daily_rhythm(
    seed: int, *, users: int = 400, items: int = HOURS, sharpness: float = 6.0
) -> PlantedEvents:
    """Plant a rhythm of the clock: every item has its own hour of the day, UTC.

    Weeks lie between the events of a user, so the hour of the query can hardly be computed from the
    items of the history and the intervals since.
    """
    rng = np.random.default_rng(seed)
    visits = []
    for user in range(users):
        # Two years early: the last events, four years later, must not be in the future.
        days = rng.uniform(0, 60) + np.cumsum(rng.uniform(40, 100, 14)) - 104 * 7
        visits += [(user, day) for day in days]
    who, days = _to_columns(visits)
    midnight = tiny.FIRST_AT / MICROSECONDS_PER_DAY
    phase = (days + midnight)[:, None] - rng.permutation(items) / items
    oracle = _softmax(sharpness * np.cos(2 * np.pi * phase))
    blind = np.full_like(oracle, 1 / items)
    return PlantedEvents(who, _draw(oracle, rng), days, oracle, blind)


def plant_interval_rhythm(
    seed: int,
    *,
    users: int = 400,
    items: int = HOURS,
    own: int = 4,
    events: int = 16,
    shortest: float = 20.0,
    longest: float = 60.0,
    sharpness: float = 6.0,
) -> PlantedEvents:
    """Plant a rhythm of intervals: an item recurs a whole number of days after it came before.

    Every user has a few items, each at a time of day of its own, drawn for this user: the hour of
    the query alone says nothing, and the first event of an item has no time to repeat.

    Args:
        shortest, longest: days between two events of a user.
    """
    rng = np.random.default_rng(seed)
    visits, oracles, blinds = [], [], []
    for user in range(users):
        chosen = rng.choice(items, own, replace=False)
        phases = rng.uniform() + np.arange(own) / own
        days = rng.uniform(0, shortest) + np.cumsum(rng.uniform(shortest, longest, events))
        visits += [(user, day) for day in days]
        probabilities = np.zeros((events, items))
        probabilities[:, chosen] = _softmax(
            sharpness * np.cos(2 * np.pi * (days[:, None] - phases))
        )
        oracles.append(probabilities)
        blind = np.zeros((events, items))
        blind[:, chosen] = 1 / own
        blinds.append(blind)
    who, days = _to_columns(visits)
    oracle, blind = np.concatenate(oracles), np.concatenate(blinds)
    return PlantedEvents(who, _draw(oracle, rng), days, oracle, blind)


def plant_cadences(
    seed: int,
    *,
    users: int = 200,
    items: int = 20,
    own: int = 5,
    spread: float = 0.1,
    span: float = 300.0,
) -> PlantedEvents:
    """Plant a cadence per item: a user's item returns after its own interval.

    Item n returns after `CADENCES[n % 5]` days, times a factor whose logarithm is normal with a
    standard deviation of `spread`. Every user has `own` items.
    The oracle is the hazard of every item's renewal at the event's time. The blind predictor knows
    the user's items and how often they come.
    """
    rng = np.random.default_rng(seed)
    cadence = np.resize(CADENCES, items)
    visits: list[tuple[int, float]] = []
    chosen_items: list[int] = []
    oracles, blinds = [], []
    for user in range(users):
        chosen = rng.choice(items, own, replace=False)
        arrivals = []
        for item in chosen:
            day = rng.uniform(0, cadence[item])
            while day < span:
                arrivals.append((day, int(item)))
                day += cadence[item] * np.exp(rng.normal(0, spread))
        arrivals.sort()
        last: dict[int, float] = {}
        for day, item in arrivals:
            hazards = np.zeros(items)
            for other in chosen:
                hazards[other] = _hazard(day, last.get(int(other)), cadence[other], spread)
            oracles.append(hazards / hazards.sum())
            blind = np.zeros(items)
            blind[chosen] = 1 / cadence[chosen]
            blinds.append(blind / blind.sum())
            last[item] = day
            visits.append((user, day))
            chosen_items.append(item)
    who, days = _to_columns(visits)
    return PlantedEvents(who, np.array(chosen_items), days, np.array(oracles), np.array(blinds))


def _hazard(day: float, last: float | None, cadence: float, spread: float) -> float:
    """Compute the rate per day at which an item returns, given that it has not yet."""
    if last is None:
        return 1 / max(cadence - day, 1e-3) if day < cadence else 0.0
    z = np.log(max(day - last, 1e-9) / cadence) / spread
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) / (spread * max(day - last, 1e-9))
    survival = 0.5 * math.erfc(z / math.sqrt(2))
    return float(density / max(survival, 1e-12))


def _to_columns(visits: list[tuple[int, float]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    users, days = zip(*visits, strict=True)
    return np.array(users, dtype=np.int64), np.array(days, dtype=np.float64)


def _softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _draw(probabilities: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one item per line."""
    drawn = (probabilities.cumsum(-1) < rng.random((len(probabilities), 1))).sum(-1)
    return np.minimum(drawn, probabilities.shape[1] - 1)
