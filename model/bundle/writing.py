"""Writing a bundle into a directory."""

import os
from datetime import UTC, datetime
from pathlib import Path

import safetensors.torch

from model.bundle.atomic import replace_file
from model.bundle.attention_profile import write_profile
from model.bundle.bundle import Bundle
from model.bundle.catalog_file import write_catalog
from model.bundle.event_counts_file import write_event_counts
from model.bundle.item_map_file import write_item_map
from model.bundle.manifest import (
    CATALOG,
    ENCODER,
    EVENT_COUNTS,
    INDEX,
    INVERTED_FILE,
    ITEM_MAP,
    MANIFEST,
    PROFILE,
    WEIGHTS,
    compute_digest,
    read_manifest_content,
    verify_digests,
)
from model.bundle.signature import NO_KEYS, SIGNATURE, BundleKeys


def write_bundle(bundle: Bundle, directory: Path, keys: BundleKeys = NO_KEYS) -> str:
    """Write a bundle into an empty directory, and return the version it must be named.

    The manifest is written last, with the time of writing and the digests of the files; then its
    signature, if there is a key.
    """
    state = bundle.recommender.state_dict()
    contiguous = {name: tensor.contiguous() for name, tensor in state.items()}
    safetensors.torch.save_file(contiguous, directory / WEIGHTS)
    write_catalog(bundle.catalog, directory / CATALOG)
    bundle.index.save(directory / INDEX)
    if bundle.index.inverted is not None:
        bundle.index.inverted.save(directory / INVERTED_FILE)
    if bundle.recommender.exported is not None:
        (directory / ENCODER).write_bytes(bundle.recommender.exported.content)
    if bundle.attention_profile is not None:
        write_profile(bundle.attention_profile, directory / PROFILE)
    if bundle.item_map is not None:
        write_item_map(bundle.item_map, directory / ITEM_MAP)
    if bundle.recommender.counts is not None:
        write_event_counts(bundle.recommender.counts, directory / EVENT_COUNTS)
    files = {file.name: compute_digest(file) for file in sorted(directory.iterdir())}
    written = {"created_at": datetime.now(UTC), "files": files}
    version = bundle.manifest.model_copy(update=written).write(directory)
    if keys:
        (directory / SIGNATURE).write_bytes(keys.sign((directory / MANIFEST).read_bytes()))
    return version


def sign_bundle(directory: Path, keys: BundleKeys, temporary: Path) -> None:
    """Sign a bundle whose digests are right, of any format; replaces an earlier signature.

    Args:
        temporary: a path on the same file system that does not exist.

    Raises:
        BundleError: if a file was altered.
        BundleKeyError: if there is no key.
    """
    verify_digests(directory)
    arrived = directory.stat()
    replace_file(directory / SIGNATURE, temporary, keys.sign(read_manifest_content(directory)))
    # A store lists versions of one second by the times of their directories.
    os.utime(directory, ns=(arrived.st_atime_ns, arrived.st_mtime_ns))
