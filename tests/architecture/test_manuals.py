import json
import re

import pytest

from tests.architecture import tables
from tests.architecture.repository import document


@pytest.mark.parametrize(
    ("manual", "table"),
    [
        ("docs/operations.md", tables.settings()),
        ("docs/operations.md", tables.metrics()),
        ("docs/api.md", tables.problems()),
    ],
    ids=["settings", "metrics", "problems"],
)
def test_a_manual_holds_the_table_of_the_code(manual: str, table: str) -> None:
    assert table in document(manual), f"{manual} should hold:\n{table}"


def test_every_operation_has_its_section_and_no_other() -> None:
    paths = json.loads(document("docs/openapi.json"))["paths"]
    operations = {f"{method.upper()} {path}" for path in paths for method in paths[path]}
    sections = re.findall(r"^## ((?:GET|POST|PUT|DELETE) .*)$", document("docs/api.md"), re.M)
    assert {*sections} == operations
