import json
import re
import tomllib
from collections.abc import Callable

import pytest

from model.config import Config
from tests.architecture import api_reference, demo_recipe, recipe_reference, tables
from tests.architecture.repository import document
from training.config import RunConfig


@pytest.mark.parametrize(
    ("page", "name", "render"), tables.TABLES, ids=[name for _, name, _ in tables.TABLES]
)
def test_a_generated_table_is_up_to_date(page: str, name: str, render: Callable[[], str]) -> None:
    assert document(page) == tables.between_markers(document(page), name, render()), "make docs"


def test_the_api_reference_is_up_to_date() -> None:
    assert document(api_reference.PAGE) == api_reference.render(), "make docs"


def test_the_recipe_reference_is_up_to_date() -> None:
    assert document(recipe_reference.PAGE) == recipe_reference.render(), "make docs"


@pytest.mark.slow
def test_the_demo_recipe_is_what_is_recommended_for_its_data() -> None:
    assert document(demo_recipe.PAGE) == demo_recipe.render(), "make docs"


@pytest.mark.parametrize("config", recipe_reference.configurations().values())
def test_every_key_of_a_recipe_has_a_meaning(config: type[Config]) -> None:
    keys = {
        key
        for key, schema in config.model_json_schema()["properties"].items()
        if key != "kind" and not (config is RunConfig and recipe_reference.references(schema))
    }
    assert keys - {*recipe_reference.meanings(config)} == set()


def test_the_example_in_the_recipe_reference_is_a_recipe() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", document(recipe_reference.PAGE), re.S)
    config = RunConfig.model_validate(tomllib.loads(example))
    assert config.split.kind == "by_time"


def test_every_operation_has_its_section_and_no_other() -> None:
    paths = json.loads(document("docs/openapi.json"))["paths"]
    operations = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    sections = re.findall(r"^## ((?:GET|POST|PUT|DELETE) .*)$", document("docs/api.md"), re.M)
    assert {*sections} == operations
