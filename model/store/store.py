"""Where bundles live: a directory of versions, and a pointer to the current one."""

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from pydantic import ValidationError

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


@final
class BundleStore:
    """Versions side by side in one directory, and a file `CURRENT` that names one of them.

    Publishing writes to a hidden directory, flushes it to disk, renames it, and only then moves the
    pointer, each step atomic: a reader sees the old version or the new one, whole, whenever the
    writer is killed.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def current(self) -> str | None:
        """The current version, or None before the first activation. One small read."""
        try:
            # Whatever somebody may have written there: it is then no version that is published.
            return (self.root / CURRENT).read_text("utf-8", "replace").strip() or None
        except FileNotFoundError:
            return None

    def versions(self) -> list[str]:
        """All published versions, newest first; those trained within a second by their arrival."""
        if not self.root.is_dir():
            return []
        # A version begins with the second it was trained in; its digest says nothing of time.
        arrived = {
            path.name: (path.name.partition("-")[0], at)
            for path in self.root.iterdir()
            if (at := self._arrival(path)) is not None
        }
        return sorted(arrived, key=arrived.__getitem__, reverse=True)

    def manifest(self, version: str) -> Manifest:
        """The verified manifest of a version.

        Raises:
            BundleError: if there is no such version, or its manifest was altered.
        """
        return Manifest.read(self._directory(version))

    def open(self, version: str | None = None) -> Predictor:
        """Open a version, by default the current one.

        Raises:
            NoCurrentBundleError: if nothing has been activated yet.
            BundleError: if the version is unknown or unsound.
        """
        version = version or self.current()
        if version is None:
            raise NoCurrentBundleError(
                f"a bundle must be published before it can be opened, but {self.root} has no "
                f"{CURRENT}; run kairos train and kairos publish"
            )
        return open_predictor(self._directory(version))

    def publish(self, write: Callable[[Path], str], *, activate: bool = True) -> str:
        """Take in a bundle, and make it the current one unless told otherwise.

        Args:
            write: fills an empty directory and returns the version, as `write_bundle` does.
            activate: whether to move the pointer.

        Raises:
            BundleError: if what was written cannot be opened; the store is then unchanged.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        incoming = self.root / f"{_INCOMING}{uuid.uuid4().hex}"
        incoming.mkdir()
        try:
            version = write(incoming)
            final_place = self.root / version
            for file in incoming.iterdir():
                _flush(file)
            _flush(incoming)
            incoming.rename(final_place)
            _flush(self.root)
        except BaseException:
            shutil.rmtree(incoming, ignore_errors=True)
            raise
        try:
            open_predictor(final_place)
        except BundleError:
            shutil.rmtree(final_place, ignore_errors=True)
            raise
        if activate:
            self.activate(version)
        return version

    def take_in(self, directory: Path, *, activate: bool = True) -> str:
        """Publish a bundle that lies elsewhere, as a copy.

        Raises:
            BundleError: if it cannot be opened there.
        """
        open_predictor(directory)
        if directory.name in self.versions():
            if activate:
                self.activate(directory.name)
            return directory.name

        def copy(into: Path) -> str:
            for file in directory.iterdir():
                shutil.copyfile(file, into / file.name)
            return directory.name

        return self.publish(copy, activate=activate)

    def activate(self, version: str) -> None:
        """Point `CURRENT` at a published version.

        Raises:
            BundleError: if there is no such version or its manifest was altered.
        """
        self.manifest(version)
        self._replace(CURRENT, f"{version}\n".encode())

    def remove(self, version: str) -> None:
        """Take a version that nobody answers with out of the store, for good.

        Raises:
            BundleError: if there is no such version, or it answers.
            StoreBusyError: if somebody else changes the store for too long.
        """
        with self.changing():
            traffic = self.traffic()
            if version in {self.current(), traffic.challenger, traffic.shadow}:
                raise BundleError(
                    f"a version must not answer anybody when it is removed, but {version!r} does; "
                    "activate another first"
                )
            leaving = self.root / f"{_INCOMING}{uuid.uuid4().hex}"
            self._directory(version).rename(leaving)
            _flush(self.root)
        shutil.rmtree(leaving, ignore_errors=True)

    def traffic(self) -> Traffic:
        """Which versions answer beside the current one. One small read.

        Raises:
            BundleError: if the file that says so was written by somebody else.
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
        """Let other versions answer beside the current one, or none.

        Raises:
            BundleError: if one of them is not published, or its manifest was altered.
        """
        for version in (traffic.challenger, traffic.shadow):
            if version is not None:
                self.manifest(version)
        self._replace(TRAFFIC, f"{traffic.model_dump_json()}\n".encode())

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Have the pointers to oneself; they are put back as they were if the block fails.

        Whoever else changes them in such a block waits, in whatever process. Readers never do.

        Raises:
            StoreBusyError: if somebody else has them for too long.
            OSError: if the store cannot be written to.
        """
        with (self.root / _LOCK).open("ab") as lock:
            self._wait_for(lock.fileno())
            before = {name: self._content(name) for name in (CURRENT, TRAFFIC)}
            try:
                yield
            except BaseException:
                for name, content in before.items():
                    if self._content(name) != content:
                        self._replace(name, content)
                raise

    def _wait_for(self, lock: int) -> None:
        # The lock ends with its file, and so with the process that holds it, however that ends.
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise StoreBusyError(
                        "one change of a bundle store waits for another, but at most "
                        f"{_PATIENCE_SECONDS:g} seconds, and another took longer; try again, and "
                        f"see who holds {self.root / _LOCK}"
                    ) from error
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def _content(self, name: str) -> bytes | None:
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def _replace(self, name: str, content: bytes | None) -> None:
        """Put a small file in place of another, whole or not at all; None for no file."""
        if content is None:
            (self.root / name).unlink(missing_ok=True)
        else:
            incoming = self.root / f"{_INCOMING}{uuid.uuid4().hex}"
            try:
                incoming.write_bytes(content)
                _flush(incoming)
                incoming.replace(self.root / name)
            except BaseException:
                incoming.unlink(missing_ok=True)
                raise
        _flush(self.root)

    def _directory(self, version: str) -> Path:
        # A version comes from outside: it must name a directory of the store and nothing else.
        if version not in self.versions():
            raise BundleError(
                f"a version must be one of those published, but {version!r} is not among the "
                f"{len(self.versions())} in the store; list them with kairos models list"
            )
        return self.root / version

    def _arrival(self, path: Path) -> int | None:
        """When a version was put here, in nanoseconds; None for what is not one, or no longer."""
        if path.name.startswith(".") or not (path / MANIFEST).is_file():
            return None
        try:
            return path.stat().st_mtime_ns
        except FileNotFoundError:  # it was removed this moment
            return None


def _flush(path: Path) -> None:
    """Make a file, or a directory's entries, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
