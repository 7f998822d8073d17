import json
import pickle
from pathlib import Path

import pytest

from model.bundle.manifest import (
    CATALOG,
    FORMAT_VERSION,
    INDEX,
    MANIFEST,
    WEIGHTS,
    DataWindow,
    Manifest,
    compute_digest,
)
from model.errors import BundleError
from model.store.opening import open_predictor
from tests import tiny

FILES = (MANIFEST, WEIGHTS, CATALOG, INDEX)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny.write_bundle(tmp_path)


def test_a_bundle_holds_exactly_these_files(bundle: Path) -> None:
    assert {path.name for path in bundle.iterdir()} == {*FILES}


def test_a_manifest_survives_a_round_trip(bundle: Path) -> None:
    manifest = Manifest.read(bundle)
    assert manifest.recommender == tiny.recommender_config()
    assert manifest.data_window == tiny.WINDOW
    assert manifest.metrics == {"ndcg@10": 0.25}
    assert manifest.width == tiny.ENCODER.dim + 1
    assert manifest.files == {
        name: compute_digest(bundle / name) for name in (WEIGHTS, CATALOG, INDEX)
    }


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("fraction", [0.0, 0.37, 1.0])
def test_one_flipped_bit_in_any_file_is_refused(bundle: Path, name: str, fraction: float) -> None:
    content = bytearray((bundle / name).read_bytes())
    content[round(fraction * (len(content) - 1))] ^= 1
    (bundle / name).write_bytes(content)
    with pytest.raises(BundleError):
        open_predictor(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused_by_name(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    with pytest.raises(BundleError, match=name):
        open_predictor(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_short_is_refused(bundle: Path, name: str) -> None:
    content = (bundle / name).read_bytes()
    (bundle / name).write_bytes(content[:-1])
    with pytest.raises(BundleError):
        open_predictor(bundle)


def test_a_foreign_file_is_refused_by_name(bundle: Path) -> None:
    (bundle / "notes.txt").write_text("hello")
    with pytest.raises(BundleError, match=r"notes\.txt of .* is foreign"):
        open_predictor(bundle)


def test_a_foreign_directory_is_refused_by_name(bundle: Path) -> None:
    (bundle / "more").mkdir()
    with pytest.raises(BundleError, match=r"more of .* is foreign"):
        open_predictor(bundle)


def test_a_file_that_became_a_directory_is_refused(bundle: Path) -> None:
    (bundle / WEIGHTS).unlink()
    (bundle / WEIGHTS).mkdir()
    with pytest.raises(BundleError, match=WEIGHTS):
        open_predictor(bundle)


class Bomb:
    """Fails the test when unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("a planted pickle was run",))


@pytest.mark.parametrize("name", ["weights.pkl", "weights.pt", WEIGHTS])
def test_a_planted_pickle_is_refused_and_not_run(bundle: Path, name: str) -> None:
    (bundle / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(BundleError, match=name):
        open_predictor(bundle)


def test_a_renamed_bundle_is_refused(bundle: Path) -> None:
    with pytest.raises(BundleError, match="altered or renamed"):
        open_predictor(bundle.rename(bundle.parent / "20260101T000000Z-0123456789ab"))


def test_a_newer_format_is_refused_with_the_remedy(bundle: Path) -> None:
    newer = Manifest.read(bundle).model_copy(update={"format_version": FORMAT_VERSION + 1})
    version = newer.write(bundle)
    with pytest.raises(BundleError, match=f"format {FORMAT_VERSION + 1}; upgrade Kairos"):
        open_predictor(bundle.rename(bundle.parent / version))


def test_an_older_format_is_refused_with_the_remedy(bundle: Path) -> None:
    older = Manifest.read(bundle).model_copy(update={"format_version": FORMAT_VERSION - 1})
    version = older.write(bundle)
    remedy = (
        f"format {FORMAT_VERSION - 1}; train the model again with `kairos train` or `kairos "
        "retrain`, or serve it with the version of the code that wrote it"
    )
    with pytest.raises(BundleError, match=remedy):
        open_predictor(bundle.rename(bundle.parent / version))


def test_a_newer_format_with_unknown_fields_is_refused(bundle: Path) -> None:
    content = json.loads((bundle / MANIFEST).read_text()) | {"format_version": 9, "colour": "red"}
    (bundle / MANIFEST).write_text(json.dumps(content))
    digest = compute_digest(bundle / MANIFEST)[:12]
    with pytest.raises(BundleError, match=f"must be of format {FORMAT_VERSION}, but"):
        open_predictor(bundle.rename(bundle.parent / f"20260101T000000Z-{digest}"))


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"needs a readable manifest\.json"):
        open_predictor(tmp_path)


def test_the_length_of_a_window_is_its_span() -> None:
    assert DataWindow(first_at=3, last_at=10).length == 7
