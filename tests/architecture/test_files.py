from pathlib import Path

import pytest

from tests.architecture.repository import PACKAGES, ROOT, sources

JUNK_DRAWERS = {"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}
EVERYWHERE = (*PACKAGES, "benchmarks", "migrations", "tests")
MOST_LINES = 400


def test_no_file_is_a_junk_drawer() -> None:
    named = [file for file in sources(*EVERYWHERE) if JUNK_DRAWERS & {*file.with_suffix("").parts}]
    assert named == []


def test_no_file_holds_two_ideas() -> None:
    lengths = {str(file): _lines(file) for file in sources(*EVERYWHERE)}
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_code_is_a_package(package: str) -> None:
    folders = {file.parent for file in sources(package)}
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []


def _lines(file: Path) -> int:
    return len((ROOT / file).read_text(encoding="utf-8").splitlines())
