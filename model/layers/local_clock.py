"""The local clock of a time zone."""

from typing import final

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor, nn

from model.clock import MICROSECONDS_PER_DAY
from model.time_zone import find_offsets

_EPOCH_WEEKDAY = 3
"""1970-01-01 was a Thursday; Monday is 0."""
_SATURDAY = 5


@final
class LocalClock(nn.Module):
    """Converts instants to what the local clock of a time zone shows, daylight saving included.

    Args:
        time_zone: a name of the IANA database.

    Shape: instants (*) in epoch microseconds -> days (*) since 1970-01-01 00:00 of the local clock
    """

    changes: Tensor
    offsets: Tensor

    def __init__(self, time_zone: str = "UTC") -> None:
        super().__init__()
        zone = find_offsets(time_zone)
        self.register_buffer("changes", torch.from_numpy(zone.changes), persistent=False)
        self.register_buffer("offsets", torch.from_numpy(zone.offsets), persistent=False)

    def forward(self, instants: Int64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
        """Convert instants to local days."""
        local = instants + self.offsets[torch.searchsorted(self.changes, instants, right=True)]
        return local.double() / MICROSECONDS_PER_DAY


def is_weekend(days: Float64[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
    """Return whether days since 1970-01-01, of a local clock, are a Saturday or a Sunday."""
    return (days.floor() + _EPOCH_WEEKDAY).remainder(7) >= _SATURDAY
