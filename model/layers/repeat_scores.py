"""Scores of the items of a history, for data where users return to them."""

import math
from functools import cache
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from model import accelerators
from model.batch import SequenceBatch
from model.clock import MICROSECONDS_PER_DAY
from model.layers.baskets import number_baskets
from model.layers.calendar_phase import DAY, WEEK
from model.layers.local_clock import LocalClock, is_weekend
from model.popularity import FEATURES
from model.popularity_table import PopularityFeatures

HALF_LIVES = (7.0, 28.0, 112.0, 448.0, float("inf"))
"""Days after which an event of a history weighs half."""

HALF_LIVES_IN_BASKETS = (1.0, 4.0, 16.0)
"""Baskets after which an event of a history weighs half."""

PERIODS = (0.5, DAY, 3.5, WEEK)
"""Periods of the time since an item's last event, in days: users return at the same hour, or on the
same weekday."""


class PhaseWindow(NamedTuple):
    """A window around the query's time of day and of week, in which events weigh more.

    Attributes:
        of_day: hours between their times of day at which an event weighs exp(-1/2), about; such
            windows are von Mises distributions.
        of_week: the same of their times of the week.
        same_kind_of_day: whether an event on a weekday weighs an eighth for a query on a weekend,
            and the other way round.
    """

    of_day: float
    of_week: float
    same_kind_of_day: bool = False

    @property
    def concentrations(self) -> tuple[float, float]:
        """The concentrations of the von Mises distributions over the day and over the week."""
        radians_of_day, radians_of_week = (
            2 * math.pi * hours / 24 / period
            for hours, period in ((self.of_day, DAY), (self.of_week, WEEK))
        )
        return radians_of_day**-2, radians_of_week**-2


PHASE_WINDOWS = (
    PhaseWindow(2.0, math.inf),
    PhaseWindow(2.0, math.inf, same_kind_of_day=True),
    PhaseWindow(2.0, 12.0),
    PhaseWindow(math.inf, 12.0),
)
"""Windows in which shares are counted: what a user chooses at this hour, or on this weekday."""

_SHARES = len(HALF_LIVES) + len(HALF_LIVES_IN_BASKETS) + len(PHASE_WINDOWS)
_INTERVALS = 5
_PHASES = 2 * len(PERIODS)
_STARTS_AT = HALF_LIVES.index(112.0)  # also the half-life of windows
_LEAST_LOG_SHARE = -16.0
_LEAST_WEIGHT = 1e-30
_HIDDEN = 24


class _Constants(NamedTuple):
    """What the features are computed with.

    Attributes:
        other_kind_of_day: half-lives that a day of the other kind is away, in each window.
    """

    half_lives: Float[Tensor, "half_lives 1"]
    half_lives_in_baskets: Float[Tensor, "half_lives 1"]
    frequencies: Float[Tensor, " periods"]
    frequencies_of_windows: Float[Tensor, "2 1"]
    concentrations: Float[Tensor, "windows 2"]
    other_kind_of_day: Float[Tensor, "windows 1"]


_CONSTANTS = _Constants(
    half_lives=torch.tensor(HALF_LIVES).unsqueeze(1),
    half_lives_in_baskets=torch.tensor(HALF_LIVES_IN_BASKETS).unsqueeze(1),
    frequencies=2 * math.pi / torch.tensor(PERIODS),
    frequencies_of_windows=(2 * math.pi / torch.tensor((DAY, WEEK))).unsqueeze(1),
    concentrations=torch.tensor([one.concentrations for one in PHASE_WINDOWS]),
    other_kind_of_day=torch.tensor([[3.0 * one.same_kind_of_day] for one in PHASE_WINDOWS]),
)


@cache
def _copy_constants(device: torch.device) -> _Constants:
    """Copy the constants to a device, once: a copy waits for what the device does."""
    with torch.inference_mode(mode=False):
        return _Constants(*(one.to(device) for one in _CONSTANTS))


