"""Fixtures: a tiny data set, a run trained on it, and a store with its bundle."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from migrations.run import upgrade
from tests import tiny
from tests.cli.world import RECIPE, World, kairos


@pytest.fixture(scope="session", autouse=True)
def _service_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The database in the environment of the commands."""
    url = f"sqlite:///{tmp_path_factory.mktemp('service') / 'kairos.db'}"
    upgrade(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAIROS_DATABASE_URL", url)
        yield


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    directory = tmp_path_factory.mktemp("world")
    world = World(directory / "events.parquet", directory / "items.csv", directory / "recipe.toml")
    tiny.gap_world(users=30, length=8).write_parquet(world.events)
    titles = [f"Title of {item_id}" for item_id in tiny.ITEM_IDS]
    pl.DataFrame({"item_id": tiny.ITEM_IDS, "title": titles}).write_csv(world.items)
    world.recipe.write_text(RECIPE)
    return world


@pytest.fixture(scope="session")
def run(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output directory of an uninterrupted run."""
    output = tmp_path_factory.mktemp("run")
    kairos(*world.train_arguments(output))
    return output


@pytest.fixture(scope="session")
def store(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run's bundle."""
    root = tmp_path_factory.mktemp("store")
    kairos("publish", run, "--store", root)
    return root
