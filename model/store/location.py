"""Where a bundle store is: a directory, or a prefix of an object store."""

from pathlib import Path
from typing import TYPE_CHECKING

from model.bundle.signature import NO_KEYS, BundleKeys

if TYPE_CHECKING:
    from model.store.store import BundleStore

DEFAULT_CACHE = Path("var/bundle-cache")


def is_url(location: object) -> bool:
    """Return whether a location is a URL, and not a path."""
    return isinstance(location, str) and "://" in location


def open_bundle_store(
    location: Path | str,
    keys: BundleKeys = NO_KEYS,
    *,
    cache: Path = DEFAULT_CACHE,
    patience_seconds: float | None = None,
) -> "BundleStore":
    """Open the store at a location; connect to nothing yet.

    Args:
        location: a directory, or a URL such as `s3://bucket/prefix`.
        cache: the directory of the local copy if it is a URL.
        patience_seconds: how long a change waits then, while another process of this machine
            downloads; by default as long as a command does.

    Raises:
        BundleError: if it is a URL of another kind.
    """
    # Settings are read by processes that open no bundle, and this imports PyTorch.
    from model.store.mirrored import PATIENCE_SECONDS, MirroredStore  # noqa: PLC0415
    from model.store.objects import ObjectStorage  # noqa: PLC0415
    from model.store.store import BundleStore  # noqa: PLC0415

    if is_url(location):
        return MirroredStore(
            ObjectStorage(str(location)),
            cache,
            keys,
            patience_seconds=PATIENCE_SECONDS if patience_seconds is None else patience_seconds,
        )
    return BundleStore(Path(location), keys)
