import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from model.bundle.catalog_file import write_catalog
from model.bundle.manifest import CATALOG, INDEX, MANIFEST, WEIGHTS, Manifest, digest_of
from model.catalog import Catalog
from model.errors import BundleError
from model.history import Event, Query
from model.inference.answers import Constraints
from model.store.opening import open_predictor
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.positional import PositionalConfig
from tests import tiny
from tests.contracts.bundle import BundleContract
from tests.tiny import DAY, ENCODER, LAST_AT


class TestPlain(BundleContract):
    config = tiny.recommender_config()


class TestWithRepeats(BundleContract):
    config = tiny.recommender_config(
        ENCODER.model_copy(
            update={"repeats": True, "time_encoding": BochnerNonparametricConfig(frequencies=4)}
        )
    )

    def test_a_history_of_one_item_raises_that_item(self, tmp_path: Path) -> None:
        config = self.config
        weights = tiny.recommender(config)
        with torch.no_grad():
            weights.get_parameter("encoder.pointer.bias").fill_(20.0)
        (tmp_path / "new").mkdir()
        version = tiny.writer(config, weights)(tmp_path / "new")
        predictor = open_predictor((tmp_path / "new").rename(tmp_path / version))
        query = Query((Event("i7", LAST_AT - DAY),), LAST_AT)
        items = predictor.recommend(query, Constraints(n=2, exclude_seen=False)).items
        assert items[0].item_id == "i7"
        assert predictor.recommend(query, Constraints(n=2)).items[0].item_id != "i7"


class TestWithoutTimeOrBias(BundleContract):
    config = tiny.recommender_config(
        ENCODER.model_copy(update={"time_encoding": PositionalConfig(frequencies=4)}),
        item_bias=False,
    )


class TestIgnoredActions:
    def test_events_of_ignored_actions_are_not_read(self, tmp_path: Path) -> None:
        config = tiny.recommender_config(ignored_actions=("cancel",))
        predictor = open_predictor(tiny.write_bundle(tmp_path, config=config))
        bought = Event("i1", LAST_AT - DAY, "buy")
        cancelled = Event("i2", LAST_AT - DAY // 2, "cancel")
        within = Constraints(exclude_seen=False)
        assert (
            predictor.recommend(Query((bought, cancelled), LAST_AT), within).items
            == predictor.recommend(Query((bought,), LAST_AT), within).items
        )


# What is refused


def rewrite(bundle: Path, **changed: object) -> Path:
    """Change a manifest, vouch for the files as they are now, and rename the bundle to match."""
    content = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    files = {name: digest_of(bundle / name) for name in content.files}
    version = content.model_copy(update={"files": files, **changed}).write(bundle)
    return bundle.rename(bundle.parent / version)


def test_a_rewritten_bundle_is_sound_as_long_as_its_parts_agree(tmp_path: Path) -> None:
    open_predictor(rewrite(tiny.write_bundle(tmp_path), metrics={"mrr": 0.5}))


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    weights = safetensors.torch.load((bundle / WEIGHTS).read_bytes())
    weights["encoder.norm.weight"][0] = torch.nan
    safetensors.torch.save_file(weights, bundle / WEIGHTS)
    with pytest.raises(BundleError, match="weights must be finite"):
        open_predictor(rewrite(bundle))


def test_weights_of_another_width_are_refused(tmp_path: Path) -> None:
    wider = tiny.recommender_config(ENCODER.model_copy(update={"dim": 16}))
    with pytest.raises(BundleError, match="must fit the manifest's configuration"):
        open_predictor(rewrite(tiny.write_bundle(tmp_path), recommender=wider))


def test_weights_with_a_tensor_too_few_are_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    weights = safetensors.torch.load((bundle / WEIGHTS).read_bytes())
    del weights["encoder.norm.weight"]
    safetensors.torch.save_file(weights, bundle / WEIGHTS)
    with pytest.raises(BundleError, match="must fit the manifest's configuration"):
        open_predictor(rewrite(bundle))


def test_weights_that_are_a_pickle_are_refused_unread(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    torch.save(safetensors.torch.load((bundle / WEIGHTS).read_bytes()), bundle / WEIGHTS)
    with pytest.raises(BundleError, match="must fit the manifest's configuration"):
        open_predictor(rewrite(bundle))


def test_an_index_of_other_vectors_is_refused(tmp_path: Path) -> None:
    bundle, other = tiny.write_bundle(tmp_path / "a"), tiny.write_bundle(tmp_path / "b", seed=1)
    (other / INDEX).replace(bundle / INDEX)
    with pytest.raises(BundleError, match="index must hold the item table's vectors"):
        open_predictor(rewrite(bundle))


def test_an_index_that_is_none_is_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    (bundle / INDEX).write_bytes(b"no index at all")
    with pytest.raises(BundleError, match="readable by FAISS"):
        open_predictor(rewrite(bundle))


def test_a_catalogue_of_another_size_is_refused(tmp_path: Path) -> None:
    bundle = tiny.write_bundle(tmp_path)
    write_catalog(Catalog.from_ids(["only"]), bundle / CATALOG)
    with pytest.raises(BundleError, match="must have the same number of items"):
        open_predictor(rewrite(bundle))


@pytest.mark.parametrize("unnamed", [WEIGHTS, CATALOG, INDEX])
def test_a_manifest_that_names_too_few_files_is_refused(tmp_path: Path, unnamed: str) -> None:
    bundle = tiny.write_bundle(tmp_path)
    manifest = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    (bundle / unnamed).unlink()
    files = {name: digest for name, digest in manifest.files.items() if name != unnamed}
    version = manifest.model_copy(update={"files": files}).write(bundle)
    with pytest.raises(BundleError, match=unnamed):
        open_predictor(bundle.rename(bundle.parent / version))


def test_weights_are_read_by_safetensors_and_nothing_that_runs_code(tmp_path: Path) -> None:
    """An audit hook sees every unpickling and every `torch.load`; opening must cause none."""
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
