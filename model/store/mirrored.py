"""A bundle store in an object store, with a copy of it in a local directory."""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from functools import partial
from pathlib import Path
from typing import final

from pydantic import ValidationError

from model.bundle.atomic import flush, replace_file, write_directory
from model.bundle.manifest import MANIFEST, verify_digests
from model.bundle.signature import NO_KEYS, SIGNATURE, BundleKeys
from model.errors import BundleError, StoreBusyError
from model.store.objects import ListedObject, ObjectConflictError, ObjectStorage, StoredObject
from model.store.opening import open_predictor
from model.store.store import CURRENT, TRAFFIC, BundleStore
from model.store.traffic import Traffic

BUNDLES = "bundles"
_POINTERS = (CURRENT, TRAFFIC)
_VERSION = re.compile(r"(?![\s.])[^/\x00-\x1f\x7f]+(?<!\s)")
"""Names of directories that are no paths: what an object store names comes from outside."""
_MOST_BYTES_OF_A_NAME = 255
_DOWNLOAD_LOCK = ".download-lock"
_COPY_OF = ".copy-of"
"""The file that names the object store that a directory is a copy of."""
_SECONDS_BETWEEN_LISTINGS = 5.0
_LEFTOVER_SECONDS = 86_400.0
"""The age from which an upload without a manifest is taken for one of a killed publisher."""
_SECONDS_WITH_DAMAGE = 300.0
PATIENCE_SECONDS = 300.0
"""For which a command waits while another process of this machine downloads bundles."""
_PAUSE_SECONDS = 0.05
_ENTRIES = 3
"""Attempts to follow the pointers and lock them before another writer moves them."""


@dataclass(frozen=True, slots=True)
class _Damage:
    """A version that did not verify.

    Attributes:
        listed: its objects at that time.
        until: when it is downloaded again though they are the same, on the monotonic clock.
    """

    error: BundleError
    listed: dict[str, ListedObject]
    until: float


