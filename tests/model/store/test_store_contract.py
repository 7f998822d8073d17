from pathlib import Path

import pytest

from model.bundle.signature import NO_KEYS, BundleKeys
from model.store.store import BundleStore
from tests.contracts.bundle_store import BundleStoreContract


class TestBundleStore(BundleStoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.root = tmp_path / "store"

    def open_store(self, machine: str, keys: BundleKeys | None = None) -> BundleStore:
        return BundleStore(self.root, keys or NO_KEYS)
