"""Removal of old versions and runs, on an operator's request."""

import shutil
from collections.abc import Collection
from pathlib import Path

from model.store.store import BundleStore
from training.retraining.report import REPORT


def prune_store(store: BundleStore, keep: int, needed: Collection[str]) -> list[str]:
    """Remove all versions but the newest `keep` and those in use; return the removed ones.

    In use are the current version, those that receive or shadow traffic, and `needed`.
    """
    traffic = store.read_traffic()
    in_use = {store.read_current(), traffic.challenger, traffic.shadow, *needed}
    old = [version for version in store.list_versions()[keep:] if version not in in_use]
    for version in old:
        store.remove(version)
    return old


def prune_runs(runs: Path, keep: int, current: Path) -> list[str]:
    """Remove all directories of runs but the newest `keep` and the current one; return names."""
    reports = sorted(runs.glob(f"*/{REPORT}"), key=lambda it: it.stat().st_mtime_ns, reverse=True)
    directories = [report.parent for report in reports]
    old = [directory for directory in directories[keep:] if directory != current]
    for directory in old:
        shutil.rmtree(directory)
    return [directory.name for directory in old]
