from pathlib import Path
from uuid import uuid4

import pytest

from model.bundle.signature import NO_KEYS, BundleKeys
from model.store.mirrored import MirroredStore
from model.store.objects import ObjectStorage
from model.store.store import BundleStore
from tests.contracts.bundle_store import BundleStoreContract
from tests.scale.serving.object_store import ObjectStore


class TestMirroredStore(BundleStoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, object_store: ObjectStore, tmp_path: Path) -> None:
        self.url, self.directory = f"{object_store.url}/{uuid4().hex}", tmp_path

    def open_store(self, machine: str, keys: BundleKeys | None = None) -> BundleStore:
        return MirroredStore(ObjectStorage(self.url), self.directory / machine, keys or NO_KEYS)

    def look(self, store: BundleStore) -> BundleStore:
        assert isinstance(store, MirroredStore)
        store.synchronize(lists=True)
        return store
