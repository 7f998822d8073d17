"""Where a bundle store is: a directory, or a prefix of an object store."""

from pathlib import Path

from model.bundle.signature import NO_KEYS, BundleKeys
from model.store.mirrored import MirroredStore
from model.store.objects import ObjectStorage
from model.store.store import BundleStore

DEFAULT_CACHE = Path("var/bundle-cache")


def is_url(location: object) -> bool:
    """Return whether a location is a URL, and not a path."""
    return isinstance(location, str) and "://" in location


def open_bundle_store(
    location: Path | str, keys: BundleKeys = NO_KEYS, *, cache: Path = DEFAULT_CACHE
) -> BundleStore:
    """Open the store at a location; connect to nothing yet.

    Args:
        location: a directory, or a URL such as `s3://bucket/prefix`.
        cache: the directory of the local copy if it is a URL.

    Raises:
        BundleError: if it is a URL of another kind.
    """
    if is_url(location):
        return MirroredStore(ObjectStorage(str(location)), cache, keys)
    return BundleStore(Path(location), keys)
