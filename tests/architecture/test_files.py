import ast

import pytest

from tests.architecture.repository import PACKAGES, ROOT, document, imports, sources

REFUSED_NAMES = {"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}
EVERYWHERE = (*PACKAGES, "benchmarks", "migrations", "tests")
LONGEST_TEST_NAME = 60


def test_no_file_has_a_name_without_meaning() -> None:
    misnamed = [
        file for file in sources(*EVERYWHERE) if REFUSED_NAMES & {*file.with_suffix("").parts}
    ]
    assert misnamed == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_code_is_a_package(package: str) -> None:
    folders = {file.parent for file in sources(package)}
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []


def test_a_test_has_a_name_of_at_most_60_characters() -> None:
    too_long = [
        f"{file}:{node.lineno}: {node.name}"
        for file in sources("tests")
        for node in ast.walk(ast.parse(document(str(file))))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > LONGEST_TEST_NAME
    ]
    assert too_long == []


def test_no_module_imports_from_a_test_module() -> None:
    importing = [
        f"{file}: {module}"
        for file in sources(*EVERYWHERE)
        for module in imports(file)
        if any(part.startswith("test_") for part in module.split("."))
    ]
    assert importing == []
