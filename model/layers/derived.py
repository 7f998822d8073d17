"""Tensors that follow from a module's parameters, computed once where these no longer change."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

T = TypeVar("T")


class DerivingModule(nn.Module):
    """A module that derives tensors from its parameters.

    In training they are derived in every pass. After `freeze`, the first pass keeps them, until the
    module as a whole trains, moves or loads other parameters.
    """

    _derived: dict[str, Any] | None = None

    def derive(self, name: str, compute: Callable[[], T]) -> T:
        """Compute tensors from the parameters, or return those that were kept under this name."""
        kept = self._derived
        if kept is None:
            return compute()
        if name not in kept:
            # Outside inference mode, so that they serve any later pass.
            with torch.inference_mode(mode=False), torch.no_grad():
                kept[name] = compute()
        derived: T = kept[name]
        return derived

    def train(self, mode: bool = True) -> "DerivingModule":
        """Set the mode; training forgets what was kept."""
        if mode:
            self._derived = None
        return super().train(mode)

    def _apply(self, *args: Any, **kwargs: Any) -> "DerivingModule":
        self._derived = None
        applied: DerivingModule = super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        return applied

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._derived = None
        super()._load_from_state_dict(*args, **kwargs)


def freeze(module: nn.Module) -> None:
    """Keep what a module and its parts derive: their parameters must not change from now on.

    Raises:
        ValueError: if the module trains.
    """
    if module.training:
        raise ValueError(
            "what a module derives is kept once its parameters no longer change, but this one is "
            "in training mode; call eval() before"
        )
    for part in module.modules():
        if isinstance(part, DerivingModule) and part._derived is None:
            part._derived = {}
