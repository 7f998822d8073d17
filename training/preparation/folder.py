"""A folder of files, on this machine or at any URL that fsspec opens."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, final
from uuid import uuid4

from model.errors import EventSourceError, MissingPackageError
from training.data.sources import format_location, is_file_url

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


_PARTIAL = re.compile(r"\..+\.[0-9a-f]{32}")


@final
@dataclass(frozen=True)
class Folder:
    """Reads and writes whole files below a location; names are relative and joined by "/".

    A file appears whole or not at all: it is renamed into place, or an object store puts it.

    Attributes:
        location: a path, or a URL such as `s3://bucket/prefix`.
    """

    location: str

    @classmethod
    def at(cls, location: str) -> Self:
        """Name a folder so that processes with other working directories find it, too."""
        return cls(location if is_file_url(location) else str(Path(location).absolute()))

    def path(self, name: str) -> Path | None:
        """Return the path of a file on this machine; None at a URL."""
        return None if is_file_url(self.location) else Path(self.location) / name

    def read(self, name: str) -> bytes:
        """Read a file.

        Raises:
            FileNotFoundError: if there is none.
        """
        path = self.path(name)
        if path is not None:
            return path.read_bytes()
        files, root = self._open()
        content: bytes = files.cat_file(f"{root}/{name}")
        return content

    def write(self, name: str, content: bytes, *, lasting: bool = True) -> None:
        """Write or replace a file.

        Args:
            lasting: wait until the disk has it.
        """
        path = self.path(name)
        if path is None:
            files, root = self._open()
            files.pipe_file(f"{root}/{name}", content)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another name each time: a task that Ray takes for lost may still be running.
        partial = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        path = self.path(name)
        if path is not None:
            return path.is_file()
        files, root = self._open()
        files.invalidate_cache()
        return bool(files.isfile(f"{root}/{name}"))

    def names(self, folder: str = "") -> list[str]:
        """List the files directly in this folder, or in one below it, in order of their names."""
        return self._list(folder, "file")

    def folders(self) -> list[str]:
        """List the folders directly in this one, in order of their names."""
        return self._list("", "directory")

    def _list(self, folder: str, kind: str) -> list[str]:
        path = self.path(folder)
        if path is not None:
            # Each by itself: one may be renamed meanwhile, by a task of a node that was lost.
            entries = [*path.iterdir()] if path.is_dir() else []
            is_kind = Path.is_dir if kind == "directory" else Path.is_file
            names = [entry.name for entry in entries if is_kind(entry)]
        else:
            files, root = self._open()
            files.invalidate_cache()
            place = f"{root}/{folder}".rstrip("/")
            found = files.ls(place, detail=True) if files.isdir(place) else []
            names = [
                entry["name"].rstrip("/").rsplit("/", 1)[-1]
                for entry in found
                if entry["type"] == kind and entry["name"].rstrip("/") != place
            ]
        # Names that begin with a dot are of files that are being written.
        return sorted(name for name in names if not name.startswith("."))

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that it holds; do nothing if there is none.

        What another process writes into such a folder meanwhile may stay.
        """
        path = self.path(name)
        if path is not None:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            return
        files, root = self._open()
        files.invalidate_cache()
        place = f"{root}/{name}"
        if files.exists(place):
            files.rm(place, recursive=True)

    def remove_partial(self) -> None:
        """Remove what a process that was killed had begun to write directly in this folder."""
        path = self.path("")
        if path is not None and path.is_dir():
            for file in path.iterdir():
                if _PARTIAL.fullmatch(file.name):
                    file.unlink(missing_ok=True)

    def _open(self) -> tuple["AbstractFileSystem", str]:
        return open_location(self.location)


def open_location(location: str) -> tuple["AbstractFileSystem", str]:
    """Open the file system of a path or URL; return it and the path there.

    Raises:
        EventSourceError: if it holds credentials, which would be kept in manifests and errors.
        MissingPackageError: if the package of its scheme is not installed.
    """
    name = format_location(location)
    if name != location:
        raise EventSourceError(
            "credentials of files at a URL are those of the environment, but the URL of "
            f"{name} holds some; leave them out"
        )
    from fsspec.core import url_to_fs  # noqa: PLC0415 - needed for URLs only

    try:
        files, root = url_to_fs(location)
    except ImportError as error:
        raise MissingPackageError(
            f"a URL is opened by the package of its scheme, but that of {location!r} is not "
            "installed; install it, for s3:// with pip install 'kairos[scale]'"
        ) from error
    return files, str(root).rstrip("/")


@contextmanager
def fetch(location: str) -> Iterator[Path]:
    """Copy a file at a URL to this machine while the context lasts; one of this machine is used."""
    if not is_file_url(location):
        yield Path(location)
        return
    files, path = open_location(location)
    with tempfile.TemporaryDirectory(prefix="kairos-") as folder:
        local = Path(folder) / path.rsplit("/", 1)[-1]
        files.get_file(path, str(local))
        yield local