class HistoryQueries(NamedTuple):
    """Where and when the histories of a batch are queried.

    Attributes:
        sample: the history of each query.
        last: the position of the last event that it reads.
        times: query times in days since the first event of the history.
        given: whether the model may read the query time.
    """

    sample: Int64[Tensor, " queries"]
    last: Int64[Tensor, " queries"]
    times: Float64[Tensor, " queries"]
    given: Bool[Tensor, " queries"]

    def find_instants(self, batch: SequenceBatch) -> Int64[Tensor, " queries"]:
        """Find the instant of each query, epoch microseconds."""
        return _find_instants(self.times, batch.origins[self.sample])

    @classmethod
    def at_positions(
        cls, batch: SequenceBatch, positions: Int64[Tensor, " queries"]
    ) -> "HistoryQueries":
        """Query after some positions, flat indices into batch x len."""
        length = batch.rows.shape[1]
        return cls(
            sample=torch.div(positions, length, rounding_mode="floor"),
            last=positions % length,
            times=batch.query_times.flatten()[positions],
            given=batch.query_given.flatten()[positions],
        )

    @classmethod
    def at_last_events(cls, batch: SequenceBatch) -> "HistoryQueries":
        """Query every history after its last event."""
        sample, last = torch.arange(len(batch.rows), device=batch.rows.device), batch.lengths - 1
        return cls(
            sample=sample,
            last=last,
            times=batch.query_times[sample, last],
            given=batch.query_given[sample, last],
        )


@final
class RepeatScorer(nn.Module):
    """Scores each item of a history as a candidate to come again.

    The features of an item are the logarithms of its shares among the events of the history, which
    weigh half after so many days or baskets, all of them or those near the query in the phase of
    the day and the week; the time and the number of baskets since its last event, the mean interval
    between its events and the ratio of both; the phase of that time in the day and the week; and
    its popularity. The score is linear in them, with weights that the user vector shifts, plus a
    small perceptron and a bias per item. It starts as the log share at a half-life of 112 days.

    Args:
        time_zone: of the local clock that phases are read from, a name of the IANA database.

    Shape: users (queries, dim) -> (queries, len), -inf except at an item's last event
    """

    def __init__(self, *, items: int, dim: int, time_zone: str = "UTC") -> None:
        super().__init__()
        self.clock = LocalClock(time_zone)
        features = _SHARES + _INTERVALS + _PHASES + FEATURES
        self.level = nn.Linear(dim, 1)
        self.weights = nn.Linear(dim, features)
        self.hidden = nn.Linear(features, _HIDDEN)
        self.activation = nn.GELU()
        self.out = nn.Linear(_HIDDEN, 1, bias=False)
        self.item_bias = nn.Parameter(torch.zeros(items + 1))
        for layer in (self.level, self.weights):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.out.weight)
        with torch.no_grad():
            self.weights.bias[_STARTS_AT] = 1.0

    def forward(
        self,
        users: Float[Tensor, "queries dim"],
        batch: SequenceBatch,
        queries: HistoryQueries,
        popularity: PopularityFeatures,
    ) -> Float[Tensor, "queries len"]:
        """Score the items at each query."""
        with accelerators.keep_precision(users.device):
            items = describe_items(batch, queries, popularity, self.clock)
        query, position, features = items.query, items.position, items.features
        scores = (features * self.weights(users)[query]).sum(-1)
        scores = scores + self.level(users).squeeze(-1)[query]
        scores = scores + self.out(self.activation(self.hidden(features))).squeeze(-1)
        scores = scores + self.item_bias[batch.rows[queries.sample[query], position]]
        shape = len(users), batch.rows.shape[1]
        placed: Tensor
        if items.is_item is not None:
            placed = scores.masked_fill(~items.is_item, float("-inf")).view(shape)
        else:
            nothing = scores.new_full(shape, float("-inf"))
            placed = nothing.index_put((query, position), scores)
        return placed

    @torch.no_grad()
    def divide_by_event(
        self, users: Float[Tensor, "queries dim"], batch: SequenceBatch, queries: HistoryQueries
    ) -> Float[Tensor, "queries len"]:
        """Divide the repeat score of each item among its events; the shares of an item sum to 1.

        An event's share is its part of the item's weight under each half-life and window, averaged
        over those whose logarithms raise the score, by their weights in it. If a score were only
        the sum of these logarithms, with weights of at least 0, these would be the Aumann-Shapley
        values of the events. Events that the query does not read have no meaning.
        """
        weights = _weigh_events(batch, queries, self.clock).weights.clamp(min=_LEAST_WEIGHT)
        raised = self.weights(users)[:, :_SHARES].clamp(min=_LEAST_WEIGHT)
        raised = raised / raised.sum(-1, keepdim=True)
        is_same = batch.rows.unsqueeze(2) == batch.rows.unsqueeze(1)
        of_items = weights @ is_same.float()[queries.sample]
        divided: Tensor = (raised.unsqueeze(-1) * weights / of_items).sum(1)
        return divided


