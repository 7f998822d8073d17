"""Putting a bundle into files; `Bundle.open` reads them."""

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import safetensors.torch
from pydantic import JsonValue

from model.bundle.attention_profile import write_profile
from model.bundle.catalog_file import write_catalog
from model.bundle.index import ItemIndex
from model.bundle.manifest import (
    CATALOG,
    INDEX,
    PROFILE,
    WEIGHTS,
    Counts,
    DataWindow,
    Manifest,
    digest_of,
)
from model.catalog import Catalog
from model.recommender import Recommender, RecommenderConfig


def write_bundle(
    directory: Path,
    *,
    recommender: Recommender,
    config: RecommenderConfig,
    catalog: Catalog,
    data_window: DataWindow,
    counts: Counts,
    metrics: dict[str, float],
    provenance: dict[str, JsonValue],
    attention_profile: pl.DataFrame | None = None,
) -> str:
    """Fill an empty directory with a bundle, and return the version it must be named."""
    names = [WEIGHTS, CATALOG, INDEX]
    if attention_profile is not None:
        write_profile(attention_profile, directory / PROFILE)
        names.append(PROFILE)
    vectors = recommender.index_vectors().detach().cpu().numpy()[1:]
    similarity = recommender.encoder.similarity
    state = {name: tensor.contiguous() for name, tensor in recommender.state_dict().items()}
    safetensors.torch.save_file(state, directory / WEIGHTS)
    write_catalog(catalog, directory / CATALOG)
    ItemIndex.build(vectors, similarity).save(directory / INDEX)
    manifest = Manifest(
        created_at=datetime.now(UTC),
        recommender=config,
        similarity=similarity,
        width=vectors.shape[1],
        max_history=config.encoder.max_history,
        data_window=data_window,
        counts=counts,
        metrics=metrics,
        provenance=provenance,
        files={name: digest_of(directory / name) for name in names},
    )
    return manifest.write(directory)
