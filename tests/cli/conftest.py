"""A tiny world on disk, a run that has learned from it, and a store with what it learned."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.main import app
from migrations.run import upgrade
from tests import tiny

RECIPE = """
[data]
read_actions = true

[split]
kind = "by_time"
test = 0.15
validation = 0.15

[encoder]
kind = "self_attention"
dim = 8
heads = 2
layers = 2
feed_forward = 8
max_history = 6
repeats = true

[encoder.time_encoding]
kind = "mercer"
periods = 3

[fit]
epochs = 30
patience = 30
tokens = 300
warmup_steps = 2
"""

Kairos = Callable[..., Result]


@dataclass(frozen=True)
class World:
    """Where the files are."""

    events: Path
    items: Path
    recipe: Path

    def training(self, output: Path) -> list[str]:
        """The command that learns from this world."""
        return [
            *("train", "--events", str(self.events), "--items", str(self.items)),
            *("--recipe", str(self.recipe), "--output", str(output), "--threads", "1"),
        ]


def kairos(*arguments: str | Path, exit_code: int = 0) -> Result:
    """Run a command in this process; fails with what it said where it ends otherwise."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output + str(result.exception)
    return result


@pytest.fixture(scope="session", autouse=True)
def _service_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The database that commands find in their environment."""
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
    """The output directory of an unbroken run."""
    output = tmp_path_factory.mktemp("run")
    kairos(*world.training(output))
    return output


@pytest.fixture(scope="session")
def store(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run's bundle."""
    root = tmp_path_factory.mktemp("store")
    kairos("publish", run, "--store", root)
    return root
