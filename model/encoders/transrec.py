"""TransRec: the next item lies one learned step away from the last."""

from typing import Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.time_aware_block import at_positions


class TransRecConfig(Config):
    """A translation from the last item to the next."""

    kind: Literal["transrec"] = "transrec"
    dim: PositiveInt = 64
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of the last item's vector; the paper has none."""
    max_history: PositiveInt = 200
    """Events looked at; only the last one matters."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TransRec":  # noqa: ARG002
        """The module this describes."""
        return TransRec(dim=self.dim, dropout=self.dropout)


@final
class TransRec(SequenceEncoder):
    """Steps from the last item by one translation; items score by how near they are to there.

    The score of item j after item i is `beta_j - |gamma_i + t - gamma_j|^2`, items within the unit
    ball. It reads the last item alone: neither what came before, nor any time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: He, Kang and McAuley 2017, "Translation-based Recommendation", eq. 4, squared L2.
    DIFFERS(paper): the translation is everyone's, t, without the user's own t_u, so that users
        unknown at training are answered alike.
    """

    similarity = "l2"
    in_unit_ball = True

    def __init__(self, *, dim: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = nn.Dropout(dropout)
        self.translation = nn.Parameter(torch.zeros(dim))

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:  # noqa: ARG002
        """User vectors at every position; what follows a position never reaches it."""
        return States(self.dropout(items) + self.translation)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history."""
        last = at_positions(items, batch.lengths - 1).squeeze(1)
        return Encoded(self.dropout(last) + self.translation)
