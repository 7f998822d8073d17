"""The device of a run."""

import torch

from model.errors import KairosError


def parse_device(name: str) -> torch.device:
    """Parse the name of a device.

    Raises:
        KairosError: if torch cannot use the device on this machine.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise KairosError(
            f"a device is one that torch can use on this machine, but {name!r} is not; use cpu, or "
            "cuda with a GPU and a torch built for it"
        ) from error
    return device
