"""Writing a bundle into a directory."""

from datetime import UTC, datetime
from pathlib import Path

import safetensors.torch

from model.bundle.attention_profile import write_profile
from model.bundle.bundle import Bundle
from model.bundle.catalog_file import write_catalog
from model.bundle.event_counts_file import write_event_counts
from model.bundle.manifest import (
    CATALOG,
    EVENT_COUNTS,
    INDEX,
    PROFILE,
    WEIGHTS,
    compute_digest,
)


def write_bundle(bundle: Bundle, directory: Path) -> str:
    """Write a bundle into an empty directory, and return the version it must be named.

    The manifest is written last, with the time of writing and the digests of the files.
    """
    state = bundle.recommender.state_dict()
    contiguous = {name: tensor.contiguous() for name, tensor in state.items()}
    safetensors.torch.save_file(contiguous, directory / WEIGHTS)
    write_catalog(bundle.catalog, directory / CATALOG)
    bundle.index.save(directory / INDEX)
    if bundle.attention_profile is not None:
        write_profile(bundle.attention_profile, directory / PROFILE)
    if bundle.recommender.counts is not None:
        write_event_counts(bundle.recommender.counts, directory / EVENT_COUNTS)
    files = {file.name: compute_digest(file) for file in sorted(directory.iterdir())}
    written = {"created_at": datetime.now(UTC), "files": files}
    return bundle.manifest.model_copy(update=written).write(directory)
