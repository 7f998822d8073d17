"""The `kairos demo` command."""

from pathlib import Path

import polars as pl
import pytest

from model.store.store import BundleStore
from tests.cli.world import World, kairos
from training.data.sources import read_events


@pytest.mark.slow
def test_demo_imports_trains_and_publishes(world: World, tmp_path: Path) -> None:
    demo = [
        *("demo", "--no-serve", "--directory", tmp_path, "--recipe", world.recipe),
        *("--events", world.events, "--items", world.items),
    ]
    kairos(*demo)
    current = BundleStore(tmp_path / "bundles").read_current()
    assert current is not None
    stored = read_events(f"sqlite:///{tmp_path / 'kairos.db'}")
    assert stored.equals(pl.read_parquet(world.events))
    again = kairos(*demo).output
    assert "train" not in again
    assert BundleStore(tmp_path / "bundles").read_current() == current
