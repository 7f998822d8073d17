"""What opening a bundle refuses."""

import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from model.bundle.catalog_file import write_catalog
from model.bundle.manifest import CATALOG, INDEX, MANIFEST, WEIGHTS, Manifest, compute_digest
from model.catalog import Catalog
from model.encoders.basket_markov import BasketMarkovConfig
from model.encoders.markov import MarkovConfig
from model.encoders.taiw import TAIWConfig
from model.errors import BundleError, OutdatedBundleError
from model.store.opening import open_predictor
from tests import tiny
from tests.tiny import ENCODER


def rewrite(bundle: Path, **changed: object) -> Path:
    """Change a manifest, update its digests to the files, and rename the bundle to match."""
    content = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    files = {name: compute_digest(bundle / name) for name in content.files}
    version = content.model_copy(update={"files": files, **changed}).write(bundle)
    return bundle.rename(bundle.parent / version)


def test_a_consistently_rewritten_bundle_opens(tmp_path: Path) -> None:
    open_predictor(rewrite(tiny.write_bundle(tmp_path), metrics={"mrr": 0.5}))


def test_weights_with_nan_are_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    weights = safetensors.torch.load((bundle / WEIGHTS).read_bytes())
    weights["encoder.norm.weight"][0] = torch.nan
    safetensors.torch.save_file(weights, bundle / WEIGHTS)
    with pytest.raises(BundleError, match="weights must be finite"):
        open_predictor(rewrite(bundle))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_buffers_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    config = tiny.recommender_config(TAIWConfig(neighbours=1))
    bundle = tiny.write_bundle(tmp_path, config=config)
    weights = safetensors.torch.load((bundle / WEIGHTS).read_bytes())
    weights["encoder.purchases.shapes"][-1] = value
    safetensors.torch.save_file(weights, bundle / WEIGHTS)
    with pytest.raises(BundleError, match="weights must be finite"):
        open_predictor(rewrite(bundle))


def test_the_logarithm_of_0_may_be_in_a_buffer(tmp_path: Path) -> None:
    open_predictor(tiny.write_bundle(tmp_path, config=tiny.recommender_config(MarkovConfig())))


def test_followers_of_too_few_items_are_refused(tmp_path: Path) -> None:
    config = tiny.recommender_config(BasketMarkovConfig())
    bundle = tiny.write_bundle(tmp_path, config=config)
    weights = safetensors.torch.load((bundle / WEIGHTS).read_bytes())
    weights["encoder.followers.offsets"] = torch.tensor([0])
    safetensors.torch.save_file(weights, bundle / WEIGHTS)
    with pytest.raises(BundleError, match="followers does not fit itself: it must have"):
        open_predictor(rewrite(bundle))


def test_weights_of_another_width_are_refused(tmp_path: Path) -> None:
    wider = tiny.recommender_config(ENCODER.model_copy(update={"dim": 16}))
    with pytest.raises(OutdatedBundleError, match="must fit the recommender of this version"):
        open_predictor(rewrite(tiny.write_bundle(tmp_path), recommender=wider))


def test_weights_without_a_tensor_are_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    weights = safetensors.torch.load((bundle / WEIGHTS).read_bytes())
    del weights["encoder.norm.weight"]
    safetensors.torch.save_file(weights, bundle / WEIGHTS)
    with pytest.raises(OutdatedBundleError, match="must fit the recommender of this version"):
        open_predictor(rewrite(bundle))


def test_pickled_weights_are_refused_unread(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    torch.save(safetensors.torch.load((bundle / WEIGHTS).read_bytes()), bundle / WEIGHTS)
    with pytest.raises(BundleError, match="must be a readable file"):
        open_predictor(rewrite(bundle))


def test_an_index_of_other_vectors_is_refused(tmp_path: Path) -> None:
    bundle, other = tiny.write_bundle(tmp_path / "a"), tiny.write_bundle(tmp_path / "b", seed=1)
    (other / INDEX).replace(bundle / INDEX)
    with pytest.raises(BundleError, match="index must hold the item table's vectors"):
        open_predictor(rewrite(bundle))


def test_an_unreadable_index_is_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    (bundle / INDEX).write_bytes(b"no index at all")
    with pytest.raises(BundleError, match="readable by FAISS"):
        open_predictor(rewrite(bundle))


def test_a_catalog_of_another_size_is_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    write_catalog(Catalog.from_ids(["only"]), bundle / CATALOG)
    with pytest.raises(BundleError, match="must have the same number of items"):
        open_predictor(rewrite(bundle))


@pytest.mark.parametrize("missing", [WEIGHTS, CATALOG, INDEX])
def test_a_manifest_without_a_file_is_refused(tmp_path: Path, missing: str) -> None:
    bundle = tiny.write_bundle(tmp_path)
    manifest = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    (bundle / missing).unlink()
    files = {name: digest for name, digest in manifest.files.items() if name != missing}
    version = manifest.model_copy(update={"files": files}).write(bundle)
    with pytest.raises(BundleError, match=missing):
        open_predictor(bundle.rename(bundle.parent / version))


@pytest.mark.slow
def test_opening_unpickles_nothing(tmp_path: Path) -> None:
    """Neither the audit event of unpickling nor a call of `torch.load` occurs."""
    bundle = tiny.write_bundle(tmp_path)
    script = (
        "import sys, pathlib\n"
        "from model.store.opening import open_predictor\n"
        "import torch\n"
        "def refuse(*arguments, **named): raise SystemExit('torch.load was called')\n"
        "torch.load = refuse\n"
        "seen = []\n"
        "def hook(event, arguments):\n"
        "    if event == 'pickle.find_class': seen.append(arguments)\n"
        "sys.addaudithook(hook)\n"
        "open_predictor(pathlib.Path(sys.argv[1]))\n"
        "sys.exit(f'unpickled {seen}' if seen else 0)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, str(bundle)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
