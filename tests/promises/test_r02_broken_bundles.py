"""R2: a broken bundle is refused with 409, and the active version stays in place."""

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import faiss
import numpy as np
import polars as pl
import pytest
import safetensors.torch
import torch

from app.settings import Settings
from model.bundle.manifest import CATALOG, INDEX, MANIFEST, WEIGHTS, Manifest, compute_digest
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client, recommend, running
from tests.promises.figures import Figures

FILES = (MANIFEST, WEIGHTS, CATALOG, INDEX)
LISTED = (WEIGHTS, CATALOG, INDEX)

Break = Callable[[Path], Path | None]
"""Breaks the bundle in a directory; returns its new directory if it is renamed."""


class Tracer:
    """Creates a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._trace,)


def sign_manifest(directory: Path, **changes: object) -> Path:
    """Rewrite the manifest with matching digests, so that only the deeper fault remains."""
    content = json.loads((directory / MANIFEST).read_text())
    names = [name for name in content["files"] if (directory / name).is_file()]
    content["files"] = {name: compute_digest(directory / name) for name in names}
    version = Manifest.model_validate(content).write(directory)
    content = {**json.loads((directory / MANIFEST).read_text()), **changes}
    return rename_by_digest(directory, content, version)


def rename_by_digest(directory: Path, content: object, version: str) -> Path:
    """Write a manifest, and rename the bundle to the version of its digest."""
    (directory / MANIFEST).write_text(json.dumps(content))
    digest = compute_digest(directory / MANIFEST)[:12]
    return directory.rename(directory.with_name(f"{version.rpartition('-')[0]}-{digest}"))


def rewrite_weights(directory: Path, alter: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    weights = safetensors.torch.load_file(directory / WEIGHTS)
    alter(weights)
    safetensors.torch.save_file(weights, directory / WEIGHTS)
    return sign_manifest(directory)


def rewrite_recommender(directory: Path, **changes: object) -> Path:
    recommender = json.loads((directory / MANIFEST).read_text())["recommender"]
    return sign_manifest(directory, recommender={**recommender, **changes})


def truncate(name: str, size: float) -> Break:
    return lambda directory: os.truncate(
        directory / name, int((directory / name).stat().st_size * size)
    )


def flip(name: str, fraction: float) -> Break:
    def flip_one_byte(directory: Path) -> None:
        content = bytearray((directory / name).read_bytes())
        content[int((len(content) - 1) * fraction)] ^= 0xFF
        (directory / name).write_bytes(content)

    return flip_one_byte


def remove(name: str) -> Break:
    return lambda directory: (directory / name).unlink()


def remove_and_sign(name: str) -> Break:
    def remove_file(directory: Path) -> Path:
        (directory / name).unlink()
        return sign_manifest(directory)

    return remove_file


def fill_row(value: float) -> Break:
    return lambda directory: rewrite_weights(
        directory, lambda weights: weights["items.weight"][3].fill_(value)
    )


def set_encoder_nan(directory: Path) -> Path:
    def set_nan(weights: dict[str, torch.Tensor]) -> None:
        name = next(name for name in sorted(weights) if name.startswith("encoder."))
        weights[name].view(-1)[0] = torch.nan

    return rewrite_weights(directory, set_nan)


def change_config_dim(directory: Path) -> Path:
    encoder = json.loads((directory / MANIFEST).read_text())["recommender"]["encoder"]
    return rewrite_recommender(directory, encoder={**encoder, "dim": 16})


def narrow_weights(directory: Path) -> Path:
    def narrow(weights: dict[str, torch.Tensor]) -> None:
        weights["items.weight"] = weights["items.weight"][:, :4].contiguous()

    return rewrite_weights(directory, narrow)


def replace_index(dim: int, items: int) -> Break:
    def write(directory: Path) -> Path:
        index = faiss.IndexFlatIP(dim)
        index.add(np.zeros((items, dim), np.float32))
        faiss.write_index(index, str(directory / INDEX))
        return sign_manifest(directory)

    return write


def shorten_catalog(directory: Path) -> Path:
    catalog = pl.read_parquet(directory / CATALOG)
    catalog.head(len(catalog) - 1).write_parquet(directory / CATALOG)
    return sign_manifest(directory)


def duplicate_item(directory: Path) -> Path:
    catalog = pl.read_parquet(directory / CATALOG)
    pl.concat([catalog.head(1), catalog.head(len(catalog) - 1)]).write_parquet(directory / CATALOG)
    return sign_manifest(directory)


def raise_format(directory: Path) -> Path:
    return sign_manifest(directory, format_version=3)


def add_field(directory: Path) -> Path:
    return sign_manifest(directory, quantum_weights=True)


def set_unknown_encoder(directory: Path) -> Path:
    return rewrite_recommender(directory, encoder={"kind": "oracle"})


def write_invalid_json(directory: Path) -> Path:
    (directory / MANIFEST).write_bytes(b"\xff\xfe{")
    digest = compute_digest(directory / MANIFEST)[:12]
    return directory.rename(directory.with_name(f"{directory.name.rpartition('-')[0]}-{digest}"))


def write_nested_manifest(directory: Path) -> Path:
    (directory / MANIFEST).write_text("[" * 100_000)
    digest = compute_digest(directory / MANIFEST)[:12]
    return directory.rename(directory.with_name(f"{directory.name.rpartition('-')[0]}-{digest}"))


def claim_many_items(directory: Path) -> Path:
    return rewrite_recommender(directory, items=10**15)


def add_file(directory: Path) -> None:
    (directory / "notes.txt").write_text("mine")


def add_directory(directory: Path) -> None:
    (directory / "sub").mkdir()


def add_pickle(directory: Path) -> None:
    (directory / "model.pkl").write_bytes(pickle.dumps(Tracer(directory.parent.parent / "trace")))


def add_signed_pickle(directory: Path) -> Path:
    add_pickle(directory)
    files = {name: compute_digest(directory / name) for name in (*LISTED, "model.pkl")}
    return sign_manifest(directory, files=files)


def write_pickle(name: str) -> Break:
    def write(directory: Path) -> Path:
        content = pickle.dumps(Tracer(directory.parent.parent / "trace"))
        (directory / name).write_bytes(content)
        return sign_manifest(directory)

    return write


def write_torch_pickle(directory: Path) -> Path:
    torch.save({"items.weight": Tracer(directory.parent.parent / "trace")}, directory / WEIGHTS)
    return sign_manifest(directory)


def link_out(name: str) -> Break:
    """Replace a file by a link to the same content outside, which can change after verification."""

    def link(directory: Path) -> None:
        elsewhere = directory.parent.parent / f"{directory.name}-{name}"
        shutil.move(directory / name, elsewhere)
        (directory / name).symlink_to(elsewhere)

    return link


def link_directory(directory: Path) -> None:
    elsewhere = directory.parent.parent / directory.name
    shutil.move(directory, elsewhere)
    directory.symlink_to(elsewhere)


def link_nowhere(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    (directory / WEIGHTS).symlink_to("nowhere")


def replace_by_pipe(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    os.mkfifo(directory / WEIGHTS)


def replace_by_directory(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    (directory / WEIGHTS).mkdir()


def list_path(path: str) -> Break:
    def add_path(directory: Path) -> Path:
        target = directory.parent.parent / "outside"
        target.write_text("outside")
        files = {name: compute_digest(directory / name) for name in LISTED}
        return sign_manifest(directory, files={**files, path: compute_digest(target)})

    return add_path


def rename(directory: Path) -> Path:
    return directory.rename(directory.with_name("20990101T000000Z-000000000000"))


BROKEN: dict[str, Break] = {
    **{f"{name} truncated to {s:.0%}": truncate(name, s) for name in FILES for s in (0, 0.5, 0.99)},
    **{
        f"a byte of {name} flipped at {p:.0%}": flip(name, p) for name in FILES for p in (0, 0.5, 1)
    },
    **{f"{name} missing": remove(name) for name in LISTED},
    **{f"{name} missing, with matching digests": remove_and_sign(name) for name in LISTED},
    "a NaN among the items": fill_row(float("nan")),
    "an infinity among the items": fill_row(float("inf")),
    "a NaN in the encoder": set_encoder_nan,
    "the configuration has another dim": change_config_dim,
    "the weights are of another dim": narrow_weights,
    "the index is of another dim": replace_index(4, 20),
    "the index holds other vectors": replace_index(9, 20),
    "the index holds too many items": replace_index(9, 21),
    "the catalog is shorter": shorten_catalog,
    "the catalog names an item twice": duplicate_item,
    "a newer format": raise_format,
    "a field of a newer format": add_field,
    "an unknown encoder": set_unknown_encoder,
    "a manifest that is not JSON": write_invalid_json,
    "a deeply nested manifest": write_nested_manifest,
    "more items than memory": claim_many_items,
    "a foreign file": add_file,
    "a foreign directory": add_directory,
    "an added pickle": add_pickle,
    "an added pickle, listed in the manifest": add_signed_pickle,
    **{f"a pickle for {name}": write_pickle(name) for name in LISTED},
    "a pickle of torch for the weights": write_torch_pickle,
    **{f"{name} is a link out of the bundle": link_out(name) for name in FILES},
    "the bundle is a link out of the store": link_directory,
    "a dangling link for the weights": link_nowhere,
    "a pipe for the weights": replace_by_pipe,
    "a directory for the weights": replace_by_directory,
    "a path upwards in the manifest": list_path("../../outside"),
    "an absolute path in the manifest": list_path("/etc/hostname"),
    "a version that is not its own": rename,
}


@pytest.fixture(scope="module")
def service(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that polls the store rarely, so that only requests open bundles."""
    directory = tmp_path_factory.mktemp("broken")
    shutil.copytree(published, directory / "bundles")
    settings = Settings(
        database_url=f"sqlite:///{directory / 'kairos.db'}",
        bundle_store=directory / "bundles",
        poll_interval_seconds=3600.0,
    )
    with running(settings) as client:
        yield client


