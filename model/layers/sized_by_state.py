"""Modules that store as much as they were given, and as much as a loaded state holds."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


class SizedByState(nn.Module, ABC):
    """A module with buffers of one dimension whose sizes a loaded state decides.

    Without `store`, a buffer of offsets has one entry, 0, and any other none.

    Attributes:
        stored: the data type of each such buffer; the one named "offsets" divides the others.
    """

    stored: ClassVar[dict[str, torch.dtype]]

    def __init__(self) -> None:
        super().__init__()
        for name, dtype in self.stored.items():
            self.register_buffer(name, torch.zeros(int(name == "offsets"), dtype=dtype))

    @abstractmethod
    def forget_derived(self) -> None:
        """Forget what was derived from the buffers."""

    @abstractmethod
    def describe_misfit(self, arrays: dict[str, Tensor]) -> str | None:
        """Describe how the arrays of a state do not fit each other; None if they do."""

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        self.forget_derived()
        arrays = {
            name: state_dict[prefix + name] for name in self.stored if prefix + name in state_dict
        }
        if len(arrays) == len(self.stored):
            if any(array.dim() != 1 for array in arrays.values()):
                misfit: str | None = "its arrays must have one dimension"
            elif any(array.dtype != getattr(self, name).dtype for name, array in arrays.items()):
                types = ", ".join(f"{name} {getattr(self, name).dtype}" for name in arrays)
                misfit = f"its arrays must have the types {types}"
            else:
                misfit = self.describe_misfit(arrays)
            if misfit is not None:
                error_msgs.append(f"{prefix[:-1]} does not fit itself: {misfit}; export it again")
                return
            for name, array in arrays.items():
                setattr(self, name, getattr(self, name).new_empty(array.shape))
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


def are_offsets(offsets: Tensor, entries: int) -> bool:
    """Return whether offsets divide so many entries: from 0 up to their number, in order."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != entries:
        return False
    return bool((offsets.diff() >= 0).all())
