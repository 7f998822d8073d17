import json
import re
from collections.abc import Callable

import pytest

from tests.architecture import api_reference, tables
from tests.architecture.repository import document


@pytest.mark.parametrize(
    ("page", "name", "render"), tables.TABLES, ids=[name for _, name, _ in tables.TABLES]
)
def test_a_generated_table_is_up_to_date(page: str, name: str, render: Callable[[], str]) -> None:
    assert document(page) == tables.between_markers(document(page), name, render()), "make docs"


def test_the_api_reference_is_up_to_date() -> None:
    assert document(api_reference.PAGE) == api_reference.render(), "make docs"


def test_every_operation_has_its_section_and_no_other() -> None:
    paths = json.loads(document("docs/openapi.json"))["paths"]
    operations = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    sections = re.findall(r"^## ((?:GET|POST|PUT|DELETE) .*)$", document("docs/api.md"), re.M)
    assert {*sections} == operations
