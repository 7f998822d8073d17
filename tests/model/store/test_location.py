from pathlib import Path

import pytest

from model.errors import KairosError
from model.store.location import open_bundle_store
from model.store.store import BundleStore


def test_a_path_is_a_local_store(tmp_path: Path) -> None:
    for location in (tmp_path, str(tmp_path)):
        store = open_bundle_store(location)
        assert type(store) is BundleStore
        assert store.root == tmp_path


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.store.objects.find_spec", lambda _: None)
    with pytest.raises(KairosError, match=r"pip install 'kairos\[scale\]'"):
        open_bundle_store("s3://bucket/prefix")
