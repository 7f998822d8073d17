import re
from pathlib import Path

import pytest

from app.settings import Settings
from tests.architecture.repository import ROOT, document

SKIPPED = {".venv", "var", "runs", "build"}
DOCUMENTS = sorted(
    str(file.relative_to(ROOT))
    for file in ROOT.rglob("*.md")
    if not SKIPPED & {*file.relative_to(ROOT).parts}
    and not any(part.startswith(".") for part in file.relative_to(ROOT).parts)
)
DECISIONS = sorted(name for name in DOCUMENTS if name.startswith("docs/decisions/"))


@pytest.mark.parametrize("setting", Settings.model_fields)
def test_every_setting_has_a_description(setting: str) -> None:
    assert Settings.model_fields[setting].description


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_between_documents_have_a_target(name: str) -> None:
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", document(name))
    assert [
        target for target in targets if not (ROOT / name).parent.joinpath(target).exists()
    ] == []


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_has_at_most_40_lines(name: str) -> None:
    assert len(document(name).splitlines()) <= 40


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_names_code_that_exists(name: str) -> None:
    code = document(name).partition("## Code")[2]
    paths = [path for path in re.findall(r"`([\w./-]+)`", code) if "/" in path]
    assert paths, "list under '## Code' the files that implement the decision"
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_decisions_have_distinct_numbers() -> None:
    numbers = [Path(name).name.partition("-")[0] for name in DECISIONS]
    assert len(numbers) == len(set(numbers))