@pytest.fixture(scope="module")
def refused_versions(figures: Figures) -> Iterator[list[str]]:
    """The broken versions that were refused so far."""
    versions: list[str] = []
    yield versions
    figures.record("R2", "broken bundles", ways=len(BROKEN), refused=len(versions))


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_bundle_is_refused(
    service: Client, refused_versions: list[str], broken: Break
) -> None:
    client, bundle_store = service, service.app.state.context.store.root
    old = recommend(client)
    directory = bundle_store / tiny_bundle.publish(bundle_store, seed=2, activate=False)
    version = (broken(directory) or directory).name
    for response in (
        client.post(f"/v1/models/{version}/activate", {}),
        client.put("/v1/models/traffic", {"challenger": version, "share": 1.0}),
        client.put("/v1/models/traffic", {"shadow": version}),
    ):
        assert response.status_code == 409, response.text
        assert response.json()["code"] == "model_refused"
        assert len(response.json()["detail"]) < 1000
    answer = recommend(client)
    assert (answer["model_version"], answer["items"]) == (old["model_version"], old["items"])
    assert BundleStore(bundle_store).read_current() == old["model_version"]
    changes = client.get("/v1/models/changes").json()
    assert changes == {"changes": [], "rollback_version": None}
    assert client.get("/health/ready").status_code == 200
    assert client.get("/v1/models").status_code == 200
    assert client.get(f"/v1/models/{version}").status_code in {200, 409}
    assert not (bundle_store.parent / "trace").exists()
    refused_versions.append(version)


