"""The work that PyTorch does, counted."""

from collections.abc import Callable
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode


class CountOperations(TorchDispatchMode):
    """Counts the operations of PyTorch, views included."""

    number = 0

    def __torch_dispatch__(
        self, operation: Callable[..., Any], _: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        self.number += 1
        return operation(*arguments, **(named or {}))
