"""The pointers of the bundle store, each read by itself."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from model.errors import BundleError
from model.store.last_known_good import LastKnownGood
from model.store.mirrored import MirroredStore
from model.store.store import CURRENT, TRAFFIC, BundleStore
from model.store.traffic import Traffic

Pointer = Literal["current", "challenger", "shadow", "traffic", "mirror"]
POINTERS: tuple[Pointer, ...] = get_args(Pointer)
"""What a store points to; `traffic` is the file that names the challenger and the shadow, and
`mirror` the object store whose pointers are copied here, if there is one."""


@dataclass(frozen=True, slots=True)
class Pointers:
    """What the files of a store name at one moment.

    Attributes:
        current: the current version; None if no version is named, or if that cannot be read.
        traffic: empty if it cannot be read.
        faults: the files that cannot be read, each with the reason.
    """

    current: str | None
    traffic: Traffic
    last_known_good: LastKnownGood
    faults: dict[Pointer, str] = field(default_factory=dict)


def read_pointers(store: BundleStore) -> Pointers:
    """Read every pointer; a file that cannot be read is a fault of its own. Blocks."""
    faults: dict[Pointer, str] = {}
    current, traffic = None, Traffic()
    try:
        current = store.read_current()
    except OSError as error:
        faults["current"] = f"{CURRENT} cannot be read: {error.strerror}"
    try:
        traffic = store.read_traffic()
    except OSError as error:
        faults["traffic"] = f"{TRAFFIC} cannot be read: {error.strerror}"
    except BundleError as error:
        faults["traffic"] = str(error)
    if isinstance(store, MirroredStore) and store.fault is not None:
        faults["mirror"] = store.fault
    return Pointers(current, traffic, store.read_last_known_good(), faults)
