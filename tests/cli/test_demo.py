"""The `kairos demo` command."""

from pathlib import Path

import polars as pl
import pytest

from model.store.store import BundleStore
from tests.cli.world import World, kairos
from training.data.sources import read_events


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_demo_imports_counts_and_trains_once(world: World, tmp_path: Path) -> None:
    demo = [
        *("demo", "--no-serve", "--directory", tmp_path, "--recipe", world.recipe),
        *("--events", world.events, "--items", world.items),
    ]
    kairos(*demo)
    current = BundleStore(tmp_path / "bundles").read_current()
    assert current is not None
    stored = read_events(f"sqlite:///{tmp_path / 'kairos.db'}")
    assert stored.equals(pl.read_parquet(world.events))
    runs = {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").glob("*/*")}
    assert runs
    kairos(*demo)
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "runs").glob("*/*")} == runs
    assert BundleStore(tmp_path / "bundles").read_current() == current
