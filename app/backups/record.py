"""What a backup says of itself: `backup.json`, written last, so that half a backup is none."""

import hashlib
import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from model.errors import KairosError

RECORD = "backup.json"
_MIB = 1024 * 1024


class BackupError(KairosError):
    """A backup cannot be taken or put back as asked; nothing was changed."""

    code = "backup"


class FileRecord(BaseModel):
    """A file as it was written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int
    sha256: str


class BackupRecord(BaseModel):
    """What a backup holds.

    Attributes:
        taken_at: when it began; everything acknowledged before is in it. Epoch microseconds.
        revision: of the database's schema.
        rows: by table.
        current: the version that `CURRENT` named.
        files: every file but this record, by path.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    kairos: str
    taken_at: int
    database: Literal["sqlite", "postgresql"]
    revision: str
    rows: dict[str, int]
    current: str | None
    files: dict[str, FileRecord]


def files_of(directory: Path) -> dict[str, FileRecord]:
    """Every file of a directory but the record, read to its end."""
    return {
        file.relative_to(directory).as_posix(): _measured(file)
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file != directory / RECORD
    }


def write_record(directory: Path, record: BackupRecord) -> None:
    """Complete a backup, once everything else of it is on disk."""
    for path in [*directory.rglob("*")]:
        _flush(path)
    (directory / RECORD).write_text(record.model_dump_json(indent=1) + "\n", "utf-8")
    _flush(directory / RECORD)
    _flush(directory)


def read_record(directory: Path) -> BackupRecord:
    """The record of a backup whose every file is as it was written.

    Raises:
        BackupError: if it is not a whole backup, or was altered.
    """
    try:
        record = BackupRecord.model_validate_json((directory / RECORD).read_bytes())
    except FileNotFoundError as error:
        raise BackupError(
            f"a backup holds a {RECORD}, written last, but {directory} has none; it is none, or "
            "was never finished"
        ) from error
    except ValidationError as error:
        raise BackupError(
            f"the {RECORD} of {directory} must be as kairos backup of this version writes it, but "
            f"{error.error_count()} of its fields are not; restore it with the version that took it"
        ) from error
    found = files_of(directory)
    odd = sorted(
        path
        for path in found.keys() | record.files.keys()
        if found.get(path) != record.files.get(path)
    )
    if odd:
        raise BackupError(
            f"every file of a backup must be as it was written, but {odd[0]} of {directory} is "
            f"missing, new or altered ({len(odd)} in all); take another backup"
        )
    return record


def _measured(file: Path) -> FileRecord:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_MIB):
            digest.update(block)
    return FileRecord(bytes=file.stat().st_size, sha256=digest.hexdigest())


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
