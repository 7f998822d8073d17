"""A shard: the events of some users, as columns in one safetensors file.

The bytes follow from the events alone, and columns are mapped into memory without a copy.
"""

import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from model.errors import EventSourceError
from training.data.sources import PREPARED_FORMAT
from training.preparation.folder import Folder

FORMAT = f"{PREPARED_FORMAT}1"

_HEADER_SIZE = 8
_DTYPES = {"I64": np.int64, "I32": np.int32, "I16": np.int16, "U8": np.uint8}


@final
@dataclass(frozen=True, eq=False)
class Shard:
    """The events of some users, in the order of their first events in the source.

    The events of a user are in the order of `model.history.sort_events`, equal ones in that of the
    source.

    Attributes:
        items: per event, index into the table of items.
        times: per event, epoch microseconds.
        actions: per event, index into the list of actions.
        positions: per event, its place in the source: ascending in the order of the source.
        offsets: user `u` owns events `offsets[u]` up to `offsets[u + 1]`.
        names: the ids of all users, in UTF-8, one after the other.
        name_offsets: that of user `u` is `names[name_offsets[u]:name_offsets[u + 1]]`.
    """

    items: NDArray[np.int32]
    times: NDArray[np.int64]
    actions: NDArray[np.int16]
    positions: NDArray[np.int64]
    offsets: NDArray[np.int64]
    names: NDArray[np.uint8]
    name_offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def users(self) -> int:
        """The number of users."""
        return len(self.offsets) - 1

    def list_users(self) -> list[str]:
        """List the ids of the users."""
        content, ends = self.names.tobytes(), self.name_offsets.tolist()
        return [content[begin:end].decode() for begin, end in pairwise(ends)]

    def number_users(self) -> NDArray[np.int64]:
        """Return the index of the user of each event."""
        return np.repeat(np.arange(self.users), np.diff(self.offsets))

    def encode(self) -> bytes:
        """Encode the shard as a file."""
        columns = {name: np.ascontiguousarray(column) for name, column in vars(self).items()}
        return save(columns, metadata={"format": FORMAT})

    @classmethod
    def open(cls, folder: Folder, name: str, sha256: str) -> "Shard":
        """Open a shard: mapped into memory from a file of this machine, else read.

        Args:
            sha256: that of the manifest; what is mapped is checked by its length alone.

        Raises:
            EventSourceError: if the file is missing, or is not the shard.
        """
        path = folder.path(name)
        try:
            content = (
                np.frombuffer(read_verified(folder, name, sha256), dtype=np.uint8)
                if path is None
                else np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
            )
            return cls(**_read_columns(content))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise EventSourceError(
                f"a shard is a file of {FORMAT!r}, but {folder.location}/{name} is not: {error}; "
                "prepare the events again"
            ) from error


def read_verified(folder: Folder, name: str, sha256: str) -> bytes:
    """Read a whole file of prepared events.

    Raises:
        EventSourceError: if it has not the digest of the manifest.
    """
    content = folder.read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EventSourceError(
            f"files of prepared events are those of the manifest, but {folder.location}/{name} has "
            f"SHA-256 {found} instead of {sha256}; prepare the events again"
        )
    return content


def _read_columns(content: NDArray[np.uint8]) -> dict[str, Any]:
    """Find the columns in the content of a safetensors file; its own reader would copy them."""
    begin = _HEADER_SIZE + int(content[:_HEADER_SIZE].view(np.uint64)[0])
    header = json.loads(content[_HEADER_SIZE:begin].tobytes())
    if header.pop("__metadata__", {}).get("format") != FORMAT:
        raise ValueError("its format is another one")
    if len(content) != begin + max(entry["data_offsets"][1] for entry in header.values()):
        raise ValueError(f"it has another length, of {len(content):,} bytes")
    columns = {}
    for name, entry in header.items():
        first, last = (begin + offset for offset in entry["data_offsets"])
        columns[name] = content[first:last].view(_DTYPES[entry["dtype"]])
    return columns
