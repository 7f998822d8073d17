"""Item biases from event counts, for encoders that are fitted by counting."""

from typing import Annotated

import torch
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor

from model.clock import MICROSECONDS_PER_DAY

WindowDays = Annotated[float, Field(ge=1e-5, le=100_000)]
"""Days before an instant whose events count: from about a second to 274 years."""

_TIE_BREAK = 1e-6
"""Most that the popularity of all time adds to a share: it orders the items without another one."""


def compute_popularity_bias(
    rows: Int64[Tensor, " events"], *, items: int, at_most: float = 0.5
) -> Float[Tensor, " rows"]:
    """Return a log-weight per catalog row that grows with the item's number of events.

    Weights are spaced evenly over the ranks of the distinct counts, the largest being `at_most`.
    Other evidence for an item is added as events of weight one each, so with `at_most` below one
    popularity only breaks ties between items of equal evidence.

    Args:
        rows: catalog row of every event.
        items: catalog size without the padding row.
        at_most: weight of the most popular item.
    """
    counts = torch.bincount(rows, minlength=items + 1)[1:]
    distinct, ranks = torch.unique(counts, return_inverse=True)
    weights = at_most * (ranks + 1).double() / len(distinct)
    return torch.cat((torch.zeros(1), weights.log().float()))


def compute_recent_popularity_bias(
    rows: Int64[Tensor, " events"],
    times: Int64[Tensor, " events"],
    *,
    items: int,
    weight: float,
    window_days: float | None,
) -> Float[Tensor, " rows"]:
    """Return the logarithm of every row's weighted share of the latest events.

    The popularity of all time breaks ties.

    Args:
        rows: catalog row of every event.
        times: epoch microseconds.
        items: catalog size without the padding row.
        weight: of the share.
        window_days: days before the last event whose events count; None for all.
    """
    is_recent = torch.ones_like(times, dtype=torch.bool)
    if window_days is not None:
        is_recent = times >= times.max() + 1 - round(window_days * MICROSECONDS_PER_DAY)
    counts = torch.bincount(rows[is_recent], minlength=items + 1).double()
    ties = compute_popularity_bias(rows, items=items, at_most=_TIE_BREAK)
    return (weight * counts / counts.sum() + ties.exp()).log().float()
