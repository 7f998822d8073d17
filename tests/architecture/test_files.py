import pytest

from tests.architecture.repository import PACKAGES, ROOT, sources

JUNK_DRAWERS = {"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}
EVERYWHERE = (*PACKAGES, "benchmarks", "migrations", "tests")


def test_no_file_is_a_junk_drawer() -> None:
    named = [file for file in sources(*EVERYWHERE) if JUNK_DRAWERS & {*file.with_suffix("").parts}]
    assert named == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_code_is_a_package(package: str) -> None:
    folders = {file.parent for file in sources(package)}
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []
