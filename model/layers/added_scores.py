"""Scores of single items that are added in log space to those of the whole catalog."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor


class AddedScores(NamedTuple):
    """Scores that are added to single items in log space: log(exp(score) + sum of exp(added)).

    Attributes:
        rows: catalog rows; an item may be listed more than once.
        log_scores: -inf to add nothing.
    """

    rows: Int64[Tensor, "queries added"]
    log_scores: Float[Tensor, "queries added"]

    @classmethod
    def join(cls, parts: Iterable["AddedScores | None"]) -> "AddedScores | None":
        """Put the scores of several parts side by side; None if no part adds any."""
        adding = [part for part in parts if part is not None]
        if len(adding) <= 1:
            return adding[0] if adding else None
        return cls(*(torch.cat(columns, dim=1) for columns in zip(*adding, strict=True)))
