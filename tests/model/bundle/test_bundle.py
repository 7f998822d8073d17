"""Bundles assembled in memory."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

from model.bundle import manifest
from model.bundle.bundle import UNPUBLISHED, Bundle
from model.bundle.index import ItemIndex
from model.bundle.manifest import INDEX, INVERTED_FILE, Counts, Manifest
from model.bundle.reading import read_bundle, require_consistent
from model.bundle.writing import write_bundle
from model.encoders import EncoderConfig
from model.errors import BundleError, ExportError
from model.exported_encoder import ExportedEncoder, export_encoder
from model.recommender import Recommender
from tests import tiny


def assemble(encoder: EncoderConfig = tiny.ENCODER) -> tuple[Recommender, Bundle]:
    config = tiny.recommender_config(encoder)
    recommender = tiny.recommender(config)
    bundle = Bundle.assemble(
        recommender=recommender,
        config=config,
        catalog=tiny.catalog(),
        data_window=tiny.WINDOW,
        counts=Counts(events=1000, users=30, items=tiny.ITEMS),
        metrics={"ndcg@10": 0.25},
        provenance={"seed": 0},
    )
    return recommender, bundle


def test_assembling_leaves_the_recommender_trainable() -> None:
    recommender, bundle = assemble()
    recommender.train()
    assert all(weight.requires_grad for weight in recommender.parameters())
    assert not any(weight.requires_grad for weight in bundle.recommender.parameters())
    assert not bundle.recommender.training
    with torch.no_grad():
        next(recommender.parameters()).zero_()
    assert next(bundle.recommender.parameters()).any()


def test_a_written_bundle_reads_as_it_was_assembled(tmp_path: Path) -> None:
    _, bundle = assemble()
    (tmp_path / "new").mkdir()
    version = write_bundle(bundle, tmp_path / "new")
    read = read_bundle((tmp_path / "new").rename(tmp_path / version))
    assert (bundle.version, read.version) == (UNPUBLISHED, version)
    written = {"created_at", "files"}
    assert read.manifest.model_dump(exclude=written) == bundle.manifest.model_dump(exclude=written)
    assert read.manifest.created_at >= bundle.manifest.created_at
    assert read.catalog.item_ids == bundle.catalog.item_ids
    for name, weight in bundle.recommender.state_dict().items():
        assert torch.equal(read.recommender.state_dict()[name], weight)


@pytest.mark.slow
def test_an_exported_encoder_is_read_with_its_bundle(tmp_path: Path) -> None:
    _, bundle = assemble()
    exported = bundle.with_exported_encoder()
    assert bundle.recommender.exported is None
    (tmp_path / "new").mkdir()
    version = write_bundle(exported, tmp_path / "new")
    read = read_bundle((tmp_path / "new").rename(tmp_path / version))
    assert read.recommender.exported is not None
    assert exported.recommender.exported is not None
    assert read.recommender.exported.content == exported.recommender.exported.content
    require_consistent(read)

    # Its program, beside other weights.
    other = tiny.recommender(tiny.recommender_config(), seed=5).eval().requires_grad_(False)
    other.exported = read.recommender.exported
    index = ItemIndex.build(other.index_vectors().numpy()[1:], other.encoder.similarity)
    with pytest.raises(BundleError, match="must encode as its weights do"):
        require_consistent(replace(read, recommender=other, index=index))


@pytest.mark.slow
def test_a_history_of_two_events_is_long_enough_for_a_program() -> None:
    encoder = tiny.ENCODER.model_copy(update={"max_history": 2})
    _, bundle = assemble(encoder)
    exported = bundle.with_exported_encoder()
    assert exported.recommender.exported is not None
    require_consistent(exported)


@pytest.mark.parametrize("change", ["train", "double", "load_state_dict"])
def test_a_change_of_parameters_forgets_the_program(change: str) -> None:
    recommender, _ = assemble()
    recommender.exported = cast("ExportedEncoder", SimpleNamespace())
    arguments = [recommender.state_dict()] if change == "load_state_dict" else []
    getattr(recommender, change)(*arguments)
    assert recommender.exported is None


@pytest.mark.slow
def test_a_program_that_encodes_otherwise_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    _, bundle = assemble()
    other = tiny.recommender(tiny.recommender_config(), seed=5).eval().requires_grad_(False)
    content = export_encoder(other.encoder, max_history=6)
    monkeypatch.setattr("model.bundle.bundle.export_encoder", lambda *_, **__: content)
    with pytest.raises(ExportError, match="must encode as its weights do"):
        bundle.with_exported_encoder()


def test_a_damaged_program_is_refused(tmp_path: Path) -> None:
    _, bundle = assemble()
    damaged = SimpleNamespace(content=b"no program")
    bundle.recommender.exported = cast("ExportedEncoder", damaged)
    (tmp_path / "new").mkdir()
    version = write_bundle(bundle, tmp_path / "new")
    with pytest.raises(BundleError, match="publish it again"):
        read_bundle((tmp_path / "new").rename(tmp_path / version))


def test_an_encoder_that_is_not_exportable_has_no_program() -> None:
    _, bundle = assemble()
    bundle.recommender.encoder.is_exportable = False
    assert bundle.with_exported_encoder() is bundle


def test_added_provenance_keeps_the_entries_there_were() -> None:
    _, bundle = assemble()
    more = bundle.with_provenance({"index_recall": 1.0})
    assert more.manifest.provenance == {"seed": 0, "index_recall": 1.0}
    assert bundle.manifest.provenance == {"seed": 0}


def write_with_inverted_file(directory: Path) -> Path:
    _, bundle = assemble()
    users = np.random.default_rng(0).normal(size=(50, bundle.index.width)).astype(np.float32)
    (directory / "new").mkdir()
    indexed = replace(bundle, index=bundle.index.with_inverted_file(users))
    version = write_bundle(indexed, directory / "new")
    return (directory / "new").rename(directory / version)


@pytest.mark.parametrize("is_mapped", [True, False])
def test_an_inverted_file_is_read_with_its_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_mapped: bool
) -> None:
    monkeypatch.setattr(manifest, "_MAPPED_FROM", 0 if is_mapped else 10**9)
    directory = write_with_inverted_file(tmp_path)
    index = read_bundle(directory).index
    assert index.inverted is not None
    assert len(index.inverted) == tiny.ITEMS
    require_consistent(read_bundle(directory))
    content = Manifest.read(directory).map_file(directory, INDEX)
    assert isinstance(content, np.memmap) == is_mapped


def test_a_mapped_file_that_was_altered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "_MAPPED_FROM", 0)
    directory = write_with_inverted_file(tmp_path)
    read = Manifest.read(directory)
    content = bytearray((directory / INVERTED_FILE).read_bytes())
    content[-1] ^= 1
    (directory / INVERTED_FILE).write_bytes(content)
    with pytest.raises(BundleError, match=r"candidates\.faiss .* altered"):
        read.map_file(directory, INVERTED_FILE)
    (directory / INVERTED_FILE).unlink()
    with pytest.raises(BundleError, match=r"candidates\.faiss .* not readable"):
        read.map_file(directory, INVERTED_FILE)


def test_a_bundle_with_the_inverted_file_of_another_is_refused(tmp_path: Path) -> None:
    bundle = read_bundle(write_with_inverted_file(tmp_path))
    users = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    for items, says in ((tiny.ITEMS, "must have the width"), (7, "same number of items")):
        vectors = np.random.default_rng(1).normal(size=(items, 3)).astype(np.float32)
        other = ItemIndex.build(vectors, "dot").with_inverted_file(users).inverted
        index = ItemIndex.build(bundle.index.vectors(np.arange(1, tiny.ITEMS + 1)), "dot")
        index.inverted = other
        with pytest.raises(BundleError, match=says):
            require_consistent(replace(bundle, index=index))
