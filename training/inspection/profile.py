"""The profile of events: what decides which recipe suits them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from model import clock
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND
from model.errors import TrainingError
from training.config import DataConfig
from training.data.dataset import Dataset
from training.data.plausible_times import drop_implausible
from training.inspection.activity import Activity, measure_activity
from training.inspection.drift import (
    Drift,
    PopularityComparison,
    compare_popularity,
    measure_drift,
)
from training.inspection.findings import Finding, find_suspicious

Resolution = Literal["day", "hour", "minute", "second", "millisecond", "microsecond"]

_MICROSECONDS_PER: dict[Resolution, int] = {
    "hour": 3_600 * MICROSECONDS_PER_SECOND,
    "minute": 60 * MICROSECONDS_PER_SECOND,
    "second": MICROSECONDS_PER_SECOND,
    "millisecond": 1_000,
}
_MOST_BINS = 60


@dataclass(frozen=True)
class Quantiles:
    """The distribution of a quantity."""

    mean: float
    p10: float
    p25: float
    median: float
    p75: float
    p90: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: ArrayLike) -> "Quantiles":
        """Compute the quantiles of at least one value."""
        array = np.asarray(values, dtype=np.float64)
        found = np.quantile(array, (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1))
        return cls(float(array.mean()), *map(float, found))


@dataclass(frozen=True)
class Histogram:
    """Counts of values in bins whose bounds grow by about a factor of two.

    Attributes:
        bounds: the lower bound of each bin; the last bin has no upper bound.
        counts: the number of values per bin.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Baskets:
    """Events of one user at one instant.

    Attributes:
        tied_steps: share of the steps from an event to the user's next one that take no time.
        tied_repeats: share of the steps that take no time and lead to the same item, as duplicates.
        count: the number of baskets, single events included.
        sizes: events per basket.
        size_histogram: the same as counts.
        several_items: share of the baskets with more than one item.
        single_instant_events: share of the events of users whose events are all at one instant,
            users with one event included.
    """

    tied_steps: float
    tied_repeats: float
    count: int
    sizes: Quantiles
    size_histogram: Histogram
    several_items: float
    single_instant_events: float

    @property
    def tied_choices(self) -> float:
        """Share of the steps that take no time and lead to another item."""
        return self.tied_steps - self.tied_repeats


@dataclass(frozen=True)
class ColdItems:
    """Items that are new in the last tenth of the events.

    Attributes:
        targets: share of the last tenth's events whose item has no event in the first nine tenths.
        items: share of the items of the last tenth that have none.
    """

    targets: float
    items: float


@dataclass(frozen=True)
class Volume:
    """Events over time.

    Attributes:
        days: length of a bin.
        begins: epoch microseconds of the beginning of the first bin.
        counts: events per bin.
    """

    days: float
    begins: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class DataProfile:
    """The profile of events, after the filters of a recipe's `[data]` table.

    Attributes:
        users: number of users.
        items: number of items.
        events: number of events.
        first_at: epoch microseconds of the first event.
        last_at: epoch microseconds of the last event.
        resolution: the unit that nearly all timestamps are whole multiples of.
        actions: every action with its events, before any is ignored; most frequent first.
        ignored_actions: those that are left out of everything else.
        described_items: share of the items with a title or categories; None without an items table.
        user_events: events per user.
        user_histogram: the same as counts.
        item_events: events per item.
        top_items: share of the events of the tenth of the items with most events.
        repeats: share of the events whose item the user chose at an earlier instant.
        baskets: ties and baskets.
        gaps: seconds between a user's successive instants; None if no user has two.
        gap_histogram: the same as counts; None likewise.
        volume: events over time.
        time_zone: whose hours, weekdays and months `activity` has.
        activity: by hour, weekday and month.
        drift: None if the events are in one day.
        popularity: None if there are too few events.
        cold: None with fewer than ten events.
        findings: suspicious things.
    """

    users: int
    items: int
    events: int
    first_at: int
    last_at: int
    resolution: Resolution
    actions: tuple[tuple[str, int], ...]
    ignored_actions: tuple[str, ...]
    described_items: float | None
    user_events: Quantiles
    user_histogram: Histogram
    item_events: Quantiles
    top_items: float
    repeats: float
    baskets: Baskets
    gaps: Quantiles | None
    gap_histogram: Histogram | None
    volume: Volume
    time_zone: str
    activity: tuple[Activity, ...]
    drift: Drift | None
    popularity: PopularityComparison | None
    cold: ColdItems | None
    findings: tuple[Finding, ...]

    @property
    def used_actions(self) -> int:
        """The number of actions that are not ignored."""
        return sum(name not in self.ignored_actions for name, _ in self.actions)

    @property
    def days(self) -> float:
        """The time between the first and the last event, in days."""
        return (self.last_at - self.first_at) / MICROSECONDS_PER_DAY


