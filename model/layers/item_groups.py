"""The group membership of catalog items."""

from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn


@final
class ItemGroups(nn.Module):
    """Group membership of items, a buffer that the trainer sets once before training.

    Without `set_membership`, no item belongs to a group.

    Attributes:
        membership: 1 where the item of a catalog row belongs to a group, else 0; an item may
            belong to several. Row 0, padding, belongs to none.
    """

    membership: Tensor

    def __init__(self, *, items: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.register_buffer("membership", torch.zeros(items + 1, groups))

    def set_membership(self, membership: Float[Tensor, "rows groups"]) -> None:
        """Set the membership of every row."""
        self.membership.copy_(membership)

    def forward(self, rows: Int64[Tensor, "*shape"]) -> Float[Tensor, "*shape groups"]:
        """Look up the membership of some rows."""
        return self.membership[rows]

    if TYPE_CHECKING:

        def __call__(self, rows: Tensor) -> Tensor: ...  # noqa: D102