@final
class MirroredStore(BundleStore):
    """A store whose bundles and pointers are in an object store, for replicas on many machines.

    Objects are `bundles/<version>/<file>`, the manifest last, so that a version without one is not
    there; `CURRENT`; and `TRAFFIC.json`. The directory `root` is a copy: a `BundleStore` from which
    everything is read, also while the object store is unavailable. `synchronize` brings it up to
    date. What changes the store changes the object store first: pointers by conditional writes, so
    that of concurrent writers one succeeds and the others get a StoreBusyError.

    `LAST_KNOWN_GOOD.json` stays local: it records what the processes of this machine opened.

    Attributes:
        storage: the object store.
        fault: why the last poll of this process did not bring the copy up to date; None if it did.
    """

    def __init__(
        self,
        storage: ObjectStorage,
        root: Path,
        keys: BundleKeys = NO_KEYS,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Read nothing yet.

        Args:
            root: the local copy, of this object store only; processes of a machine may share it.
            patience_seconds: how long a change waits for another process that downloads.

        Raises:
            BundleError: if the directory is a copy of another object store.
        """
        super().__init__(root, keys)
        self.storage = storage
        self.fault: str | None = None
        self._held = threading.local()
        self._is_closed = False
        self._patience_seconds = patience_seconds
        # The first time only what serves: a process starts sooner.
        self._listed_at = time.monotonic()
        self._damaged: dict[str, _Damage] = {}
        self._signatures: dict[str, str] = {}
        self._missing: frozenset[str] = frozenset()
        self._require_own_copy()

    def close(self) -> None:
        """Make every wait for a download, and the next one, end with an InterruptedError."""
        self._is_closed = True

    def _require_own_copy(self) -> bool:
        """Check that the directory is not a copy of another store; return whether it is of this.

        Raises:
            BundleError: if it is.
        """
        try:
            url = (self.root / _COPY_OF).read_text().strip()
        except FileNotFoundError:
            return False
        if url != self.storage.url:
            raise BundleError(
                f"a directory is the copy of one object store, but {self.root} is that of {url} "
                f"and not of {self.storage.url}; name another with KAIROS_BUNDLE_CACHE, or delete "
                "it if nothing serves from it"
            )
        return True

    def _make_root(self) -> None:
        """Make the directory, as a copy of this object store."""
        self.root.mkdir(parents=True, exist_ok=True)
        if not self._require_own_copy():
            replace_file(
                self.root / _COPY_OF, self._draw_hidden_path(".pointer-"), self.storage.url.encode()
            )

    def synchronize(self, *, lists: bool | None = None, waits: bool = False) -> None:
        """Copy what is new in the object store: the versions that serve, then the pointers.

        Every few seconds all published versions, too; those that were removed are removed here.
        A version is verified by the digests of its manifest, and its signature if there are keys,
        before it becomes visible. What fails does not prevent the rest.

        Args:
            lists: whether to compare all versions; None if the last time was long ago.
            waits: whether to wait for other processes of this machine that download, so that the
                copy is up to date afterwards; a poll that does not leaves it to the next one.

        Raises:
            StoreBusyError: if another process downloads for too long, and this one waits.
            BundleError: if a version that serves is missing or damaged, or `CURRENT` is missing.
                The local pointer to it is then not moved.
            OSError: if the object store does not answer or the directory cannot be written to.
        """
        self._make_root()
        errors: list[BundleError] = []
        for name in _POINTERS:
            self._attempt(partial(self._follow, name, waits=waits), errors, waits=waits)
        now = time.monotonic()
        if now - self._listed_at >= _SECONDS_BETWEEN_LISTINGS if lists is None else lists:
            self._listed_at = now
            self._copy_listed(errors, waits=waits)
        if errors:
            raise errors[0]

    def list_behind(self) -> list[str]:
        """List the pointers that differ from those of the object store; change nothing.

        Raises:
            OSError: if the object store does not answer.
        """
        return [name for name in _POINTERS if not self._is_same(name, self.storage.read(name))]

    def publish(self, write: Callable[[Path], str], *, activate: bool = True) -> str:
        """Add a bundle, first to the object store and then here, and activate it."""
        self._make_root()
        self.remove_leftovers()
        self._remove_unfinished_uploads()
        with self._hide() as hidden:
            directory = write_directory(hidden / "unfinished", write)
            open_predictor(directory, self.keys)
            self._upload(directory)
            self._place(directory)
        if activate:
            self.activate(directory.name)
        return directory.name

    def add_copy(self, directory: Path, *, activate: bool = True) -> str:
        """Publish a copy of a bundle, also one that is here but not in the object store."""
        version = directory.name
        if self.has_version(version) and not self._is_published(version):
            open_predictor(self.root / version, self.keys)
            self._upload(self.root / version)
        return super().add_copy(directory, activate=activate)

    def sign(self, version: str) -> None:
        """Sign a published version here, and copy the signature to the object store."""
        super().sign(version)
        self.storage.upload(self.root / version / SIGNATURE, f"{BUNDLES}/{version}/{SIGNATURE}")

    def activate(self, version: str) -> None:
        """Make a published version the current one, in the object store and here."""
        if self._get_held() is None:
            with self.lock_pointers():
                self.activate(version)
            return
        self.read_manifest(version)
        self._require_published(version)
        self._replace(CURRENT, f"{version}\n".encode())
        # Again: of this and a removal by another machine one sees the other.
        self._require_published(version)

    def route(self, traffic: Traffic) -> None:
        """Set the versions that serve beside the current one, in the object store and here."""
        if self._get_held() is None:
            with self.lock_pointers():
                self.route(traffic)
            return
        versions = [one for one in (traffic.challenger, traffic.shadow) if one is not None]
        for version in versions:
            self._require_published(version)
        super().route(traffic)
        for version in versions:  # again, as in `activate`
            self._require_published(version)

    def remove(self, version: str) -> None:
        """Delete a version that does not serve, here and in the object store.

        Raises:
            BundleError: if there is no such version, or it serves.
            StoreBusyError: if another machine activates it at the same time.
        """
        super().remove(version)
        names = self.storage.list_below(f"{BUNDLES}/{version}")
        for name in names:
            self.storage.delete(f"{BUNDLES}/{version}/{name}")

    def _withdraw(self, version: str) -> Path:
        """Delete its manifest, without which it is not published, unless it serves by now."""
        content = (self._find_directory(version) / MANIFEST).read_bytes()
        manifest = f"{BUNDLES}/{version}/{MANIFEST}"
        self._require_not_named(version)
        self.storage.delete(manifest)
        try:
            # Again: of this and an activation by another machine one sees the other.
            self._require_not_named(version)
            return super()._withdraw(version)
        except BaseException:
            self.storage.write(manifest, content, replaces=None)
            raise

    def _require_not_named(self, version: str) -> None:
        """Check that no pointer of the object store names a version.

        Raises:
            StoreBusyError: if one does.
        """
        if any(version in _list_named(name, self.storage.read(name)) for name in _POINTERS):
            raise self._build_conflict(CURRENT)

    def _get_held(self) -> dict[str, StoredObject | None] | None:
        """Return the pointers of this thread's block of `lock_pointers`; None outside one."""
        held: dict[str, StoredObject | None] | None = getattr(self._held, "objects", None)
        return held

    @contextmanager
    def lock_pointers(self) -> Iterator[None]:
        """Lock the pointers against writers on this machine, and detect others when they are moved.

        The block begins with what the object store names, so `read_current` is what it replaces.

        Raises:
            StoreBusyError: if another process holds the lock or downloads for too long, or another
                machine moves a pointer at the same time.
            OSError: if the object store does not answer.
        """
        self._make_root()
        for _ in range(_ENTRIES):
            try:
                with super().lock_pointers():
                    held = {name: self.storage.read(name) for name in _POINTERS}
                    if all(self._is_lockable(name, stored) for name, stored in held.items()):
                        self._held.objects = held
                        yield
                        return
            finally:
                # Not before: a block that fails restores what it moved, and nothing else.
                self._held.objects = None
            for name in _POINTERS:
                self._follow(name, waits=True)
        raise self._build_conflict(CURRENT)

    def _replace(self, name: str, content: bytes | None) -> None:
        if name not in _POINTERS:
            super()._replace(name, content)
            return
        held = self._get_held()
        # In a block of `lock_pointers`, what was read at its beginning must still be there.
        found = self.storage.read(name) if held is None else held[name]
        written = self._replace_object(name, content, replaces=found)
        try:
            super()._replace(name, content)
        except BaseException:
            # Nobody else would: what restores the pointers compares those that are here.
            earlier = None if found is None else found.content
            written = self._replace_object(name, earlier, replaces=written)
            raise
        finally:
            if held is not None:
                held[name] = written

    def _replace_object(
        self, name: str, content: bytes | None, *, replaces: StoredObject | None
    ) -> StoredObject | None:
        """Write or delete a pointer in the object store, and return what is there now.

        Raises:
            StoreBusyError: if another one than that to replace is there.
        """
        try:
            if content is not None:
                return self.storage.write(name, content, replaces=replaces)
            if replaces is not None:
                if self.storage.read(name) != replaces:
                    raise ObjectConflictError(name)
                self.storage.delete(name)
        except ObjectConflictError as error:
            raise self._build_conflict(name) from error
        return None

    def _build_conflict(self, name: str) -> StoreBusyError:
        return StoreBusyError(
            f"only one process may change a bundle store at a time, but another moved {name} of "
            f"{self.storage.url} meanwhile; look at what it activated, and try again"
        )

    def _require_published(self, version: str) -> None:
        """Check that a version that is here is still in the object store.

        Raises:
            BundleError: if it is not.
        """
        if not self._is_published(version):
            raise BundleError(
                f"a version must be one of those published, but {version!r} is not in "
                f"{self.storage.url} any more; list them with kairos models list"
            )

    def _is_published(self, version: str) -> bool:
        return self.storage.read(f"{BUNDLES}/{version}/{MANIFEST}") is not None

    def _attempt(self, step: Callable[[], None], errors: list[BundleError], *, waits: bool) -> None:
        """Run a step that must not prevent the next one, and collect its failure.

        Raises:
            StoreBusyError: if another process is at work for too long, and this one waits.
            OSError: if the object store does not answer, which concerns the next one, too.
        """
        try:
            step()
        except BundleError as error:
            errors.append(error)
        except StoreBusyError:
            if waits:
                raise
            # Another process of this machine is at work: the next time follows it.

    def _follow(self, name: str, *, waits: bool) -> None:
        """Move a local pointer to where that of the object store points, once its version is here.

        Raises:
            BundleError: if a version that it names is missing or damaged.
            StoreBusyError: if another process of this machine is at work.
        """
        found = self.storage.read(name)
        if self._is_same(name, found):
            return
        if found is None and name == CURRENT:
            raise BundleError(
                f"a store has a {CURRENT} once it has served, but {self.storage.url} has none; "
                "check KAIROS_BUNDLE_STORE, or activate a version"
            )
        for version in _list_named(name, found):
            self._download(version, waits=waits)
        with super().lock_pointers():
            # Another process of this machine may have moved both since.
            if self.storage.read(name) == found:
                super()._replace(name, None if found is None else found.content)

    def _is_lockable(self, name: str, found: StoredObject | None) -> bool:
        # Where it is missing, in a bucket that was emptied, a change is what brings it back.
        return self._is_same(name, found) or (name == CURRENT and found is None)

    def _is_same(self, name: str, found: StoredObject | None) -> bool:
        try:
            content: bytes | None = (self.root / name).read_bytes()
        except FileNotFoundError:
            content = None
        return content == (None if found is None else found.content)

    def _copy_listed(self, errors: list[BundleError], *, waits: bool) -> None:
        """Copy all published versions and signatures, and remove what is not published any more."""
        objects = self.storage.list_below(BUNDLES)
        published = {
            name.removesuffix(f"/{MANIFEST}"): listed
            for name, listed in objects.items()
            if name.count("/") == 1 and name.endswith(f"/{MANIFEST}")
        }
        for version in sorted(published, reverse=True):
            self._attempt(partial(self._download, version, waits=waits), errors, waits=waits)
            self._copy_signature(version, objects.get(f"{version}/{SIGNATURE}"))
        # A listing without the current version is of another prefix, or of a bucket that was lost.
        if self.read_current() in published:
            missing = frozenset(self.list_versions()) - published.keys()
            # Twice in a row: a version may have been published since this listing began.
            for version in missing & self._missing:
                with suppress(StoreBusyError):
                    self._forget(version)
            self._missing = missing

    def _copy_signature(self, version: str, listed: ListedObject | None) -> None:
        """Copy a signature that is new since the last listing of this process."""
        if listed is None or self._signatures.get(version) == listed.etag:
            return
        signature = self.storage.read(f"{BUNDLES}/{version}/{SIGNATURE}")
        if signature is None or not self.has_version(version):
            return
        file = self.root / version / SIGNATURE
        if not file.exists() or file.read_bytes() != signature.content:
            with self._hold_shared_lock():
                replace_file(file, self._draw_hidden_path(".pointer-"), signature.content)
        self._signatures[version] = listed.etag

    def _forget(self, version: str) -> None:
        """Remove the copy of a version that is not published any more, unless it serves here."""
        with super().lock_pointers():
            traffic = self.read_traffic()
            if version in {self.read_current(), traffic.challenger, traffic.shadow}:
                return
            removed = self._hide_version(version)
        shutil.rmtree(removed, ignore_errors=True)

    def _download(self, version: str, *, waits: bool) -> None:
        """Copy a version that is not here, and verify it.

        Raises:
            BundleError: if it is not published, or damaged.
            StoreBusyError: if another process of this machine downloads now, or for too long if
                this one waits.
        """
        if self.has_version(version):
            return
        if not _is_name(version):
            raise BundleError(
                f"a version is the name of a bundle, but {self.storage.url} names "
                f"{version[:80]!r}; activate one that kairos models list shows"
            )
        with self._lock_downloads(waits=waits), self._hide() as hidden:
            if self.has_version(version):
                return
            directory = hidden / version
            directory.mkdir()
            self._download_files(version, directory)
            self._place(directory)

    def _download_files(self, version: str, directory: Path) -> None:
        """Download a version into a directory and verify it, unless it has failed just now.

        Raises:
            BundleError: if it is not published, or damaged.
        """
        listed = self.storage.list_below(f"{BUNDLES}/{version}")
        if MANIFEST not in listed:
            raise BundleError(
                f"a version must be published before it serves, but {version!r} is not in "
                f"{self.storage.url}; publish it again"
            )
        damage = self._damaged.get(version)
        if damage and damage.listed == listed and time.monotonic() < damage.until:
            raise damage.error
        try:
            for name in listed:
                self._download_file(version, name, directory)
            verify_digests(directory, self.keys)
        except BundleError as error:
            until = time.monotonic() + _SECONDS_WITH_DAMAGE
            self._damaged[version] = _Damage(error, listed, until)
            raise
        self._damaged.pop(version, None)
        # Versions of one second are listed in the order of their publication, on every machine.
        os.utime(directory, (listed[MANIFEST].modified_at,) * 2)

    def _download_file(self, version: str, name: str, directory: Path) -> None:
        if "/" in name or name.startswith("."):
            raise BundleError(
                f"a bundle is a directory of files, but {version} has {name[:80]!r} in "
                f"{self.storage.url}; publish it again"
            )
        self.storage.download(
            f"{BUNDLES}/{version}/{name}", directory / name, lambda: not self._is_closed
        )

    @contextmanager
    def _lock_downloads(self, *, waits: bool) -> Iterator[None]:
        """Let one process of this machine download at a time."""
        seconds = self._patience_seconds if waits else 0.0
        with (self.root / _DOWNLOAD_LOCK).open("ab") as lock:
            if not _lock_within(seconds, lock.fileno(), lambda: not self._is_closed):
                raise StoreBusyError(
                    "only one process of a machine may download bundles at a time, but another "
                    f"has held {self.root / _DOWNLOAD_LOCK} for over {seconds:g} seconds; try "
                    "again, or end the process that holds it"
                )
            yield

    @contextmanager
    def _hide(self) -> Iterator[Path]:
        """Make a hidden directory for unfinished files, which `remove_leftovers` lets be."""
        with self._hold_shared_lock():
            hidden = self._draw_hidden_path()
            hidden.mkdir()
            try:
                yield hidden
            finally:
                shutil.rmtree(hidden, ignore_errors=True)

    def _place(self, directory: Path) -> None:
        """Make a complete version visible here."""
        for file in directory.iterdir():
            flush(file)
        flush(directory)
        if not self.has_version(directory.name):
            directory.rename(self.root / directory.name)
        flush(self.root)

    def _upload(self, directory: Path) -> None:
        """Copy a verified version to the object store, its manifest last.

        Raises:
            BundleError: if other machines would not take its name for that of a bundle.
        """
        if not _is_name(directory.name):
            raise BundleError(
                "a version in an object store is named without control characters, and not like a "
                f"hidden file, but got {directory.name[:80]!r}; rename the directory of the bundle"
            )
        files = sorted(directory.iterdir(), key=lambda file: (file.name == MANIFEST, file.name))
        for file in files:
            self.storage.upload(file, f"{BUNDLES}/{directory.name}/{file.name}")

    def _remove_unfinished_uploads(self) -> None:
        """Delete what killed publishers left in the object store a day ago or earlier."""
        versions: dict[str, dict[str, ListedObject]] = {}
        for path, listed in self.storage.list_below(BUNDLES).items():
            version, _, name = path.partition("/")
            versions.setdefault(version, {})[name] = listed
        oldest = time.time() - _LEFTOVER_SECONDS
        for version, files in versions.items():
            if MANIFEST in files or any(file.modified_at > oldest for file in files.values()):
                continue
            for name in files:
                self.storage.delete(f"{BUNDLES}/{version}/{name}")


def _is_name(version: str) -> bool:
    """Return whether a version can be a directory here, and is no path to elsewhere."""
    is_name = _VERSION.fullmatch(version) is not None
    return is_name and len(version.encode("utf-8", "replace")) <= _MOST_BYTES_OF_A_NAME


def _lock_within(seconds: float, lock: int, goes_on: Callable[[], bool]) -> bool:
    """Lock an open file, waiting for others at most so long; return whether it is locked.

    Raises:
        InterruptedError: if it no longer goes on.
    """
    deadline = time.monotonic() + seconds
    while True:
        if not goes_on():
            raise InterruptedError("the store was closed while another process downloads")
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        else:
            return True


def _list_named(name: str, stored: StoredObject | None) -> list[str]:
    """List the versions that a pointer names; none if it is not as Kairos writes it."""
    if stored is None:
        return []
    if name == CURRENT:
        return [stored.content.decode("utf-8", "replace").strip()]
    try:
        traffic = Traffic.model_validate_json(stored.content)
    except ValidationError:
        return []  # copied as it is: a reader reports it as that of a local store
    return [version for version in (traffic.challenger, traffic.shadow) if version is not None]
