"""Caser: convolutions over the image that the vectors of the last items form."""

from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.config import Config
from model.interfaces import Encoded, SequenceEncoder, States
from model.layers.time_aware_block import at_positions


class CaserConfig(Config):
    """How many items the image holds, and how many filters read it each way."""

    kind: Literal["caser"] = "caser"
    dim: PositiveInt = 64
    window: PositiveInt = 5
    """Items of the image: the most recent ones."""
    vertical: PositiveInt = 4
    """Filters that weigh the items of the image."""
    horizontal: PositiveInt = 16
    """Filters for every number of successive items, from one to `window`."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    max_history: PositiveInt = 200
    """Events looked at; only the last `window` matter."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Caser":  # noqa: ARG002
        """The module this describes."""
        return Caser(**self.model_dump(exclude={"kind", "max_history"}))


@final
class Caser(SequenceEncoder):
    """Reads the last items as an image, one row per item, by two kinds of filters.

    Vertical filters weigh the rows; horizontal ones look for patterns in some successive rows,
    wherever in the image these stand. Before the first event the image is black. It reads the
    order of the items alone: not when they came, nor when it is asked.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Tang and Wang 2018, "Personalized Top-N Sequential Recommendation via Convolutional
        Sequence Embedding", eq. 3-9.
    DIFFERS(paper): without the vector of the user, P_u, so that users unknown at training are
        answered alike; items are scored by the vectors that they are read by.
    DIFFERS(paper): one target per position (T = 1), the next event, and no skips.
    """

    def __init__(
        self, *, dim: int, window: int, vertical: int, horizontal: int, dropout: float
    ) -> None:
        super().__init__()
        self.dim, self.window = dim, window
        self.vertical = nn.Linear(window, vertical)
        self.horizontal = nn.ModuleList(
            nn.Conv1d(dim, horizontal, height) for height in range(1, window + 1)
        )
        self.dropout = nn.Dropout(dropout)
        self.read_out = nn.Linear(vertical * dim + horizontal * window, dim)

    def states(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> States:  # noqa: ARG002
        """User vectors at every position; what follows a position never reaches it."""
        return States(self._read(F.pad(items, (0, 0, self.window - 1, 0))))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> Encoded:
        """User vectors after the last event of each history."""
        padded = F.pad(items, (0, 0, self.window - 1, 0))
        images = padded.unfold(1, self.window, 1)
        last = at_positions(images, batch.lengths - 1).squeeze(1)
        return Encoded(self._read(last.transpose(1, 2)).squeeze(1))

    def _read(self, rows: Tensor) -> Tensor:
        """One user vector per image of `window` successive rows, at every place one fits."""
        # The rows of each image stand last: batch, images, dim, window.
        images = rows.unfold(1, self.window, 1)
        weighed = self.vertical(images).flatten(2)
        found = torch.cat([self._best(rows, convolution) for convolution in self.horizontal], -1)
        user: Tensor = F.relu(self.read_out(self.dropout(torch.cat((weighed, found), dim=-1))))
        return user

    def _best(self, rows: Tensor, convolution: nn.Module) -> Tensor:
        """How well a pattern fits where it fits best in every image."""
        # Images overlap, so every pattern is looked for once, and compared within each image.
        fits = F.relu(convolution(rows.transpose(1, 2)))
        count = rows.shape[1] - self.window + 1
        return fits.unfold(-1, fits.shape[-1] - count + 1, 1).amax(-1).transpose(1, 2)
