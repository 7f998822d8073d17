"""TransRec: the next item is one learned translation away from the last."""

from typing import Literal, final

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout


class TransRecConfig(Config):
    """A translation from the last item to the next."""

    kind: Literal["transrec"] = "transrec"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the last item's vector; the paper has none."""
    max_history: PositiveInt = 200
    """Events of a history in use; only the last one has an effect."""

    def build(self, *, items: int = 0, actions: int = 0) -> "TransRec":  # noqa: ARG002
        """Build the module."""
        return TransRec(dim=self.dim, dropout=self.dropout)


@final
class TransRec(SequenceEncoder):
    """Adds one translation to the last item's vector; items score by their distance to the sum.

    The score of item j after item i is `beta_j - |gamma_i + t - gamma_j|^2`, with item vectors in
    the unit ball. The encoder uses the last item only: no earlier events and no times.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: He, Kang and McAuley 2017, "Translation-based Recommendation", eq. 4, squared L2.
    DIFFERS(paper): one translation t for all users, without the user's own t_u, so that users
        unknown in training are served alike.
    """

    similarity = "l2"
    in_unit_ball = True

    def __init__(self, *, dim: int, dropout: float) -> None:
        super().__init__()
        self.dim = dim
        self.dropout = Dropout(dropout)
        self.translation = nn.Parameter(torch.zeros(dim))

    def encode_positions(
        self,
        batch: SequenceBatch,  # noqa: ARG002
        items: Float[Tensor, "batch len dim"],
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        return PositionOutputs(self.dropout(items) + self.translation)

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector after the last event of each history."""
        last = select_positions(items, batch.lengths - 1).squeeze(1)
        return EncoderOutput(self.dropout(last) + self.translation)
