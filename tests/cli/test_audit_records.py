"""Exports, imports, backups and restores leave a record in the audit."""

import json
from pathlib import Path
from typing import Any

import pytest

from migrations.run import upgrade
from tests.app import tiny_bundle
from tests.cli.world import World, kairos


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database without records."""
    address = f"sqlite:///{tmp_path / 'kairos.db'}"
    upgrade(address)
    return address


@pytest.fixture
def bundle_store(tmp_path: Path) -> Path:
    root = tmp_path / "bundles"
    tiny_bundle.publish(root, seed=1)
    return root


def list_records(url: str) -> list[tuple[str, dict[str, Any]]]:
    shown = json.loads(kairos("audit", "--json", "--database", url).stdout)
    assert all(entry["actor"].startswith("cli:") for entry in shown)
    return [(entry["act"], entry["detail"]) for entry in shown]


def test_imports_and_exports_are_recorded(url: str, world: World, tmp_path: Path) -> None:
    kairos("import-events", world.events, "--database", url)
    kairos("import-items", world.items, "--database", url)
    until = "2031-01-01T00:00:00Z"
    kairos(
        *("export-events", "--output", tmp_path / "events.csv"),
        *("--until", until, "--database", url),
    )
    exported, items, events = list_records(url)
    assert exported == ("export_events", {"until": until})
    assert (items[0], events[0]) == ("import_items", "import_events")
    assert min(items[1]["rows"], events[1]["rows"]) > 0


def test_a_backup_and_its_restore_are_recorded(
    url: str, bundle_store: Path, tmp_path: Path
) -> None:
    kairos("backup", tmp_path / "backup", "--store", bundle_store, "--database", url)
    assert list_records(url) == [("backup", {})]
    restored = f"sqlite:///{tmp_path / 'restored.db'}"
    kairos(*("restore", tmp_path / "backup", "--store", tmp_path / "other", "--database", restored))
    restore, backup = list_records(restored)
    assert (restore[0], list(restore[1])) == ("restore", ["taken_at"])
    assert backup == ("backup", {})


def test_a_restore_of_another_revision_is_not_recorded(
    url: str, bundle_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kairos("backup", tmp_path / "backup", "--store", bundle_store, "--database", url)
    monkeypatch.setattr("migrations.run.get_head", lambda: "9999")
    output = kairos(
        *("restore", tmp_path / "backup", "--store", tmp_path / "other"),
        *("--database", f"sqlite:///{tmp_path / 'restored.db'}"),
    ).output
    assert "the restore is not in the audit" in output
