"""Kairos in a notebook: fit on a frame of events, recommend, see the attention, publish.

`fit` and `load` return a `Model`. Importing this package imports nothing else: torch takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kairos.fitting import fit
    from kairos.loading import load
    from kairos.model import Model

__all__ = ["Model", "fit", "load"]

_MODULES = {"Model": "kairos.model", "fit": "kairos.fitting", "load": "kairos.loading"}


def __getattr__(name: str) -> Any:
    """Import what is used, when it is."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return __all__
