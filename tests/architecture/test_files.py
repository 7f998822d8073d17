import pytest

from tests.architecture.repository import PACKAGES, ROOT, sources

REFUSED_NAMES = {"base", "common", "helper", "helpers", "misc", "shared", "util", "utils"}
EVERYWHERE = (*PACKAGES, "benchmarks", "migrations", "tests")


def test_no_file_has_a_name_without_meaning() -> None:
    misnamed = [
        file for file in sources(*EVERYWHERE) if REFUSED_NAMES & {*file.with_suffix("").parts}
    ]
    assert misnamed == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_code_is_a_package(package: str) -> None:
    folders = {file.parent for file in sources(package)}
    assert [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists()] == []
