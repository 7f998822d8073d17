"""Signed bundles: what a key refuses, before anything is parsed."""

import json
from pathlib import Path

import pytest
import safetensors.torch

from model.bundle.index import ItemIndex
from model.bundle.manifest import INDEX, MANIFEST, WEIGHTS, Manifest, compute_digest
from model.bundle.signature import SIGNATURE, BundleKeys
from model.bundle.writing import sign_bundle
from model.errors import BundleError, BundleKeyError
from model.store.opening import open_predictor
from model.store.store import BundleStore
from tests import tiny

OLD, NEW = "old key " * 4, "new key " * 4
KEYS = BundleKeys([OLD])


def sign(bundle: Path, keys: BundleKeys = KEYS) -> Path:
    sign_bundle(bundle, keys, bundle.with_name(".temporary"))
    return bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """An unsigned bundle."""
    return tiny.write_bundle(tmp_path / "bundles")


def test_a_signed_bundle_opens_with_its_key_and_without(bundle: Path) -> None:
    sign(bundle)
    assert open_predictor(bundle, KEYS).version == bundle.name
    assert open_predictor(bundle).version == bundle.name


def test_an_unsigned_bundle_is_refused_where_a_key_is_set(bundle: Path) -> None:
    with pytest.raises(BundleError, match="must be signed"):
        open_predictor(bundle, KEYS)


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        b"\xff\xfe",
        b"hmac-sha256",
        b"none " * 3,
        b"x" * 10_000,
        b"hmac-sha256 00000000 " + b"0" * 64,
    ],
)
def test_a_wrong_signature_is_refused(bundle: Path, signature: bytes) -> None:
    (bundle / SIGNATURE).write_bytes(signature)
    with pytest.raises(BundleError, match="signed with"):
        open_predictor(bundle, KEYS)


def test_a_forged_bundle_is_refused_before_it_is_parsed(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files and manifest are replaced consistently, and the old signature is kept."""
    sign(bundle)
    (bundle / INDEX).write_bytes(b"a file that attacks FAISS")
    content = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    files = {name: compute_digest(bundle / name) for name in content.files}
    forged = content.model_copy(update={"files": files})
    renamed = bundle.rename(bundle.parent / forged.write(bundle))

    def parse(*_: object) -> None:
        pytest.fail("something of the bundle was parsed")

    monkeypatch.setattr(ItemIndex, "load", parse)
    monkeypatch.setattr(safetensors.torch, "load", parse)
    monkeypatch.setattr(Manifest, "model_validate_json", parse)
    with pytest.raises(BundleError, match="signature of a bundle must match"):
        open_predictor(renamed, KEYS)


def test_a_file_replaced_after_its_verification_is_refused(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = Manifest.verify_files

    def verify_and_replace(manifest: Manifest, directory: Path) -> None:
        verify(manifest, directory)
        (directory / INDEX).write_bytes(b"a file that attacks FAISS")

    monkeypatch.setattr(Manifest, "verify_files", verify_and_replace)
    with pytest.raises(BundleError, match=r"items\.faiss .* is altered"):
        open_predictor(bundle)


def test_keys_are_rotated_without_a_gap(bundle: Path) -> None:
    sign(bundle)
    both = BundleKeys([NEW, OLD])
    assert open_predictor(bundle, both).version == bundle.name
    with pytest.raises(BundleError, match="add that key"):
        open_predictor(bundle, BundleKeys([NEW]))
    sign(bundle, both)
    assert open_predictor(bundle, BundleKeys([NEW])).version == bundle.name
    with pytest.raises(BundleError, match="add that key"):
        open_predictor(bundle, KEYS)


def test_signing_verifies_the_digests_first(bundle: Path) -> None:
    (bundle / WEIGHTS).write_bytes(b"altered")
    with pytest.raises(BundleError, match="is altered"):
        sign(bundle)
    assert not (bundle / SIGNATURE).exists()


def test_a_bundle_of_another_format_can_be_signed(bundle: Path) -> None:
    content = json.loads((bundle / MANIFEST).read_text()) | {"format_version": 9, "colour": "red"}
    (bundle / MANIFEST).write_text(json.dumps(content))
    digest = compute_digest(bundle / MANIFEST)[:12]
    other = sign(bundle.rename(bundle.parent / f"20260101T000000Z-{digest}"))
    KEYS.verify(other, (other / MANIFEST).read_bytes())


@pytest.mark.parametrize("text", ["", " ,\n", "short", "short," + OLD.replace(" ", "-")])
def test_a_missing_or_short_key_is_refused(text: str) -> None:
    with pytest.raises(BundleKeyError):
        BundleKeys.parse(text)


def test_a_store_with_a_key_serves_signed_bundles_only(tmp_path: Path) -> None:
    root = tmp_path / "store"
    unsigned, signed = BundleStore(root), BundleStore(root, KEYS)
    write = tiny.writer(tiny.recommender_config(), tiny.recommender(tiny.recommender_config()))
    version = unsigned.publish(write)
    with pytest.raises(BundleError, match="must be signed"):
        signed.open(version)
    with pytest.raises(BundleError, match="must be signed"):
        signed.activate(version)
    with pytest.raises(BundleError, match="must be signed"):
        signed.publish(write)
    assert signed.list_versions() == [version]
    before = signed.list_versions(), (root / version).stat().st_mtime_ns
    signed.sign(version)
    assert (signed.list_versions(), (root / version).stat().st_mtime_ns) == before
    assert signed.open(version).version == version
    assert [path.name for path in root.iterdir() if path.name.startswith(".")] == []
