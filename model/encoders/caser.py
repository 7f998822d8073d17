"""Caser: convolutions over the item vectors of the last events."""

from typing import Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from model.batch import SequenceBatch, select_positions
from model.config import Config
from model.interfaces import EncoderOutput, PositionOutputs, SequenceEncoder
from model.layers.dropout import Dropout


class CaserConfig(Config):
    """Convolutions over the vectors of the last items."""

    kind: Literal["caser"] = "caser"
    dim: PositiveInt = 64
    """Width of item and user vectors."""
    window: PositiveInt = 5
    """Items in the window: the most recent ones."""
    vertical: PositiveInt = 4
    """Filters that compute weighted sums of the items in the window."""
    horizontal: PositiveInt = 16
    """Filters for every number of successive items, from one to `window`."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Dropout of the filters' outputs."""
    max_history: PositiveInt = 200
    """Events of a history in use; only the last `window` have an effect."""

    def build(self, *, items: int = 0, actions: int = 0) -> "Caser":  # noqa: ARG002
        """Build the module."""
        return Caser(**self.model_dump(exclude={"kind", "max_history"}))


@final
class Caser(SequenceEncoder):
    """Convolves the last items, stacked as an image of one row per item, by two kinds of filters.

    Vertical filters are weighted sums of the rows; horizontal filters match patterns in successive
    rows anywhere in the image, followed by max pooling. The image is padded with zeros before the
    first event. The encoder uses the order of the items only: neither event times nor the query
    time.

    Shape: items (batch, len, dim) -> user (batch, dim)

    Paper: Tang and Wang 2018, "Personalized Top-N Sequential Recommendation via Convolutional
        Sequence Embedding", eq. 3-9.
    DIFFERS(paper): no user embedding P_u, so that users unknown in training are served alike; items
        are scored by their input vectors, not by a second table.
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
        self.dropout = Dropout(dropout)
        self.out_proj = nn.Linear(vertical * dim + horizontal * window, dim)

    def encode_positions(
        self,
        batch: SequenceBatch,  # noqa: ARG002
        items: Float[Tensor, "batch len dim"],
    ) -> PositionOutputs:
        """Compute the user vector at every position, from the events up to it."""
        return PositionOutputs(self._convolve(F.pad(items, (0, 0, self.window - 1, 0))))

    def forward(self, batch: SequenceBatch, items: Float[Tensor, "batch len dim"]) -> EncoderOutput:
        """Compute the user vector after the last event of each history."""
        padded = F.pad(items, (0, 0, self.window - 1, 0))
        images = padded.unfold(1, self.window, 1)
        last = select_positions(images, batch.lengths - 1).squeeze(1)
        return EncoderOutput(self._convolve(last.transpose(1, 2)).squeeze(1))

    def _convolve(self, rows: Tensor) -> Tensor:
        """Compute one user vector per image, an image being any `window` successive rows."""
        # The rows of each image are the last axis: batch, images, dim, window.
        images = rows.unfold(1, self.window, 1)
        vertical = self.vertical(images).flatten(2)
        horizontal = torch.cat([self._max_pool(rows, conv) for conv in self.horizontal], -1)
        user: Tensor = F.relu(
            self.out_proj(self.dropout(torch.cat((vertical, horizontal), dim=-1)))
        )
        return user

    def _max_pool(self, rows: Tensor, convolution: nn.Module) -> Tensor:
        """Compute the maximum of a horizontal filter within every image."""
        # Images overlap, so every filter is applied once to all rows and pooled per image.
        activations = F.relu(convolution(rows.transpose(1, 2)))
        count = rows.shape[1] - self.window + 1
        pooled = activations.unfold(-1, activations.shape[-1] - count + 1, 1).amax(-1)
        return pooled.transpose(1, 2)
