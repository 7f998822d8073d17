"""What most often came next after the last item."""

from typing import ClassVar, Literal, final

import torch
from jaxtyping import Float, Int64
from pydantic import PositiveInt
from torch import Tensor

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Counted, Encoded, SequenceEncoder
from model.layers.item_counts import popularity_bias


class MarkovConfig(Config):
    """How many successors of an item are remembered."""

    kind: Literal["markov"] = "markov"
    successors: PositiveInt = 200
    """Per item, the most frequent ones."""
    dim: Literal[1] = 1
    max_history: PositiveInt = 200
    """Events looked at; only the last one matters."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Markov":  # noqa: ARG002
        """The module this describes, for a catalogue of `items`."""
        return Markov(successors=self.successors, items=items)


@final
class Markov(SequenceEncoder):
    """Items by how often they came right after the last one, then by popularity.

    A successor's count is mass that the encoder points at it (`Encoded.repeats`), so serving it
    needs no table of items by items. Successors beyond the `successors` most frequent are ranked
    by popularity alone.

    Shape: items (batch, len, 1) -> user (batch, 1), which is zero, and `successors` pointed rows
    """

    places_items: ClassVar[bool] = False

    following: Tensor
    log_counts: Tensor

    def __init__(self, *, successors: int, items: int) -> None:
        super().__init__()
        self.dim, self.catalogue_size = 1, items
        shape = (items + 1, successors)
        self.register_buffer("following", torch.zeros(shape, dtype=torch.int64))
        self.register_buffer("log_counts", torch.full(shape, float("-inf")))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """The successors of the last item of each history."""
        last = batch.rows.gather(1, batch.lengths[:, None] - 1).squeeze(1)
        return Encoded(
            user=items.new_zeros(len(items), self.dim),
            repeats=self.log_counts[last],
            pointed_rows=self.following[last],
        )

    def count(
        self,
        rows: Int64[Tensor, " events"],
        times: Int64[Tensor, " events"],  # noqa: ARG002
        users: Int64[Tensor, " events"],
    ) -> Counted:
        """Count pairs of neighbours within each user's events."""
        together = users[1:] == users[:-1]
        pairs = torch.stack((rows[:-1][together], rows[1:][together]), dim=1)
        distinct, counts = torch.unique(pairs, dim=0, return_counts=True)
        # By item, the most frequent successor first: the second sort keeps the order of the first.
        order = counts.argsort(descending=True, stable=True)
        order = order[distinct[order, 0].argsort(stable=True)]
        befores, afters, counts = distinct[order, 0], distinct[order, 1], counts[order]
        places = torch.arange(len(befores)) - torch.searchsorted(befores, befores)
        kept = places < self.following.shape[1]
        self.following[befores[kept], places[kept]] = afters[kept]
        self.log_counts[befores[kept], places[kept]] = counts[kept].double().log().float()
        return Counted(popularity_bias(rows, items=self.catalogue_size))
