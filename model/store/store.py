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

from pydantic import ValidationError

from model.bundle.atomic import flush, replace_file, write_directory
from model.bundle.manifest import MANIFEST, Manifest
from model.bundle.signature import NO_KEYS, BundleKeys
from model.bundle.writing import sign_bundle
from model.errors import BundleError, NoCurrentBundleError, StoreBusyError
from model.inference.predictor import Predictor
from model.store.last_known_good import LastKnownGood
from model.store.opening import open_predictor
from model.store.traffic import Traffic

CURRENT = "CURRENT"
TRAFFIC = "TRAFFIC.json"
LAST_KNOWN_GOOD = "LAST_KNOWN_GOOD.json"
INCOMING = ".incoming-"
"""How the names of unfinished bundles begin."""
_POINTER_INCOMING = ".pointer-"
_LOCK = ".lock"
_MOST_POINTER_BYTES = 65_536
_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.02
_LEFTOVER_SECONDS = 3600.0
"""The age from which an unfinished pointer of an earlier release may be removed."""

Fingerprint = tuple[tuple[str | int, ...], ...]
"""Names, inodes, sizes and times of the files of a version; empty if it is not published."""


class BundleStore:
    """Versions side by side in one directory, and a file `CURRENT` that names one of them.

    Publishing writes to a hidden directory, flushes it to disk, renames it, and only then changes
    `CURRENT`. Each step is atomic: a reader sees the old version or the new one, whole, even if
    the writer is killed.

    Attributes:
        keys: with which every bundle must be signed; without any, signatures are not verified.
    """

    def __init__(self, root: Path, keys: BundleKeys = NO_KEYS) -> None:
        self.root = Path(root)
        self.keys = keys

    def read_current(self) -> str | None:
        """Read the current version, or None before the first activation. One small read.

        Raises:
            OSError: if the pointer cannot be read.
        """
        content = _read_pointer(self.root / CURRENT)
        # Undecodable content gives a name that no published version has.
        return None if content is None else content.decode("utf-8", "replace").strip() or None

    def has_version(self, version: str) -> bool:
        """Return whether a version is published.

        Raises:
            OSError: if the store cannot be read.
        """
        try:
            # A version comes from outside: it must name a directory of the store and nothing else.
            return (
                version in os.listdir(self.root) and _read_arrival(self.root / version) is not None
            )
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read_fingerprint(self, version: str) -> Fingerprint:
        """Read what changes if a file of a version does, without reading the files."""
        try:
            if not self.has_version(version):
                return ()
            with os.scandir(self.root / version) as files:
                return tuple(sorted(_read_file_fingerprint(file) for file in files))
        except OSError as error:
            return ((type(error).__name__, error.errno or 0),)

    def list_versions(self) -> list[str]:
        """List all published versions, newest first; those of the same second by their arrival.

        A version whose files cannot be read is listed, too.
        """
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
        return Manifest.read(self._find_directory(version), self.keys)

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
        return open_predictor(self._find_directory(version), self.keys)

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
        self.remove_leftovers()
        with self._hold_shared_lock():
            directory = write_directory(self._draw_hidden_path(), write)
            try:
                open_predictor(directory, self.keys)
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
        open_predictor(directory, self.keys)
        if directory.name in self.list_versions():
            if activate:
                self.activate(directory.name)
            return directory.name

        def copy(into: Path) -> str:
            for file in directory.iterdir():
                shutil.copyfile(file, into / file.name)
            return directory.name

        return self.publish(copy, activate=activate)

    def sign(self, version: str) -> None:
        """Sign a published version that verifies by its digests; replaces an earlier signature.

        Raises:
            BundleError: if there is no such version, or a file of it was altered.
            BundleKeyError: if there is no key.
        """
        directory = self._find_directory(version)
        with self._hold_shared_lock():
            sign_bundle(directory, self.keys, self._draw_hidden_path(_POINTER_INCOMING))

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
            removed = self._withdraw(version)
        shutil.rmtree(removed, ignore_errors=True)

    def read_traffic(self) -> Traffic:
        """Read the versions that serve beside the current one. One small read.

        Raises:
            BundleError: if the file is not as Kairos writes it.
            OSError: if it cannot be read.
        """
        content = _read_pointer(self.root / TRAFFIC)
        if content is None:
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

    def read_last_known_good(self) -> LastKnownGood:
        """Read what served last; a missing or broken record is empty. One small read."""
        try:
            content = _read_pointer(self.root / LAST_KNOWN_GOOD)
            return LastKnownGood.model_validate_json(content or b"{}")
        except (OSError, ValidationError):
            return LastKnownGood()

    def record_last_known_good(self, record: LastKnownGood) -> None:
        """Replace the record of what served last.

        Raises:
            OSError: if the store cannot be written to.
        """
        self._replace(LAST_KNOWN_GOOD, f"{record.model_dump_json()}\n".encode())

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
            before = {name: _read_pointer(self.root / name) for name in (CURRENT, TRAFFIC)}
            try:
                yield
            except BaseException:
                for name, content in before.items():
                    if _read_pointer(self.root / name) != content:
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

    def list_leftovers(self) -> list[Path]:
        """List what killed processes left unfinished; nothing while a publisher is at work.

        Every publisher holds a shared lock on the store's directory, which the kernel releases when
        the publisher ends, even if it is killed. If the lock can be had exclusively, no unfinished
        bundle has a writer. On file systems without locks nothing is listed.
        """
        with suppress(OSError), self._lock_exclusively():
            return self._list_unfinished()
        return []

    def remove_leftovers(self) -> None:
        """Remove what `list_leftovers` lists."""
        with suppress(OSError), self._lock_exclusively():
            for leftover in self._list_unfinished():
                _remove(leftover)

    def _list_unfinished(self) -> list[Path]:
        directories = [path for path in self.root.glob(f"{INCOMING}*") if _is_leftover(path)]
        return [*directories, *self.root.glob(f"{_POINTER_INCOMING}*")]

    @contextmanager
    def _lock_exclusively(self) -> Iterator[None]:
        """Lock out publishers; an OSError means that one is at work, or that there are no locks."""
        with self._open_root() as root:
            fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield

    @contextmanager
    def _hold_shared_lock(self) -> Iterator[None]:
        """Protect the unfinished files of the block from `remove_leftovers`."""
        with self._open_root() as root:
            with suppress(OSError):  # file systems without locks
                fcntl.flock(root, fcntl.LOCK_SH)
            yield

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        root = os.open(self.root, os.O_RDONLY)
        try:
            yield root
        finally:
            os.close(root)

    def _draw_hidden_path(self, prefix: str = INCOMING) -> Path:
        """Draw a new hidden name in the store."""
        return self.root / f"{prefix}{uuid.uuid4().hex}"

    def _withdraw(self, version: str) -> Path:
        """End the publication of a version that does not serve, like `_hide_version`."""
        return self._hide_version(version)

    def _hide_version(self, version: str) -> Path:
        """Remove a version for every reader; return the hidden directory with its files."""
        removed = self._draw_hidden_path()
        self._find_directory(version).rename(removed)
        flush(self.root)
        return removed

    def _replace(self, name: str, content: bytes | None) -> None:
        """Replace a small file atomically; None removes it."""
        if content is None:
            (self.root / name).unlink(missing_ok=True)
            flush(self.root)
        else:
            with self._hold_shared_lock():
                temporary = self._draw_hidden_path(_POINTER_INCOMING)
                replace_file(self.root / name, temporary, content)

    def _find_directory(self, version: str) -> Path:
        if not self.has_version(version):
            raise BundleError(
                f"a version must be one of those published, but {version!r} is not among the "
                f"{len(self.list_versions())} in the store; list them with kairos models list"
            )
        return self.root / version


