"""Baskets: the events of one user at one instant, read as a set."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from model.batch import SequenceBatch

Baskets = Int64[Tensor, "batch len"]
"""The basket of each event, numbered from 0 within its history."""


def number_baskets(times: Float64[Tensor, "batch len"]) -> Baskets:
    """Assign events to baskets: equal times are next to each other."""
    begins = times != times.roll(1, dims=1)
    return begins.cumsum(1) - begins[:, :1].long()


def share_query_times(batch: SequenceBatch, baskets: Baskets) -> SequenceBatch:
    """Give every event of a basket the query time of its last one."""
    lasts = _search(baskets, right=True) - 1
    lasts = torch.minimum(lasts, batch.lengths.unsqueeze(1) - 1)
    return batch._replace(
        query_times=batch.query_times.gather(1, lasts),
        query_given=batch.query_given.gather(1, lasts),
    )


def average_baskets(
    content: Float[Tensor, "batch len dim"], baskets: Baskets
) -> Float[Tensor, "batch len dim"]:
    """Average, at every position, the events of its basket up to it."""
    firsts = _search(baskets)
    positions = torch.arange(content.shape[1], device=content.device)
    sums = F.pad(content.cumsum(1), (0, 0, 1, 0))
    before = sums.gather(1, firsts.unsqueeze(-1).expand_as(content))
    return (sums[:, 1:] - before) / (positions - firsts + 1).unsqueeze(-1)


def _search(baskets: Baskets, *, right: bool = False) -> Int64[Tensor, "batch len"]:
    """Find the first position of each event's basket, or of the next basket."""
    if torch.compiler.is_exporting():
        # ONNX cannot search; a program reads one history, so all pairs are few.
        events, others = baskets.unsqueeze(2), baskets.unsqueeze(1)
        return (others <= events if right else others < events).sum(-1)
    return torch.searchsorted(baskets, baskets, right=right)
