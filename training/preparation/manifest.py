"""What a preparation reads, and what it has written."""

import hashlib
from typing import Self, final

from pydantic import Field, ValidationError

from model.config import Config
from model.errors import EventSourceError
from training.data.sources import PREPARED_MANIFEST, STARTED
from training.preparation.folder import Folder
from training.preparation.shard import FORMAT


@final
class Part(Config):
    """A part of a source: a file, or a range of keys of a database.

    Attributes:
        name: path or URL of the file; empty for a range.
        size: bytes of the file.
        stamp: what tells the file from another of its name; empty for a range.
        after: the key before the range.
        last: the last key of the range.
    """

    name: str = ""
    size: int = 0
    stamp: str = ""
    after: int = 0
    last: int = 0


@final
class Plan(Config):
    """What a preparation reads, and how it is divided.

    Attributes:
        source: the location, without a password.
        erasures: identifies the erased users that are left out; empty for files.
        stored: the number of events in the database; 0 for files.
    """

    source: str
    shards: int = Field(ge=1)
    erasures: str = ""
    stored: int = 0
    parts: tuple[Part, ...]

    def name_folder(self, first_new: int) -> str:
        """Return the name of the folder that a preparation writes into.

        One that was killed goes on in the folder of the same plan that continues from the same
        part: tasks then divide the same parts.

        Args:
            first_new: the number of the first part that no earlier preparation has read.
        """
        content = f"{FORMAT}\n{first_new}\n{self.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def continues(self, earlier: "Plan") -> bool:
        """Return whether this plan reads all that an earlier one has read, and then more."""
        known = len(earlier.parts)
        others = {"parts": (), "stored": 0}
        return (
            self.model_copy(update=others) == earlier.model_copy(update=others)
            and self.parts[:known] == earlier.parts
        )


@final
class Started(Config):
    """What a preparation reads that has not ended, for the next one to go on with."""

    format: str = FORMAT
    plan: Plan

    @classmethod
    def read(cls, folder: Folder) -> Plan | None:
        """Read the plan of an interrupted preparation of a directory; None if there is none."""
        if not folder.has(STARTED):
            return None
        try:
            started = cls.model_validate_json(folder.read(STARTED))
        except ValidationError:
            return None
        return started.plan if started.format == FORMAT else None


@final
class ShardEntry(Config):
    """A shard in the manifest; `name` is relative to the directory."""

    name: str
    sha256: str
    events: int
    users: int


@final
class Manifest(Config):
    """The contents of a directory of prepared events; written last, so one with it is complete.

    Attributes:
        folder: the name of the folder of what was written.
        items: the number of items.
        actions: the number of actions.
        vocabulary: the name of the table of items and actions: the `kind` and `text` of each, the
            number of its `events`, and the position of its `first`, by which it is sorted.
        vocabulary_sha256: of that table; its numbers are those of the shards.
        first_at: the earliest event, epoch microseconds.
        last_at: the latest event.
    """

    format: str = FORMAT
    plan: Plan
    folder: str
    events: int
    users: int
    items: int
    actions: int
    vocabulary: str
    vocabulary_sha256: str
    first_at: int
    last_at: int
    shards: tuple[ShardEntry, ...]

    @classmethod
    def read(cls, folder: Folder) -> Self | None:
        """Read the manifest of a directory; None if it has none.

        Raises:
            EventSourceError: if there is one of another format.
        """
        try:
            content = folder.read(PREPARED_MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            manifest = cls.model_validate_json(content)
        except ValidationError as error:
            raise _explain_format(folder, "it cannot be read as one") from error
        if manifest.format != FORMAT:
            raise _explain_format(folder, f"it is of {manifest.format!r}")
        return manifest


def _explain_format(folder: Folder, found: str) -> EventSourceError:
    return EventSourceError(
        f"the manifest of prepared events is of format {FORMAT!r}, but in {folder.location} "
        f"{found}; prepare the events into another directory"
    )
