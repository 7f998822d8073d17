"""The manifest of a bundle: what it holds, and the digests that verify it."""

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue, NonNegativeInt, PositiveInt, ValidationError

from model.clock import MICROSECONDS_PER_DAY
from model.config import Config
from model.errors import BundleError, OutdatedBundleError
from model.recommender import RecommenderConfig

MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
CATALOG = "catalog.parquet"
INDEX = "items.faiss"
PROFILE = "attention_profile.parquet"
EVENT_COUNTS = "event_counts.safetensors"
_KNOWN_FILES = frozenset({WEIGHTS, CATALOG, INDEX, PROFILE, EVENT_COUNTS})
FORMAT_VERSION = 2
"""2: parameters have other names than in format 1."""
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


class Manifest(Config):
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
    def read(cls, directory: Path) -> "Manifest":
        """Read and verify the manifest of a bundle against the version in its directory's name.

        Raises:
            OutdatedBundleError: if it is of an older format.
            BundleError: if it is missing, altered, or of a newer format.
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
        _require_no_link(directory)
        for path in sorted(directory.iterdir()):
            _require_no_link(path)
        present = {path.name for path in directory.iterdir()} - {MANIFEST}
        if unknown := sorted(self.files.keys() - _KNOWN_FILES):
            raise BundleError(
                f"a bundle holds {', '.join(sorted(_KNOWN_FILES))} and nothing else, but the "
                f"manifest of {directory.name} names {unknown[0][:80]!r}; publish it again"
            )
        for name in sorted(present | self.files.keys()):
            expected = self.files.get(name)
            found = compute_digest(directory / name) if (directory / name).is_file() else None
            if expected is None or found != expected:
                state = "missing" if found is None else "altered"
                raise BundleError(
                    f"every file of a bundle must have the digest of its manifest, but {name} of "
                    f"{directory.name} is {'foreign' if expected is None else state}; "
                    "publish it again"
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