class DescribedItems(NamedTuple):
    """The features of the items of histories, once per query and item.

    Attributes:
        query: the query of each item, ascending.
        position: of the item's last event that the query reads, in the query's history.
        is_item: where shapes are fixed, each position of each query is described; whether it is
            that of an item's last event. None where no others are described.
    """

    query: Int64[Tensor, " items"]
    position: Int64[Tensor, " items"]
    features: Float[Tensor, "items features"]
    is_item: Bool[Tensor, " items"] | None = None


@torch.no_grad()
def describe_items(
    batch: SequenceBatch,
    queries: HistoryQueries,
    popularity: PopularityFeatures,
    clock: LocalClock,
) -> DescribedItems:
    """Compute the features of the items of each query's history.

    Only the weights of events, which are summed by item, are computed per event.

    Args:
        popularity: for each query.
        clock: that of the users, from which phases are read.
    """
    sample, last = queries.sample, queries.last.unsqueeze(1)
    length = batch.rows.shape[1]
    positions = torch.arange(length, device=last.device)
    is_same = batch.rows.unsqueeze(2) == batch.rows.unsqueeze(1)
    # Positions as floats: their minimum is six times as fast as that of integers.
    next_same = torch.where(is_same.triu(1), positions.float(), length).amin(-1)
    is_last = (positions <= last) & (next_same[sample] > last) & (batch.rows[sample] > 0)
    is_item: Tensor | None = None
    if accelerators.needs_fixed_shapes(is_last.device):
        is_item = is_last.flatten()
        query = torch.arange(len(last), device=last.device).repeat_interleave(
            length, output_size=is_last.numel()
        )
        position = positions.repeat(len(last))
    else:
        query, position = is_last.nonzero(as_tuple=True)
    of_sample = sample[query]

    weights, days, baskets, since = _weigh_events(batch, queries, clock)
    first = _find_first(is_same)
    sums = torch.zeros_like(weights)
    sums.scatter_add_(2, first[sample].unsqueeze(1).expand_as(weights), weights)
    sums = sums[query, :, first[of_sample, position]]
    totals = weights.sum(-1).add_(1e-9)[query]
    shares = (sums + 1e-9).div_(totals).log_().clamp_(min=_LEAST_LOG_SHARE)

    events = sums[:, HALF_LIVES.index(float("inf"))]
    is_single = (events < 1.5).float()
    # No time has passed between the events of an item that has one.
    span = (batch.times - batch.times.gather(1, first)).float()
    interval = span[of_sample, position] / (events - 1).clamp_(min=1)
    days, baskets, since = (one[query, position] for one in (days, baskets, since))
    ratio = (days / (interval + 1)).clamp_(max=5) * (1 - is_single)
    logs = torch.stack((days, baskets, interval), dim=1).log1p_()
    intervals = torch.cat((logs, ratio.unsqueeze(1), is_single.unsqueeze(1)), dim=1).div_(3)

    angles = since.unsqueeze(1) * _copy_constants(since.device).frequencies
    popular = popularity.select(query).of_items(batch.rows[of_sample, position])
    popular[:, :-2] -= popular[:, -2:-1]
    features = torch.cat((shares, intervals, angles.cos(), angles.sin(), popular.div_(5)), dim=1)
    return DescribedItems(query, position, features, is_item)


