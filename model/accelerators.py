"""What differs on an accelerator, which runs behind the program that gives it work.

Whatever waits for the accelerator, or for a value of it, lets it run dry.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def needs_fixed_shapes(device: torch.device) -> bool:
    """Return whether operations on a device should mask rather than select.

    A selection has as many elements as values say, and an accelerator would have to finish all
    earlier work to report that number. So operations that select on a CPU compute everything on
    other devices, and mask what is not meant. The results are the same.
    """
    return device.type != "cpu"


def copy_to(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device, if it is elsewhere; the program does not wait for the copy."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        # Only memory that is not paged out is copied while the program goes on.
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def keep_precision(device: torch.device) -> AbstractContextManager[object]:
    """Compute in the precision of the arguments in a block, where autocast chose a lower one."""
    if torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
