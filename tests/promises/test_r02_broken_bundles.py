"""R2: a broken bundle is refused with 409, whatever is wrong with it, and the old one serves on."""

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
from model.bundle.manifest import CATALOG, INDEX, MANIFEST, WEIGHTS, Manifest, digest_of
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client, recommend, running
from tests.promises.figures import Figures

FILES = (MANIFEST, WEIGHTS, CATALOG, INDEX)
LISTED = (WEIGHTS, CATALOG, INDEX)

Break = Callable[[Path], Path | None]
"""Breaks the bundle in a directory; answers its new directory where it moved."""


class Planted:
    """Would leave a trace if anybody unpickled it."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._trace,)


def vouched_for(directory: Path, **changes: object) -> Path:
    """A manifest rewritten to fit what is there: only what is wrong beneath the digests remains."""
    content = json.loads((directory / MANIFEST).read_text())
    names = [name for name in content["files"] if (directory / name).is_file()]
    content["files"] = {name: digest_of(directory / name) for name in names}
    version = Manifest.model_validate(content).write(directory)
    content = {**json.loads((directory / MANIFEST).read_text()), **changes}
    return named_anew(directory, content, version)


def named_anew(directory: Path, content: object, version: str) -> Path:
    """A bundle under the version that its manifest, whatever it says, gives it."""
    (directory / MANIFEST).write_text(json.dumps(content))
    digest = digest_of(directory / MANIFEST)[:12]
    return directory.rename(directory.with_name(f"{version.rpartition('-')[0]}-{digest}"))


def with_weights(directory: Path, alter: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    weights = safetensors.torch.load_file(directory / WEIGHTS)
    alter(weights)
    safetensors.torch.save_file(weights, directory / WEIGHTS)
    return vouched_for(directory)


def with_recommender(directory: Path, **changes: object) -> Path:
    recommender = json.loads((directory / MANIFEST).read_text())["recommender"]
    return vouched_for(directory, recommender={**recommender, **changes})


def truncate(name: str, size: float) -> Break:
    return lambda directory: os.truncate(
        directory / name, int((directory / name).stat().st_size * size)
    )


def flip(name: str, place: float) -> Break:
    def flip_one_byte(directory: Path) -> None:
        content = bytearray((directory / name).read_bytes())
        content[int((len(content) - 1) * place)] ^= 0xFF
        (directory / name).write_bytes(content)

    return flip_one_byte


def remove(name: str) -> Break:
    return lambda directory: (directory / name).unlink()


def vouched_without(name: str) -> Break:
    def break_it(directory: Path) -> Path:
        (directory / name).unlink()
        return vouched_for(directory)

    return break_it


def set_to(value: float) -> Break:
    return lambda directory: with_weights(
        directory, lambda weights: weights["items.weight"][3].fill_(value)
    )


def nan_in_the_encoder(directory: Path) -> Path:
    def spoil(weights: dict[str, torch.Tensor]) -> None:
        name = next(name for name in sorted(weights) if name.startswith("encoder."))
        weights[name].view(-1)[0] = torch.nan

    return with_weights(directory, spoil)


def wrong_dim(directory: Path) -> Path:
    encoder = json.loads((directory / MANIFEST).read_text())["recommender"]["encoder"]
    return with_recommender(directory, encoder={**encoder, "dim": 16})


def weights_of_another_dim(directory: Path) -> Path:
    def narrow(weights: dict[str, torch.Tensor]) -> None:
        weights["items.weight"] = weights["items.weight"][:, :4].contiguous()

    return with_weights(directory, narrow)


def index_of(dim: int, items: int) -> Break:
    def index_anew(directory: Path) -> Path:
        index = faiss.IndexFlatIP(dim)
        index.add(np.zeros((items, dim), np.float32))
        faiss.write_index(index, str(directory / INDEX))
        return vouched_for(directory)

    return index_anew


def shorter_catalog(directory: Path) -> Path:
    catalog = pl.read_parquet(directory / CATALOG)
    catalog.head(len(catalog) - 1).write_parquet(directory / CATALOG)
    return vouched_for(directory)


def twice_the_same_item(directory: Path) -> Path:
    catalog = pl.read_parquet(directory / CATALOG)
    pl.concat([catalog.head(1), catalog.head(len(catalog) - 1)]).write_parquet(directory / CATALOG)
    return vouched_for(directory)


def newer_format(directory: Path) -> Path:
    return vouched_for(directory, format_version=3)


def newer_fields(directory: Path) -> Path:
    return vouched_for(directory, quantum_weights=True)


def unknown_encoder(directory: Path) -> Path:
    return with_recommender(directory, encoder={"kind": "oracle"})


def no_json(directory: Path) -> Path:
    (directory / MANIFEST).write_bytes(b"\xff\xfe{")
    digest = digest_of(directory / MANIFEST)[:12]
    return directory.rename(directory.with_name(f"{directory.name.rpartition('-')[0]}-{digest}"))


def bottomless_manifest(directory: Path) -> Path:
    (directory / MANIFEST).write_text("[" * 100_000)
    digest = digest_of(directory / MANIFEST)[:12]
    return directory.rename(directory.with_name(f"{directory.name.rpartition('-')[0]}-{digest}"))


def more_items_than_memory(directory: Path) -> Path:
    return with_recommender(directory, items=10**15)


def foreign_file(directory: Path) -> None:
    (directory / "notes.txt").write_text("mine")


def foreign_directory(directory: Path) -> None:
    (directory / "sub").mkdir()


def planted_pickle(directory: Path) -> None:
    (directory / "model.pkl").write_bytes(pickle.dumps(Planted(directory.parent.parent / "trace")))


def vouched_pickle(directory: Path) -> Path:
    planted_pickle(directory)
    files = {name: digest_of(directory / name) for name in (*LISTED, "model.pkl")}
    return vouched_for(directory, files=files)


def pickle_for(name: str) -> Break:
    def plant(directory: Path) -> Path:
        content = pickle.dumps(Planted(directory.parent.parent / "trace"))
        (directory / name).write_bytes(content)
        return vouched_for(directory)

    return plant


def torch_pickle_for_weights(directory: Path) -> Path:
    torch.save({"items.weight": Planted(directory.parent.parent / "trace")}, directory / WEIGHTS)
    return vouched_for(directory)


def link_out(name: str) -> Break:
    """The very same content, but where others may change it once it is verified."""

    def link(directory: Path) -> None:
        elsewhere = directory.parent.parent / f"{directory.name}-{name}"
        shutil.move(directory / name, elsewhere)
        (directory / name).symlink_to(elsewhere)

    return link


def directory_is_a_link(directory: Path) -> None:
    elsewhere = directory.parent.parent / directory.name
    shutil.move(directory, elsewhere)
    directory.symlink_to(elsewhere)


def dangling_link(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    (directory / WEIGHTS).symlink_to("nowhere")


def pipe_for_weights(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    os.mkfifo(directory / WEIGHTS)


def directory_for_weights(directory: Path) -> None:
    (directory / WEIGHTS).unlink()
    (directory / WEIGHTS).mkdir()


def path_in_the_manifest(path: str) -> Break:
    def name_a_path(directory: Path) -> Path:
        target = directory.parent.parent / "outside"
        target.write_text("outside")
        files = {name: digest_of(directory / name) for name in LISTED}
        return vouched_for(directory, files={**files, path: digest_of(target)})

    return name_a_path


def renamed(directory: Path) -> Path:
    return directory.rename(directory.with_name("20990101T000000Z-000000000000"))


BROKEN: dict[str, Break] = {
    **{f"{name} truncated to {s:.0%}": truncate(name, s) for name in FILES for s in (0, 0.5, 0.99)},
    **{
        f"a byte of {name} flipped at {p:.0%}": flip(name, p) for name in FILES for p in (0, 0.5, 1)
    },
    **{f"{name} missing": remove(name) for name in LISTED},
    **{f"{name} missing, and vouched for": vouched_without(name) for name in LISTED},
    "a NaN among the items": set_to(float("nan")),
    "an infinity among the items": set_to(float("inf")),
    "a NaN in the encoder": nan_in_the_encoder,
    "the configuration says another dim": wrong_dim,
    "the weights are of another dim": weights_of_another_dim,
    "the index is of another dim": index_of(4, 20),
    "the index holds other vectors": index_of(9, 20),
    "the index holds too many items": index_of(9, 21),
    "the catalogue is shorter": shorter_catalog,
    "the catalogue names an item twice": twice_the_same_item,
    "a newer format": newer_format,
    "a field of a newer format": newer_fields,
    "an encoder nobody knows": unknown_encoder,
    "a manifest that is not JSON": no_json,
    "a manifest without a bottom": bottomless_manifest,
    "more items than memory": more_items_than_memory,
    "a foreign file": foreign_file,
    "a foreign directory": foreign_directory,
    "a planted pickle": planted_pickle,
    "a planted pickle, and vouched for": vouched_pickle,
    **{f"a pickle for {name}": pickle_for(name) for name in LISTED},
    "a pickle of torch for the weights": torch_pickle_for_weights,
    **{f"{name} is a link out of the bundle": link_out(name) for name in FILES},
    "the bundle is a link out of the store": directory_is_a_link,
    "a dangling link for the weights": dangling_link,
    "a pipe for the weights": pipe_for_weights,
    "a directory for the weights": directory_for_weights,
    "a path upwards in the manifest": path_in_the_manifest("../../outside"),
    "an absolute path in the manifest": path_in_the_manifest("/etc/hostname"),
    "a version that is not its own": renamed,
}


@pytest.fixture(scope="module")
def service(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One that looks at the store rarely: what counts here is the answer to a request."""
    place = tmp_path_factory.mktemp("broken")
    shutil.copytree(published, place / "bundles")
    settings = Settings(
        database_url=f"sqlite:///{place / 'kairos.db'}",
        bundle_store=place / "bundles",
        poll_interval_seconds=3600.0,
    )
    with running(settings) as client:
        yield client