def _read_arrival(path: Path) -> int | None:
    """Read when a version was added, in nanoseconds; None for a path that is no version."""
    if path.name.startswith("."):
        return None
    try:
        (path / MANIFEST).stat()
        return path.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):  # no bundle, or removed since it was listed
        return None
    except OSError:
        # The other versions must stay usable; opening this one gives the reason.
        return 0


def _read_pointer(file: Path) -> bytes | None:
    """Read a small file whole; None if there is none.

    Raises:
        OSError: if it cannot be read.
    """
    try:
        # Opening a pipe in its place would otherwise block.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        return os.read(descriptor, _MOST_POINTER_BYTES)
    finally:
        os.close(descriptor)


def _read_file_fingerprint(file: os.DirEntry[str]) -> tuple[str | int, ...]:
    status = file.stat(follow_symlinks=False)
    return (file.name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_leftover(path: Path) -> bool:
    """Return whether nothing writes this any more, given that no publisher is at work."""
    try:
        status = path.lstat()  # of a link itself
    except FileNotFoundError:
        return False
    # Earlier releases replaced pointers without the lock, by files named like unfinished bundles.
    return S_ISDIR(status.st_mode) or time.time() - status.st_mtime > _LEFTOVER_SECONDS


def _remove(path: Path) -> None:
    """Remove a file, a directory or a link; never the target of a link."""
    with suppress(FileNotFoundError):
        if S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
