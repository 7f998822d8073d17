"""Item biases from event counts, for encoders that are fitted by counting."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor


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
