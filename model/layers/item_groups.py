"""Which groups the items of a catalogue belong to."""

from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@final
class ItemGroups(nn.Module):
    """Marks of items, told by the trainer before it starts and kept beside the weights.

    Until told, no item belongs to a group.

    Attributes:
        marks: 1 where the item of a catalogue row belongs to a group, else 0; an item may belong to
            several. Row 0, padding, belongs to none.
    """

    marks: Tensor

    def __init__(self, *, items: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.register_buffer("marks", torch.zeros(items + 1, groups))

    def tell(self, marks: Float[Tensor, "rows groups"]) -> None:
        """Set the marks of every row."""
        self.marks.copy_(marks)

    def forward(self, rows: Int64[Tensor, "*shape"]) -> Float[Tensor, "*shape groups"]:
        """The marks of some rows."""
        return self.marks[rows]

    if TYPE_CHECKING:

        def __call__(self, rows: Tensor) -> Tensor: ...  # noqa: D102
