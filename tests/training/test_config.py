from pathlib import Path

import pytest

from model.errors import TrainingError
from training.config import RECIPES, RunConfig, list_shipped_recipes
from training.data.split import LeaveOneOutConfig


@pytest.mark.parametrize("name", list_shipped_recipes())
def test_every_shipped_recipe_describes_a_run_that_can_be_built(name: str) -> None:
    config = RunConfig.read(name)
    assert config.encoder.build().dim == config.encoder.dim


@pytest.mark.parametrize("name", list_shipped_recipes())
def test_a_recipe_survives_a_round_trip_through_json(name: str) -> None:
    config = RunConfig.read(name)
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_a_recipe_may_be_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[split]\nkind = "leave_one_out"\n[fit]\nepochs = 2\n')
    config = RunConfig.read(tmp_path / "mine.toml")
    assert config.split == LeaveOneOutConfig()
    assert config.fit.epochs == 2


def test_an_empty_recipe_is_all_defaults(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")
    assert RunConfig.read(tmp_path / "mine.toml") == RunConfig()


def test_a_missing_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TrainingError, match=list_shipped_recipes()[0]):
        RunConfig.read("nowhere.toml")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[fit]\nepoch = 2\n", "epoch"),
        ("[fit]\nepochs = 0\n", "epochs"),
        ('[split]\nkind = "by_mood"\n', "by_mood"),
        ('[encoder.time_encoding]\nkind = "sundial"\n', "sundial"),
        ("[fit\n", "mine.toml"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(TrainingError, match=named):
        RunConfig.read(tmp_path / "mine.toml")


def test_recipes_ship_inside_the_package() -> None:
    assert list_shipped_recipes()
    assert all((RECIPES / f"{name}.toml").is_file() for name in list_shipped_recipes())
