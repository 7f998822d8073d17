"""The device of a run."""

import torch

from model.errors import KairosError

AUTO = "auto"
"""The name that stands for a GPU where there is one, and for the CPU where there is none."""


def parse_device(name: str, *, local_rank: int = 0) -> torch.device:
    """Parse the name of a device: auto, cpu, cuda, or cuda with a number.

    Args:
        local_rank: the number of this process on its machine, which has the GPU of that number,
            unless the name has one.

    Raises:
        KairosError: if torch cannot use the device on this machine.
    """
    if name == AUTO:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and local_rank:
        name = f"cuda:{local_rank}"
    try:
        # That of a tensor has a number, as has that of a model's weights: cuda is cuda:0 there.
        device = torch.empty(0, device=torch.device(name)).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise KairosError(
            f"a device is one that torch can use on this machine, but {name!r} is not; use cpu or "
            "auto, or cuda with a GPU and a torch built for it"
        ) from error
    return device