@pytest.fixture(scope="module")
def refused(figures: Figures) -> Iterator[list[str]]:
    """The broken versions that were refused so far."""
    versions: list[str] = []
    yield versions
    figures.keep("R2", "broken bundles", ways=len(BROKEN), refused=len(versions))


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_bundle_is_refused_and_the_old_one_serves_on(
    service: Client, refused: list[str], broken: Break
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
    assert BundleStore(bundle_store).current() == old["model_version"]
    changes = client.get("/v1/models/changes").json()
    assert changes == {"changes": [], "rollback_version": None}
    assert client.get("/health/ready").status_code == 200
    assert client.get("/v1/models").status_code == 200
    assert client.get(f"/v1/models/{version}").status_code in {200, 409}
    assert not (bundle_store.parent / "trace").exists()
    refused.append(version)


@pytest.mark.parametrize("whole", [vouched_for, lambda directory: with_weights(directory, len)])
def test_what_is_rewritten_but_whole_is_served(service: Client, whole: Break) -> None:
    """So what is refused above is refused for what is wrong with it."""
    old = recommend(service)["model_version"]
    store: BundleStore = service.app.state.context.store
    directory = whole(store.root / tiny_bundle.publish(store.root, seed=2, activate=False))
    assert directory is not None
    traffic = {"challenger": directory.name, "share": 1.0}
    assert service.put("/v1/models/traffic", traffic).status_code == 200
    assert service.put("/v1/models/traffic", {}).status_code == 200
    assert recommend(service)["model_version"] == old


def test_a_bundle_without_a_manifest_is_none(service: Client) -> None:
    bundle_store = service.app.state.context.store.root
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    (bundle_store / version / MANIFEST).unlink()
    assert service.post(f"/v1/models/{version}/activate", {}).status_code == 404


@pytest.mark.parametrize(
    "version", ["..", ".", "%2e%2e", "..%2f..%2fetc", "%00", "CURRENT", ".lock"]
)
def test_a_path_for_a_version_is_not_found(service: Client, version: str) -> None:
    assert service.post(f"/v1/models/{version}/activate", {}).status_code in {404, 405}
