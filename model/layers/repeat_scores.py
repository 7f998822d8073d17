"""Scores of the items of a history, for data where users return to them."""

from typing import NamedTuple, final

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor, nn

from model.batch import SequenceBatch, number_within_samples
from model.popularity import FEATURES, PopularityFeatures

HALF_LIVES = (7.0, 28.0, 112.0, 448.0, float("inf"))
"""Days after which an event of a history weighs half."""

HALF_LIVES_IN_BASKETS = (1.0, 4.0, 16.0)
"""Baskets after which an event of a history weighs half."""

_SHARES = len(HALF_LIVES) + len(HALF_LIVES_IN_BASKETS)
_INTERVALS = 5
_STARTS_AT = HALF_LIVES.index(112.0)
_LEAST_LOG_SHARE = -16.0
_HIDDEN = 24


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
    given: Float[Tensor, " queries"]

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
            given=batch.query_given.flatten()[positions].float(),
        )


@final
class RepeatScorer(nn.Module):
    """Scores each item of a history as a candidate to come again.

    The features of an item are the logarithms of its shares among the events of the history, which
    weigh half after so many days or baskets; the time and the number of baskets since its last
    event, the mean interval between its events and the ratio of both; and its popularity. The score
    is linear in them, with weights that the user vector shifts, plus a small perceptron and a bias
    per item. It starts as the log share at a half-life of 112 days.

    Shape: users (queries, dim) -> (queries, len), -inf except at an item's last event
    """

    def __init__(self, *, items: int, dim: int) -> None:
        super().__init__()
        features = _SHARES + _INTERVALS + FEATURES
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
        features, is_last = describe_items(batch, queries, popularity)
        scores = (features @ self.weights(users).unsqueeze(-1)).squeeze(-1) + self.level(users)
        scores = scores + self.out(self.activation(self.hidden(features))).squeeze(-1)
        scores = scores + self.item_bias[batch.rows[queries.sample]]
        masked: Tensor = scores.masked_fill(~is_last, float("-inf"))
        return masked


@torch.no_grad()
def describe_items(
    batch: SequenceBatch, queries: HistoryQueries, popularity: PopularityFeatures
) -> tuple[Tensor, Tensor]:
    """Compute the features of the items of each query's history.

    Returns:
        The features of each event's item (queries, len, features), and whether the event is the
        last one of its item that the query reads (queries, len).
    """
    rows, times = batch.rows, batch.times
    length = rows.shape[1]
    positions = torch.arange(length, device=rows.device)
    is_same = (rows[:, :, None] == rows[:, None, :]) & (rows > 0)[:, :, None]
    is_later = positions > positions[:, None]
    next_same = torch.where(is_same & is_later, positions, length).amin(-1)
    first_same = torch.where(is_same, positions, length - 1).amin(-1)
    sample, last = queries.sample, queries.last
    is_read = positions <= last[:, None]
    is_last = is_read & (next_same[sample] > last[:, None]) & (rows[sample] > 0)

    days = (queries.times[:, None] - times[sample]).clamp(min=0).float()
    starts_basket = torch.ones_like(times)
    starts_basket[:, 1:] = (times[:, 1:] != times[:, :-1]).double()
    basket = starts_basket.cumsum(1).float()
    baskets = (basket[sample, last][:, None] - basket[sample]).clamp(min=0)

    weights = torch.stack(
        [
            *(torch.exp2(-days / half_life) for half_life in HALF_LIVES),
            *(torch.exp2(-baskets / half_life) for half_life in HALF_LIVES_IN_BASKETS),
        ],
        dim=1,
    ).masked_fill(~is_read.unsqueeze(1), 0.0)
    sums = _sum_by_item(weights, is_same, sample)
    shares = ((sums + 1e-9) / (weights.sum(-1, keepdim=True) + 1e-9)).log()
    shares = shares.clamp(min=_LEAST_LOG_SHARE)

    events = sums[:, HALF_LIVES.index(float("inf"))]
    span = (times - times.gather(1, first_same)).float()[sample]
    is_repeated = events > 1.5
    interval = torch.where(is_repeated, span / (events - 1).clamp(min=1), 0.0)
    ratio = torch.where(is_repeated, (days / (interval + 1)).clamp(max=5), 0.0)
    intervals = torch.stack(
        [
            days.log1p() / 3,
            baskets.log1p() / 3,
            interval.log1p() / 3,
            ratio / 3,
            (~is_repeated).float() / 3,
        ],
        dim=1,
    )
    popular = popularity.of_items(rows[sample]).transpose(1, 2)
    of_all_time = popular[:, -2:-1]
    drift = torch.cat((popular[:, :-2] - of_all_time, of_all_time, popular[:, -1:]), dim=1) / 5
    return torch.cat((shares, intervals, drift), dim=1).transpose(1, 2), is_last


def _sum_by_item(
    weights: Float[Tensor, "queries kinds len"],
    is_same: Tensor,
    sample: Int64[Tensor, " queries"],
) -> Float[Tensor, "queries kinds len"]:
    """Sum the weights of the events of each event's item.

    One product per history: the queries of a history are put side by side, padded.
    """
    slots, most = number_within_samples(sample, len(is_same))
    padded = weights.new_zeros(len(is_same), most, *weights.shape[1:])
    padded[sample, slots] = weights
    sums = torch.bmm(padded.flatten(1, 2), is_same.to(weights.dtype))
    return sums.view_as(padded)[sample, slots]
