"""GET /v1/models."""

from pathlib import Path

import pytest

from model.bundle.store import BundleStore
from tests.app import tiny_bundle
from tests.app.client import Client


def test_models_say_which_is_current_and_which_is_served(
    client: Client, bundle_store: Path
) -> None:
    served = BundleStore(bundle_store).current()
    other = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    models = client.get("/v1/models").json()["models"]
    assert {model["version"]: (model["is_current"], model["is_serving"]) for model in models} == {
        served: (True, True),
        other: (False, False),
    }


def test_a_model_is_described_by_its_manifest(client: Client, bundle_store: Path) -> None:
    store = BundleStore(bundle_store)
    version = store.versions()[0]
    answer = client.get(f"/v1/models/{version}").json()
    assert answer["version"] == version
    assert answer["is_serving"] is True
    assert answer["manifest"] == store.manifest(version).model_dump(mode="json")


@pytest.mark.parametrize(
    "version", ["20200101T000000Z-000000000000", "..", "..%2Fbundles", "%00", "CURRENT", "x" * 5000]
)
def test_a_model_nobody_published_is_not_found(client: Client, version: str) -> None:
    response = client.get(f"/v1/models/{version}")
    assert response.status_code == 404
    assert response.json()["code"] in {"model_not_found", "not_found"}


def test_a_model_with_a_damaged_manifest_is_told_apart(client: Client, bundle_store: Path) -> None:
    version = tiny_bundle.publish(bundle_store, seed=2, activate=False)
    (bundle_store / version / "manifest.json").write_text("{}")
    assert version in [model["version"] for model in client.get("/v1/models").json()["models"]]
    response = client.get(f"/v1/models/{version}")
    assert response.status_code == 409
    assert response.json()["code"] == "model_refused"
