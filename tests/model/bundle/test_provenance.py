"""The provenance entries that the service and the gate read."""

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from model.bundle.kernels import compute_kernel_curves
from model.bundle.manifest import Manifest
from model.bundle.provenance import (
    EPOCHS,
    INDEX_RECALL,
    INITIAL_KERNELS,
    P95_SECONDS,
    Epoch,
    ProvenanceEntry,
)
from model.errors import ProvenanceError
from model.store.opening import open_predictor
from tests import tiny

EPOCH = Epoch(epoch=1, loss=2.5, validation={"ndcg@10": 0.125}, seconds=0.5)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    """A manifest without any of these entries."""
    return open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("bundle"))).bundle.manifest


def rewrite(manifest: Manifest, provenance: dict[str, JsonValue], directory: Path) -> Manifest:
    """The manifest with another provenance, written and read again."""
    directory.mkdir()
    version = manifest.model_copy(update={"provenance": provenance}).write(directory)
    return Manifest.read(directory.rename(directory.parent / version))


def test_entries_survive_a_round_trip(manifest: Manifest, tmp_path: Path) -> None:
    curves = compute_kernel_curves(tiny.recommender(tiny.recommender_config()), span_days=30.0)
    assert len(curves) == 1
    read = rewrite(
        manifest,
        EPOCHS.write((EPOCH,))
        | INITIAL_KERNELS.write(curves)
        | INDEX_RECALL.write(0.995)
        | P95_SECONDS.write(0.004),
        tmp_path / "written",
    )
    assert EPOCHS.read(read) == (EPOCH,)
    assert INITIAL_KERNELS.read(read) == curves
    assert INDEX_RECALL.read(read) == 0.995
    assert P95_SECONDS.read(read) == 0.004


@pytest.mark.parametrize(
    "entry",
    [EPOCHS, INITIAL_KERNELS, INDEX_RECALL, P95_SECONDS],
    ids=["epochs", "initial_kernels", "index_recall", "p95_seconds"],
)
def test_a_missing_entry_is_named_in_the_error(
    manifest: Manifest, entry: ProvenanceEntry[Any]
) -> None:
    with pytest.raises(ProvenanceError, match=f"published without {entry.name}"):
        entry.read(manifest)


@pytest.mark.parametrize(
    ("loss", "where"),
    [(math.inf, "epochs.0.loss"), ("low", "epochs.0.loss"), ([], "epochs.0.loss")],
)
def test_an_invalid_entry_is_named_in_the_error(
    manifest: Manifest, loss: JsonValue, where: str
) -> None:
    garbage = {"epochs": [{"epoch": 1, "loss": loss, "validation": {}, "seconds": 1.0}]}
    with pytest.raises(ProvenanceError, match=where):
        EPOCHS.read(manifest.model_copy(update={"provenance": garbage}))


def test_unknown_fields_of_an_epoch_are_ignored(manifest: Manifest, tmp_path: Path) -> None:
    newer: JsonValue = {
        "epoch": 1,
        "loss": 2.5,
        "validation": {"ndcg@10": 0.125},
        "seconds": 0.5,
        "rate": 0.1,
    }
    assert EPOCHS.read(rewrite(manifest, {"epochs": [newer]}, tmp_path / "newer")) == (EPOCH,)
