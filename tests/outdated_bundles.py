"""Bundles of the previous format, made from those of this one."""

import hashlib
import json
from pathlib import Path

from model.bundle.manifest import DIGEST_CHARACTERS, FORMAT_VERSION, MANIFEST
from model.store.store import CURRENT, BundleStore


def age_current(store: BundleStore) -> str:
    """Make the current version one of the previous bundle format; returns its new name."""
    aged = age_bundle(store.root / str(store.read_current()))
    (store.root / CURRENT).write_text(f"{aged.name}\n")
    return aged.name


def age_bundle(directory: Path) -> Path:
    """Make a bundle one of the previous format; returns its directory, whose name changes."""
    content = json.loads((directory / MANIFEST).read_text())
    (directory / MANIFEST).write_text(json.dumps(content | {"format_version": FORMAT_VERSION - 1}))
    digest = hashlib.sha256((directory / MANIFEST).read_bytes()).hexdigest()[:DIGEST_CHARACTERS]
    return directory.rename(directory.with_name(f"{directory.name.partition('-')[0]}-{digest}"))
