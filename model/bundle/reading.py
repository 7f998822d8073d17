"""Reading a bundle from its directory."""

from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError

from model.bundle.attention_profile import read_profile
from model.bundle.bundle import Bundle
from model.bundle.catalog_file import read_catalog
from model.bundle.event_counts_file import read_event_counts
from model.bundle.index import ItemIndex
from model.bundle.item_map_file import read_item_map
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
    Manifest,
)
from model.bundle.signature import NO_KEYS, BundleKeys
from model.errors import BundleError, OutdatedBundleError
from model.exported_encoder import ExportedEncoder
from model.recommender import Recommender

_COMPARED_ROWS = 1_000
_TOLERANCE = 1e-2
"""Between a program and the weights, far above what other processors and orders of a sum do."""


def find_bundle(path: Path) -> Path:
    """Find a bundle's directory, or the newest bundle in the output directory of a run.

    Raises:
        BundleError: if there is none.
    """
    if (path / MANIFEST).is_file():
        return path
    # A hidden directory is the unfinished bundle of a killed run.
    bundles = sorted(manifest.parent for manifest in path.glob(f"[!.]*/{MANIFEST}"))
    if not bundles:
        raise BundleError(
            f"the path must be a bundle or contain one, but {path} does neither; "
            "run kairos train first, or check the path"
        )
    return bundles[-1]


def read_bundle(directory: Path, keys: BundleKeys = NO_KEYS) -> Bundle:
    """Verify a bundle's signature, then every file against its manifest, then load the files.

    Raises:
        BundleError: if it is not signed as it must be, or a file is missing, altered or foreign, or
            cannot be read.
        OutdatedBundleError: if the weights are of another version of the recommender.
    """
    manifest = Manifest.read(directory, keys)
    manifest.verify_files(directory)
    recommender = manifest.recommender.build()
    try:
        weights = safetensors.torch.load(manifest.read_file(directory, WEIGHTS))
    except SafetensorError as error:
        raise BundleError(
            f"weights must be a readable file of safetensors, but those of {directory.name} are "
            f"not ({error}); publish again"
        ) from error
    try:
        recommender.load_state_dict(weights)
    except RuntimeError as error:
        # Nothing was altered, so another version of the code wrote them. The first line is a title.
        first = str(error).splitlines()[:2][-1].strip()
        raise OutdatedBundleError(
            f"weights must fit the recommender of this version of Kairos, but those of "
            f"{directory.name} do not ({first}); train the model again with "
            "`kairos train` or `kairos retrain`, or serve it with the version that wrote it"
        ) from error
    recommender.longest_interval = manifest.data_window.days
    if recommender.wide is not None:
        recommender.counts = read_event_counts(manifest.read_file(directory, EVENT_COUNTS))
    if ENCODER in manifest.files:
        try:
            recommender.exported = ExportedEncoder(manifest.read_file(directory, ENCODER))
        except ValueError as error:
            raise BundleError(f"{directory.name}: {error}; publish it again") from error
    return Bundle(
        version=directory.name,
        manifest=manifest,
        catalog=read_catalog(manifest.read_file(directory, CATALOG)),
        recommender=recommender.eval().requires_grad_(False),
        index=_open_item_index(directory, manifest),
        attention_profile=(
            read_profile(manifest.read_file(directory, PROFILE))
            if PROFILE in manifest.files
            else None
        ),
        item_map=(
            read_item_map(manifest.read_file(directory, ITEM_MAP), items=manifest.counts.items)
            if ITEM_MAP in manifest.files
            else None
        ),
    )


def _open_item_index(directory: Path, manifest: Manifest) -> ItemIndex:
    inverted = None
    if INVERTED_FILE in manifest.files:
        inverted = manifest.map_file(directory, INVERTED_FILE)
    return ItemIndex.load(manifest.map_file(directory, INDEX), inverted)


def require_consistent(bundle: Bundle) -> None:
    """Check that the parts of a bundle fit together and that its weights are finite.

    Raises:
        BundleError: naming the parts that do not fit.
    """
    vectors = bundle.recommender.index_vectors().numpy()[1:]
    catalog, index, version = bundle.catalog, bundle.index, bundle.version
    sizes = {len(catalog), len(index), len(vectors), bundle.manifest.counts.items}
    if index.inverted is not None:
        sizes.add(len(index.inverted))
    if len(sizes) != 1:
        raise BundleError(
            "catalog, index, item table and manifest must have the same number of items, "
            f"but those of {version} have {sorted(sizes)}; publish again"
        )
    if not _are_finite(bundle.recommender):
        raise BundleError(
            f"weights must be finite, but {version} holds NaN or infinity; train again"
        )
    _require_same_encoder(bundle)
    if index.inverted is not None and index.inverted.width != index.width:
        raise BundleError(
            f"an inverted file must have the width of the index, {index.width}, but that of "
            f"{version} has {index.inverted.width}; publish again"
        )
    rows = np.arange(1, min(len(catalog), _COMPARED_ROWS) + 1)
    if index.width != vectors.shape[1] or not np.array_equal(
        index.vectors(rows), vectors[rows - 1]
    ):
        raise BundleError(
            f"an index must hold the item table's vectors, but that of {version} does not; "
            "publish again"
        )


def _are_finite(recommender: Recommender) -> bool:
    """Return whether all weights are finite; in a buffer, the logarithm of 0 is -inf."""
    buffers = (tensor for tensor in recommender.buffers() if tensor.is_floating_point())
    return all(tensor.isfinite().all() for tensor in recommender.parameters()) and all(
        (tensor < torch.inf).all() for tensor in buffers
    )


def _require_same_encoder(bundle: Bundle) -> None:
    """Compare the program of the encoder with its weights; a run has done so more strictly."""
    try:
        difference = bundle.measure_exported()
    except Exception as error:  # ONNX Runtime has no class for all of its errors
        raise BundleError(
            "the program of an encoder must run where its weights do, but that of "
            f"{bundle.version} does not ({error}); publish again"
        ) from error
    if difference > _TOLERANCE:
        raise BundleError(
            "the program of an encoder must encode as its weights do, but that of "
            f"{bundle.version} differs by {difference:.1g}; publish again"
        )