@pytest.mark.parametrize(
    "rewrite", [sign_manifest, lambda directory: rewrite_weights(directory, len)]
)
def test_a_rewritten_valid_bundle_is_activated(service: Client, rewrite: Break) -> None:
    """The refusals above are then caused by the faults, not by the rewriting."""
    old = recommend(service)["model_version"]
    store: BundleStore = service.app.state.context.store
    directory = rewrite(store.root / tiny_bundle.publish(store.root, seed=2, activate=False))
    assert directory is not None
    traffic = {"challenger": directory.name, "share": 1.0}
    assert service.put("/v1/models/traffic", traffic).status_code == 200
    assert service.put("/v1/models/traffic", {}).status_code == 200
    assert recommend(service)["model_version"] == old


def test_a_bundle_without_a_manifest_is_not_found(service: Client) -> None:
    bundle_store = service.app.state.context.store.root
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    (bundle_store / version / MANIFEST).unlink()
    assert service.post(f"/v1/models/{version}/activate", {}).status_code == 404


@pytest.mark.parametrize(
    "version", ["..", ".", "%2e%2e", "..%2f..%2fetc", "%00", "CURRENT", ".lock"]
)
def test_a_path_for_a_version_is_not_found(service: Client, version: str) -> None:
    assert service.post(f"/v1/models/{version}/activate", {}).status_code in {404, 405}
