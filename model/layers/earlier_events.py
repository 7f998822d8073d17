"""Keys and values of events, which do not depend on a query time."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class KeyValues(NamedTuple):
    """Keys and values per event: content first, then the basis at the event's own time.

    They do not depend on a query time, so one history can be queried at many times.
    """

    keys: Float[Tensor, "batch heads len width"]
    values: Float[Tensor, "batch heads len width"]


class KVCache(NamedTuple):
    """Keys and values of events for one block; `modulation` holds the values of its intensities."""

    attention: KeyValues
    modulation: Float[Tensor, "batch heads len head_dim"] | None

    def append(self, event: "KVCache") -> "KVCache":
        """Append one event to the cache of a single history, once per row of `event`."""
        keys, values = (
            _append_event(*parts) for parts in zip(self.attention, event.attention, strict=True)
        )
        if self.modulation is None or event.modulation is None:
            return KVCache(KeyValues(keys, values), None)
        return KVCache(KeyValues(keys, values), _append_event(self.modulation, event.modulation))


class EarlierEvents(NamedTuple):
    """Keys and values of all events of one history but the last, which no query time changes.

    Attributes:
        caches: of every block, first to last.
    """

    caches: tuple[KVCache, ...]

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        tensors = [
            part
            for cache in self.caches
            for part in (*cache.attention, cache.modulation)
            if part is not None
        ]
        return sum(part.numel() * part.element_size() for part in tensors)


def _append_event(history: Tensor, event: Tensor) -> Tensor:
    """Append: 1, heads, len, w and queries, heads, 1, w -> queries, heads, len + 1, w."""
    return torch.cat((history.expand(len(event), -1, -1, -1), event), dim=2)
