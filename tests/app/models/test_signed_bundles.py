"""A service with a bundle key: it serves and activates signed bundles only."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from app.settings import Settings, SettingsError
from model.bundle.signature import BundleKeys
from model.store.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import problem, recommend, running
from tests.processes import eventually

KEY = "0123456789abcdef" * 4


@pytest.fixture
def with_key(settings: Settings, bundle_store: Path) -> Settings:
    """Settings with a key; the store's bundle is signed."""
    store = BundleStore(bundle_store, BundleKeys([KEY]))
    store.sign(str(store.read_current()))
    return settings.model_copy(update={"bundle_key": SecretStr(KEY)})


def test_an_unsigned_bundle_is_not_activated_until_signed(
    with_key: Settings, bundle_store: Path
) -> None:
    store = BundleStore(bundle_store, BundleKeys([KEY]))
    with running(with_key) as client:
        served = recommend(client)["model_version"]
        unsigned = tiny_bundle.publish(bundle_store, seed=2, activate=False)
        refused = client.post(f"/v1/models/{unsigned}/activate", {})
        assert "kairos models sign" in problem(refused, 409, "model_refused")["detail"]
        pinned = client.post("/v1/recommendations", {"history": [], "model_version": unsigned})
        problem(pinned, 409, "model_refused")
        BundleStore(bundle_store).activate(unsigned)  # somebody without the key moves the pointer
        eventually(lambda: client.metric("kairos_pointer_faults", pointer="current") == 1)
        assert recommend(client)["model_version"] == served
        store.sign(unsigned)
        eventually(lambda: recommend(client)["model_version"] == unsigned)


def test_the_key_is_read_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    monkeypatch.setenv("KAIROS_BUNDLE_KEY_FILE", str(file))
    content = b"a manifest"
    assert Settings().load_bundle_keys().sign(content) == BundleKeys([KEY]).sign(content)


def test_a_key_that_cannot_be_read_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAIROS_BUNDLE_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(SettingsError, match="KAIROS_BUNDLE_KEY_FILE must name a text file"):
        Settings()
    monkeypatch.setenv("KAIROS_BUNDLE_KEY", KEY)
    with pytest.raises(SettingsError, match="both set"):
        Settings()


def test_the_key_is_not_printed(with_key: Settings) -> None:
    assert KEY not in repr(with_key)
