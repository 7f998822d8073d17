"""What counting says of items, as scores that leave room for stronger evidence."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor


def popularity_bias(
    rows: Int64[Tensor, " events"], *, items: int, at_most: float = 0.5
) -> Float[Tensor, " rows"]:
    """The logarithm of a mass of at most `at_most`, rising with an item's number of events.

    Items are told apart by the order of their counts alone, and equal counts stay equal. Whatever
    else speaks for an item is added as the mass of whole events, each of mass one, so that
    popularity decides only between items with equally many.
    """
    counts = torch.bincount(rows, minlength=items + 1)[1:]
    distinct, places = torch.unique(counts, return_inverse=True)
    masses = at_most * (places + 1).double() / len(distinct)
    return torch.cat((torch.zeros(1), masses.log().float()))