def profile_events(
    events: pl.DataFrame,
    items: pl.DataFrame | None = None,
    *,
    data: DataConfig | None = None,
    now: int | None = None,
) -> DataProfile:
    """Measure the profile of events.

    Args:
        events: as `training.data.sources.read_events` returns them.
        items: as `read_items` returns them; for descriptions only.
        data: the filters to apply; none by default.
        now: epoch microseconds, to find events in the future; the clock's by default.

    Raises:
        TrainingError: if there are no events, or none is left after the filters.
    """
    data = data or DataConfig()
    if events.is_empty():
        raise TrainingError(
            "an inspection needs events, but the source has none; check the path and its contents"
        )
    actions = events["action"].value_counts(sort=True)
    names = actions["action"].to_list()
    if {*names} <= {*data.ignored_actions}:
        raise TrainingError(
            f"an inspection needs events, but the source has only ignored actions, {names}; "
            "ignore fewer"
        )
    now = clock.now() if now is None else now
    plausible, left_out = drop_implausible(events, now)
    whole = _lay_out(events, items, data)
    dataset = _lay_out(plausible, items, data) if left_out.total else whole
    times = dataset.times
    resolution = _find_resolution(times)
    user_events = np.diff(dataset.offsets)
    item_events = np.bincount(dataset.rows)[1:]
    gaps = _measure_gaps(dataset)
    return DataProfile(
        users=len(dataset.user_ids),
        items=len(dataset.catalog),
        events=len(dataset),
        first_at=int(times.min()),
        last_at=int(times.max()),
        resolution=resolution,
        actions=tuple(zip(names, actions["count"].to_list(), strict=True)),
        ignored_actions=tuple(name for name in data.ignored_actions if name in names),
        described_items=None if items is None else _measure_described(dataset),
        user_events=Quantiles.of(user_events),
        user_histogram=_count_by_size(user_events),
        item_events=Quantiles.of(item_events),
        top_items=float(
            np.sort(item_events)[-max(1, len(item_events) // 10) :].sum() / len(dataset)
        ),
        repeats=_measure_repeats(dataset),
        baskets=_measure_baskets(dataset),
        gaps=Quantiles.of(gaps) if len(gaps) else None,
        gap_histogram=_count_by_duration(gaps) if len(gaps) else None,
        volume=_measure_volume(times),
        time_zone=data.time_zone,
        activity=measure_activity(dataset, has_hours=resolution != "day", time_zone=data.time_zone),
        drift=measure_drift(dataset),
        popularity=compare_popularity(dataset),
        cold=_measure_cold_items(dataset),
        findings=find_suspicious(
            whole,
            resolution=resolution,
            items=items,
            now=now,
            left_out=left_out,
        ),
    )


def _lay_out(events: pl.DataFrame, items: pl.DataFrame | None, data: DataConfig) -> Dataset:
    return Dataset.of(
        events,
        items,
        min_item_events=data.min_item_events,
        min_user_events=data.min_user_events,
        ignored_actions=data.ignored_actions,
        distinct=False,
    )


def _find_resolution(times: NDArray[np.int64]) -> Resolution:
    """Find the coarsest unit that 99.9 % of the timestamps are multiples of."""
    # Midnights of another time zone are at one or two times of the day in UTC, once a day.
    dates = len(np.unique(times // MICROSECONDS_PER_DAY))
    midnights = np.unique(times % MICROSECONDS_PER_DAY)
    is_daily = len(midnights) <= 2 < dates and len(np.unique(times)) == dates
    if is_daily or (times % MICROSECONDS_PER_DAY == 0).mean() >= 0.999:
        return "day"
    for unit, microseconds in _MICROSECONDS_PER.items():
        if (times % microseconds == 0).mean() >= 0.999:
            return unit
    return "microsecond"


def _measure_described(dataset: Dataset) -> float:
    catalog = dataset.catalog
    described = sum(
        title is not None or len(categories) > 0
        for title, categories in zip(catalog.titles, catalog.categories, strict=True)
    )
    return described / len(catalog)


def _measure_repeats(dataset: Dataset) -> float:
    """Measure the share of events whose item the user chose at an earlier instant."""
    events = pl.DataFrame({"user": dataset.user_of, "row": dataset.rows, "at": dataset.times})
    earlier = pl.col("at").min().over("user", "row")
    return float(events.select((pl.col("at") > earlier).mean()).item())


def _measure_baskets(dataset: Dataset) -> Baskets:
    same_user = np.diff(dataset.user_of) == 0
    tied = same_user & (np.diff(dataset.times) == 0)
    begins = np.flatnonzero(np.concatenate(([True], ~tied)))
    sizes = np.diff(np.append(begins, len(dataset)))
    basket_of = np.cumsum(np.concatenate(([True], ~tied))) - 1
    contents = pl.DataFrame({"basket": basket_of, "row": dataset.rows}).unique()
    items = np.bincount(contents["basket"].to_numpy(), minlength=len(sizes))
    starts, ends = dataset.offsets[:-1], dataset.offsets[1:]
    is_single = dataset.times[starts] == dataset.times[ends - 1]
    steps = int(np.count_nonzero(same_user))
    return Baskets(
        tied_steps=float(np.count_nonzero(tied) / steps) if steps else 0.0,
        tied_repeats=float(np.count_nonzero(tied & (np.diff(dataset.rows) == 0)) / steps)
        if steps
        else 0.0,
        count=len(sizes),
        sizes=Quantiles.of(sizes),
        size_histogram=_count_by_size(sizes),
        several_items=float((items > 1).mean()),
        single_instant_events=float((ends - starts)[is_single].sum() / len(dataset)),
    )


def _measure_gaps(dataset: Dataset) -> NDArray[np.float64]:
    """Measure the seconds between successive instants of a user."""
    gaps = np.diff(dataset.times)[np.diff(dataset.user_of) == 0]
    seconds: NDArray[np.float64] = gaps[gaps > 0] / MICROSECONDS_PER_SECOND
    return seconds


def _measure_cold_items(dataset: Dataset) -> ColdItems | None:
    if len(dataset) < 10:
        return None
    order = np.argsort(dataset.times, kind="stable")
    cut = len(order) - len(order) // 10
    earlier = np.zeros(len(dataset.catalog) + 1, dtype=np.bool_)
    earlier[dataset.rows[order[:cut]]] = True
    latest = dataset.rows[order[cut:]]
    return ColdItems(
        targets=float((~earlier[latest]).mean()),
        items=float((~earlier[np.unique(latest)]).mean()),
    )


def _measure_volume(times: NDArray[np.int64]) -> Volume:
    """Count the events of equal stretches of time: days, weeks, months or longer."""
    days = times // MICROSECONDS_PER_DAY
    span = int(days.max() - days.min()) + 1
    width = next((width for width in (1, 7, 30, 91, 365) if span <= width * _MOST_BINS), None)
    width = width or -(-span // _MOST_BINS)
    bins = (days - days.min()) // width
    return Volume(
        days=width,
        begins=int(days.min()) * MICROSECONDS_PER_DAY,
        counts=tuple(np.bincount(bins).tolist()),
    )


def _count_by_size(values: NDArray[np.int64]) -> Histogram:
    """Count whole numbers from 1 in bins of 1, 2, 3-4, 5-8, ..."""
    edges = [1, 2, 3]
    while edges[-1] <= values.max():
        edges.append(2 * edges[-1] - 1)
    return _count(values.astype(np.float64), [edge for edge in edges if edge <= values.max()])


def _count_by_duration(seconds: NDArray[np.float64]) -> Histogram:
    """Count durations in bins with readable bounds."""
    day = 86_400
    edges = [0, 1, 10, 60, 600, 3_600, 6 * 3_600, day, 2 * day, 4 * day, 7 * day, 14 * day]
    edges += [30 * day, 60 * day, 120 * day, 365 * day]
    return _count(seconds, [float(edge) for edge in edges])


def _count(values: NDArray[np.float64], bounds: list[float]) -> Histogram:
    bins = np.searchsorted(bounds, values, side="right") - 1
    counts = np.bincount(bins, minlength=len(bounds))
    return Histogram(tuple(map(float, bounds)), tuple(counts.tolist()))