class _WeighedEvents(NamedTuple):
    """The events of each query's history, and how far they are from the query.

    Attributes:
        weights: at each half-life and in each window, relative to the event that weighs most; 0 for
            events that the query does not read.
        days: from the event to the query.
        baskets: the same.
        since: days from the event to the query by the local clock.
    """

    weights: Float[Tensor, "queries shares len"]
    days: Float[Tensor, "queries len"]
    baskets: Float[Tensor, "queries len"]
    since: Float[Tensor, "queries len"]


def _weigh_events(
    batch: SequenceBatch, queries: HistoryQueries, clock: LocalClock
) -> _WeighedEvents:
    """Weigh the events of each query's history at every half-life and in every window."""
    sample, last = queries.sample, queries.last.unsqueeze(1)
    days = (queries.times.unsqueeze(1) - batch.times[sample]).clamp_(min=0).float()
    baskets = number_baskets(batch.times).float()[sample]
    baskets = (baskets.gather(1, last) - baskets).clamp_(min=0)
    constants = _copy_constants(days.device)
    ages = days.unsqueeze(1) / constants.half_lives
    ages_in_baskets = baskets.unsqueeze(1) / constants.half_lives_in_baskets
    local, local_query = _read_clock(clock, batch, queries)
    since = (local_query.unsqueeze(1) - local[sample]).float()
    is_other_kind = is_weekend(local)[sample] != is_weekend(local_query).unsqueeze(1)
    ages_in_phase = _measure_phases(since, is_other_kind).add_(ages[:, _STARTS_AT, None])
    all_ages = torch.cat((ages, ages_in_baskets, ages_in_phase), dim=1)
    is_read = torch.arange(batch.rows.shape[1], device=last.device) <= last
    all_ages.masked_fill_(~is_read.unsqueeze(1), math.inf)
    # Relative to the event that weighs most: after years, all weights would vanish.
    weights = all_ages.sub_(all_ages.amin(-1, keepdim=True)).neg_().exp2_()
    return _WeighedEvents(weights, days, baskets, since)


def _read_clock(
    clock: LocalClock, batch: SequenceBatch, queries: HistoryQueries
) -> tuple[Float64[Tensor, "batch len"], Float64[Tensor, " queries"]]:
    """Read the local clock at the events and at the queries, in days."""
    of_events = _find_instants(batch.times, batch.origins.unsqueeze(1))
    return clock(of_events), clock(queries.find_instants(batch))


def _find_instants(
    days: Float64[Tensor, "*times"], origins: Int64[Tensor, "*origins"]
) -> Int64[Tensor, "*times"]:
    """Find the instants, epoch microseconds, of days since origins that broadcast to them."""
    return (days * MICROSECONDS_PER_DAY).round().long() + origins


def _measure_phases(
    since: Float[Tensor, "queries len"], is_other_kind: Bool[Tensor, "queries len"]
) -> Float[Tensor, "queries windows len"]:
    """Measure how far events are from the query in phase, in half-lives, for each window.

    An event weighs as in a von Mises distribution over the day and one over the week.

    Args:
        since: days from the event to the query, by the local clock.
    """
    constants = _copy_constants(since.device)
    angles = since.unsqueeze(1) * constants.frequencies_of_windows
    ages = constants.concentrations @ (1 - angles.cos()).div_(math.log(2))
    return ages.add_(is_other_kind.unsqueeze(1) * constants.other_kind_of_day)


def _find_first(is_same: Bool[Tensor, "batch len len"]) -> Int64[Tensor, "batch len"]:
    """Find the position of the first event of each event's item."""
    return is_same.byte().argmax(-1)
