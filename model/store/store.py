"""A directory of published bundles, with pointers to those that serve."""

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR
from typing import final

from pydantic import ValidationError

from model.bundle.atomic import flush, replace_file, write_directory
from model.bundle.manifest import MANIFEST, Manifest
from model.errors import BundleError, NoCurrentBundleError, StoreBusyError
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from model.store.traffic import Traffic

CURRENT = "CURRENT"
TRAFFIC = "TRAFFIC.json"
_INCOMING = ".incoming-"
_LOCK = ".lock"
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.02
_LEFTOVER_SECONDS = 3600.0
"""The age from which an unfinished file or directory may be removed as a leftover."""


@final
class BundleStore:
    """Versions side by side in one directory, and a file `CURRENT` that names one of them.

    Publishing writes to a hidden directory, flushes it to disk, renames it, and only then changes
    `CURRENT`. Each step is atomic: a reader sees the old version or the new one, whole, even if
    the writer is killed.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def read_current(self) -> str | None:
        """Read the current version, or None before the first activation. One small read."""
        try:
            # Undecodable content gives a name that no published version has.
            return (self.root / CURRENT).read_text("utf-8", "replace").strip() or None
        except FileNotFoundError:
            return None

    def list_versions(self) -> list[str]:
        """List all published versions, newest first; those of the same second by their arrival."""
        if not self.root.is_dir():
            return []
        # A version begins with the second it was written in; its digest has no order.
        arrived = {
            path.name: (path.name.partition("-")[0], at)
            for path in self.root.iterdir()
            if (at := _read_arrival(path)) is not None
        }
        return sorted(arrived, key=arrived.__getitem__, reverse=True)

    def read_manifest(self, version: str) -> Manifest:
        """Read and verify the manifest of a version.

        Raises:
            BundleError: if there is no such version, or its manifest was altered.
        """
        return Manifest.read(self._find_directory(version))

    def open(self, version: str | None = None) -> Predictor:
        """Open a version, by default the current one.

        Raises:
            NoCurrentBundleError: if no version was activated yet.
            BundleError: if the version is unknown, or cannot be opened.
        """
        version = version or self.read_current()
        if version is None:
            raise NoCurrentBundleError(
                f"a bundle must be published before it can be opened, but {self.root} has no "
                f"{CURRENT}; run kairos train and kairos publish"
            )
        return open_predictor(self._find_directory(version))

    def publish(self, write: Callable[[Path], str], *, activate: bool = True) -> str:
        """Add a bundle, and activate it.

        Removes what killed publishers left behind.

        Args:
            write: fills an empty directory and returns the version, as `write_bundle` does.
            activate: whether to make it the current version.

        Raises:
            BundleError: if the written bundle cannot be opened; the store is then unchanged.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with self._lock_for_publishing():
            directory = write_directory(self._draw_hidden_path(), write)
            try:
                open_predictor(directory)
            except BaseException:  # an interrupt or lack of memory, too: it is not verified
                shutil.rmtree(directory, ignore_errors=True)
                raise
        if activate:
            self.activate(directory.name)
        return directory.name

    def add_copy(self, directory: Path, *, activate: bool = True) -> str:
        """Publish a copy of a bundle that lies outside the store.

        Raises:
            BundleError: if it cannot be opened there.
        """
        open_predictor(directory)
        if directory.name in self.list_versions():
            if activate:
                self.activate(directory.name)
            return directory.name

        def copy(into: Path) -> str:
            for file in directory.iterdir():
                shutil.copyfile(file, into / file.name)
            return directory.name

        return self.publish(copy, activate=activate)

    def activate(self, version: str) -> None:
        """Make a published version the current one.

        Raises:
            BundleError: if there is no such version, or its manifest was altered.
        """
        self.read_manifest(version)
        self._replace(CURRENT, f"{version}\n".encode())

    def remove(self, version: str) -> None:
        """Delete a version that does not serve.

        Raises:
            BundleError: if there is no such version, or it serves.
            StoreBusyError: if another process holds the store's lock for too long.
        """
        with self.lock_pointers():
            traffic = self.read_traffic()
            if version in {self.read_current(), traffic.challenger, traffic.shadow}:
                raise BundleError(
                    f"a version must not serve when it is removed, but {version!r} does; "
                    "activate another first"
                )
            removed = self._draw_hidden_path()
            self._find_directory(version).rename(removed)
            flush(self.root)
        shutil.rmtree(removed, ignore_errors=True)

    def read_traffic(self) -> Traffic:
        """Read the versions that serve beside the current one. One small read.

        Raises:
            BundleError: if the file cannot be read as Kairos writes it.
        """
        try:
            content = (self.root / TRAFFIC).read_bytes()
        except FileNotFoundError:
            return Traffic()
        try:
            return Traffic.model_validate_json(content)
        except ValidationError as error:
            raise BundleError(
                f"{TRAFFIC} must be as Kairos writes it, but that of {self.root} is not "
                f"({error.errors()[0]['msg']}); set the traffic again"
            ) from error

    def route(self, traffic: Traffic) -> None:
        """Set the versions that serve beside the current one.

        Raises:
            BundleError: if one of them is not published, or its manifest was altered.
        """
        for version in (traffic.challenger, traffic.shadow):
            if version is not None:
                self.read_manifest(version)
        self._replace(TRAFFIC, f"{traffic.model_dump_json()}\n".encode())

    @contextmanager
    def lock_pointers(self) -> Iterator[None]:
        """Lock `CURRENT` and `TRAFFIC.json` against other writers, in any process.

        Restores both if the block fails. Readers need no lock.

        Raises:
            StoreBusyError: if another process holds the lock for too long.
            OSError: if the store cannot be written to.
        """
        with (self.root / _LOCK).open("ab") as lock:
            self._wait_for(lock.fileno())
            before = {name: self._read_content(name) for name in (CURRENT, TRAFFIC)}
            try:
                yield
            except BaseException:
                for name, content in before.items():
                    if self._read_content(name) != content:
                        self._replace(name, content)
                raise

    def _wait_for(self, lock: int) -> None:
        # The kernel releases the lock when the process that holds it ends, even if it is killed.
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise StoreBusyError(
                        "only one process may change a bundle store at a time, but another has "
                        f"held {self.root / _LOCK} for over {_PATIENCE_SECONDS:g} seconds; try "
                        "again, or end the process that holds it"
                    ) from error
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    @contextmanager
    def _lock_for_publishing(self) -> Iterator[None]:
        """Hold a shared lock while a version is written; first remove leftovers.

        Every publisher holds the lock on the store's directory, and the kernel releases it when a
        publisher is killed. If it can be had exclusively, no publisher is at work.
        """
        root = os.open(self.root, os.O_RDONLY)
        try:
            # File systems without locks raise an OSError: leftovers are then kept.
            with suppress(OSError):
                fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._remove_leftovers()
            with suppress(OSError):
                fcntl.flock(root, fcntl.LOCK_SH)
            yield
        finally:
            os.close(root)

    def _remove_leftovers(self) -> None:
        """Remove old unfinished files and directories; no publisher may be at work.

        Their age protects writers that do not hold the lock: `_replace`, and earlier releases.
        """
        for leftover in self.root.glob(f"{_INCOMING}*"):
            with suppress(FileNotFoundError):
                status = leftover.lstat()  # of a link itself; its target is never touched
                if time.time() - status.st_mtime <= _LEFTOVER_SECONDS:
                    continue
                if S_ISDIR(status.st_mode):
                    shutil.rmtree(leftover, ignore_errors=True)
                else:
                    leftover.unlink()

    def _draw_hidden_path(self) -> Path:
        """Draw a new hidden name in the store."""
        return self.root / f"{_INCOMING}{uuid.uuid4().hex}"

    def _read_content(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def _replace(self, name: str, content: bytes | None) -> None:
        """Replace a small file atomically; None removes it."""
        if content is None:
            (self.root / name).unlink(missing_ok=True)
            flush(self.root)
        else:
            replace_file(self.root / name, self._draw_hidden_path(), content)

    def _find_directory(self, version: str) -> Path:
        # A version comes from outside: it must name a directory of the store and nothing else.
        if version not in self.list_versions():
            raise BundleError(
                f"a version must be one of those published, but {version!r} is not among the "
                f"{len(self.list_versions())} in the store; list them with kairos models list"
            )
        return self.root / version


def _read_arrival(path: Path) -> int | None:
    """Read when a version was added, in nanoseconds; None for a path that is no version."""
    if path.name.startswith(".") or not (path / MANIFEST).is_file():
        return None
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # removed since the directory was listed
        return None
