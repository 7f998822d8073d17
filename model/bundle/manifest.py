"""The manifest of a bundle: what it holds, and the digests that verify it."""

import hashlib
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AwareDatetime,
    BaseModel,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
)

from model.bundle.signature import NO_KEYS, SIGNATURE, BundleKeys
from model.clock import MICROSECONDS_PER_DAY
from model.config import Config, Measurements
from model.errors import BundleError, OutdatedBundleError
from model.recommender import RecommenderConfig

MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
CATALOG = "catalog.parquet"
INDEX = "items.faiss"
INVERTED_FILE = "candidates.faiss"
ENCODER = "encoder.onnx"
PROFILE = "attention_profile.parquet"
EVENT_COUNTS = "event_counts.safetensors"
ITEM_MAP = "item_map.safetensors"
_KNOWN_FILES = frozenset(
    {WEIGHTS, CATALOG, INDEX, INVERTED_FILE, ENCODER, PROFILE, EVENT_COUNTS, ITEM_MAP}
)
FORMAT_VERSION = 2
"""2: parameters have other names than in format 1."""
_MAPPED_FROM = 64 * 2**20
"""Bytes from which a file that is used in place is mapped instead of read."""
DIGEST_CHARACTERS = 12
"""Hexadecimal characters of the manifest's SHA-256 at the end of a version."""


class DataWindow(Config):
    """The span of the events a model was trained on, epoch microseconds, both ends included."""

    first_at: int
    last_at: int

    @property
    def length(self) -> int:
        """Microseconds from the first event to the last."""
        return self.last_at - self.first_at

    @property
    def days(self) -> float:
        """Days from the first event to the last."""
        return self.length / MICROSECONDS_PER_DAY


class Counts(Config):
    """How many events, users and items a model was trained on."""

    events: NonNegativeInt
    users: NonNegativeInt
    items: PositiveInt


class Manifest(Measurements):
    """The description of a bundle.

    A bundle's version ends in the digest of its manifest, and the manifest holds the digest of
    every other file, so the version verifies every byte.
    """

    format_version: PositiveInt = FORMAT_VERSION
    created_at: AwareDatetime
    recommender: RecommenderConfig
    similarity: Literal["dot", "l2"]
    width: PositiveInt
    """Width of user and item vectors in the index."""
    max_history: PositiveInt
    data_window: DataWindow
    counts: Counts
    metrics: dict[str, float] = Field(default_factory=dict)
    """Test metrics by name; those without the query time end in `_withheld`."""
    provenance: dict[str, JsonValue] = Field(default_factory=dict)
    """How the model was trained: recipe, seed, duration, software."""
    files: dict[str, str]
    """SHA-256 of every other file of the bundle."""

    def write(self, directory: Path) -> str:
        """Write the manifest, and return the version that its bundle must be named."""
        content = self.model_dump_json(indent=2).encode()
        (directory / MANIFEST).write_bytes(content)
        stamp = self.created_at.strftime("%Y%m%dT%H%M%SZ")
        return f"{stamp}-{hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]}"

    @classmethod
    def read(cls, directory: Path, keys: BundleKeys = NO_KEYS) -> "Manifest":
        """Read and verify the manifest of a bundle against the version in its directory's name.

        Args:
            keys: verify its signature before anything of it is parsed.

        Raises:
            OutdatedBundleError: if it is of an older format.
            BundleError: if it is missing, altered, not signed as it must be, or of a newer format.
        """
        content = read_manifest_content(directory)
        keys.verify(directory, content)
        try:
            manifest = cls.model_validate_json(content)
        except ValidationError as error:
            raise BundleError(
                f"a manifest must be of format {FORMAT_VERSION}, but that of "
                f"{directory.name} does not read as one ({error.error_count()} problems, first: "
                f"{error.errors()[0]['msg']}); open it with the version of the code that wrote it"
            ) from error
        if manifest.format_version > FORMAT_VERSION:
            raise BundleError(
                f"a bundle must be of format {FORMAT_VERSION}, but {directory.name} is of format "
                f"{manifest.format_version}; upgrade Kairos"
            )
        if manifest.format_version < FORMAT_VERSION:
            raise OutdatedBundleError(
                f"a bundle must be of format {FORMAT_VERSION}, but {directory.name} is of format "
                f"{manifest.format_version}; train the model again with `kairos train` or `kairos "
                "retrain`, or serve it with the version of the code that wrote it"
            )
        return manifest

    def verify_files(self, directory: Path) -> None:
        """Compare every file with its digest, and refuse files the manifest does not name.

        Raises:
            BundleError: naming the first file that is missing, altered or foreign, or a link.
        """
        if unknown := sorted(self.files.keys() - _KNOWN_FILES):
            raise BundleError(
                f"a bundle holds {', '.join(sorted(_KNOWN_FILES))} and nothing else, but the "
                f"manifest of {directory.name} names {unknown[0][:80]!r}; publish it again"
            )
        _verify_files(directory, self.files)

    def map_file(self, directory: Path, name: str) -> NDArray[np.uint8]:
        """Open a file that is used in place, and compare it with its digest.

        A large one is mapped into memory: its pages come from the disk as they are needed, and all
        processes of a machine share them. What changes in it afterwards is not noticed; removing it
        does no harm.

        Raises:
            BundleError: if it is missing or altered.
        """
        try:
            if (directory / name).stat().st_size < _MAPPED_FROM:
                return np.frombuffer(self.read_file(directory, name), dtype=np.uint8)
            content: NDArray[np.uint8] = np.memmap(directory / name, dtype=np.uint8, mode="r")
        except OSError as error:
            raise _build_file_error(directory, name, f"not readable ({error.strerror})") from error
        if hashlib.sha256(content.data).hexdigest() != self.files.get(name):
            raise _build_file_error(directory, name, "altered")
        return content

    def read_file(self, directory: Path, name: str) -> bytes:
        """Read a file whole, and compare what was read with its digest.

        What is parsed from the result is what was verified, even if the file is replaced meanwhile.

        Raises:
            BundleError: if it is missing or altered.
        """
        try:
            content = (directory / name).read_bytes()
        except OSError as error:
            raise _build_file_error(directory, name, f"not readable ({error.strerror})") from error
        if hashlib.sha256(content).hexdigest() != self.files.get(name):
            raise _build_file_error(directory, name, "altered")
        return content


