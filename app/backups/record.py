"""The record of a backup, `backup.json`: written last, so that an incomplete backup has none."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from model.bundle.atomic import flush
from model.bundle.manifest import compute_digest
from model.clock import LAST_INSTANT
from model.errors import KairosError

RECORD = "backup.json"


_TABLES = frozenset({"events", "items"})


class BackupError(KairosError):
    """A backup cannot be taken or restored as requested; nothing was changed."""

    code = "backup"


class FileRecord(BaseModel):
    """The size and digest of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bytes: int
    sha256: str


class BackupRecord(BaseModel):
    """The contents of a backup.

    Attributes:
        taken_at: the begin of the backup, epoch microseconds; it holds everything acknowledged
            before.
        revision: the revision of the database's schema.
        rows: the number of rows by table.
        current: the version that `CURRENT` named.
        files: every file but this record, by path.
        left_out: what of the store was missing or damaged and is not in the backup, each with the
            reason.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    kairos: str
    taken_at: Annotated[int, Field(ge=0, le=LAST_INSTANT)]
    database: Literal["sqlite", "postgresql"]
    revision: str
    rows: dict[str, Annotated[int, Field(ge=0)]]
    current: str | None
    files: dict[str, FileRecord]
    left_out: dict[str, str] = {}

    @field_validator("rows")
    @classmethod
    def _require_tables(cls, rows: dict[str, int]) -> dict[str, int]:
        if missing := _TABLES - rows.keys():
            raise ValueError(f"the tables {sorted(missing)} are missing")
        return rows


def list_files(directory: Path) -> dict[str, FileRecord]:
    """Compute the size and the digest of every file of a directory but the record."""
    return {
        file.relative_to(directory).as_posix(): FileRecord(
            bytes=file.stat().st_size, sha256=compute_digest(file)
        )
        for file in sorted(directory.rglob("*"))
        if file.is_file() and file != directory / RECORD
    }


def write_record(directory: Path, record: BackupRecord) -> None:
    """Write the record of a backup, readable by its owner alone like every file, and flush all."""
    (directory / RECORD).write_text(record.model_dump_json(indent=1) + "\n", "utf-8")
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        flush(path)


def read_record(directory: Path) -> BackupRecord:
    """Read the record of a backup, and verify every file.

    Raises:
        BackupError: if the backup is incomplete or was altered.
    """
    try:
        record = BackupRecord.model_validate_json((directory / RECORD).read_bytes())
    except FileNotFoundError as error:
        raise BackupError(
            f"a backup holds a {RECORD}, written last, but {directory} has none; name another, or "
            "take a new backup"
        ) from error
    except ValidationError as error:
        raise BackupError(
            f"the {RECORD} of {directory} must be as kairos backup of this version writes it, but "
            f"{error.error_count()} of its fields are not; restore it with the version that took it"
        ) from error
    found = list_files(directory)
    altered = sorted(
        path
        for path in found.keys() | record.files.keys()
        if found.get(path) != record.files.get(path)
    )
    if altered:
        raise BackupError(
            f"every file of a backup must be as it was written, but {altered[0]} of {directory} is "
            f"missing, new or altered ({len(altered)} in all); take another backup"
        )
    return record
