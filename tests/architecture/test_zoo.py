import inspect
from pathlib import Path
from typing import get_args

import pytest

from model.config import Config
from tests.architecture.members import MEMBERS, UNIONS, kind, members
from tests.architecture.repository import document, sources

WITHOUT_CONFIG = {"calendar"}
"""Files whose class a setting of an encoder builds: `SelfAttentionConfig.calendar`."""


@pytest.mark.parametrize("folder", UNIONS)
def test_the_union_holds_every_file_of_its_folder(folder: str) -> None:
    name, union = UNIONS[folder]
    files = {file.stem for file in sources(folder)} - {"__init__"} - WITHOUT_CONFIG
    kinds = {kind(config) for config in members(union)}
    assert files == kinds, f"add to {name}: {files - kinds}; without a file: {kinds - files}"


@pytest.mark.parametrize("config", MEMBERS, ids=kind)
def test_a_config_is_in_the_file_of_its_kind(config: type[Config]) -> None:
    assert Path(inspect.getfile(config)).stem == kind(config)


@pytest.mark.parametrize("config", MEMBERS, ids=kind)
def test_a_config_survives_a_round_trip_through_json(config: type[Config]) -> None:
    described = config()
    assert config.model_validate_json(described.model_dump_json()) == described


@pytest.mark.parametrize("config", MEMBERS, ids=kind)
def test_the_zoo_is_documented(config: type[Config]) -> None:
    assert f"`{kind(config)}`" in document("docs/models.md")


VARIANTS = ("form", "gates", "map", "relation", "window")
"""Fields that choose between methods, each of which docs/models.md names."""


@pytest.mark.parametrize("config", MEMBERS, ids=kind)
def test_every_variant_of_a_member_is_documented(config: type[Config]) -> None:
    rows = [line for line in document("docs/models.md").splitlines() if f"`{kind(config)}`" in line]
    for name in VARIANTS:
        if name in config.model_fields:
            for variant in get_args(config.model_fields[name].annotation):
                assert any(str(variant) in row for row in rows), f"{name} = {variant!r}"