class _FileDigests(BaseModel):
    """What a manifest of any format says about the other files."""

    files: dict[str, str]


def verify_digests(directory: Path, keys: BundleKeys = NO_KEYS) -> None:
    """Verify a bundle of any format by its signature and digests, without parsing its files.

    Raises:
        BundleError: naming the first file that is missing, altered or foreign.
    """
    content = read_manifest_content(directory)
    keys.verify(directory, content)
    try:
        digests = _FileDigests.model_validate_json(content)
    except ValidationError as error:
        raise _build_file_error(directory, MANIFEST, "not a manifest") from error
    _verify_files(directory, digests.files)


def read_manifest_content(directory: Path) -> bytes:
    """Read a manifest, and compare its digest with the version in its directory's name.

    Raises:
        BundleError: if it is missing, or was altered or renamed.
    """
    try:
        content = (directory / MANIFEST).read_bytes()
    except OSError as error:
        raise BundleError(
            f"a bundle needs a readable {MANIFEST}, but {directory.name} has none ({error}); "
            "publish it again"
        ) from error
    digest = hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]
    if not directory.name.endswith(digest):
        raise BundleError(
            f"a version must end in its manifest's digest, but {directory.name} holds a "
            f"manifest of digest {digest}; it was altered or renamed, publish it again"
        )
    return content


def _verify_files(directory: Path, digests: dict[str, str]) -> None:
    _require_no_link(directory)
    for path in sorted(directory.iterdir()):
        _require_no_link(path)
    present = {path.name for path in directory.iterdir()} - {MANIFEST, SIGNATURE}
    for name in sorted(present | digests.keys()):
        expected = digests.get(name)
        found = compute_digest(directory / name) if (directory / name).is_file() else None
        if expected is None:
            raise _build_file_error(directory, name, "foreign")
        if found != expected:
            raise _build_file_error(directory, name, "missing" if found is None else "altered")


def _build_file_error(directory: Path, name: str, state: str) -> BundleError:
    return BundleError(
        f"every file of a bundle must have the digest of its manifest, but {name} of "
        f"{directory.name} is {state}; publish it again"
    )


def _require_no_link(path: Path) -> None:
    # The target of a link can change after it was verified.
    if path.is_symlink():
        raise BundleError(
            f"a bundle is a directory of files, but {path.name} is a link; publish it again"
        )


def compute_digest(file: Path) -> str:
    """Compute the SHA-256 of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
