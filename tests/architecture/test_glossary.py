"""docs/glossary.md and the code use the same words."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.repository import PACKAGES, ROOT, document, sources

GLOSSARY = "docs/glossary.md"
TERMS, _, RETIRED = document(GLOSSARY).partition("\n## Retired words\n")
WORDS, _, IDENTIFIERS = RETIRED.partition("\nIn identifiers also:\n")
CODE = re.findall(r"\| `([\w.]+)` \|$", TERMS, re.M)

SOURCE_FOLDERS = (*PACKAGES, "benchmarks", "demo", "docker", "docs", "migrations", "tests")
SOURCE_ENDINGS = {".css", ".html", ".js", ".md", ".py", ".sh", ".toml", ".yml", ".template"}
NOT_OURS = {"vendor", "results", "__pycache__"}
OUT_OF_SCOPE = {
    GLOSSARY,
    "docs/decisions/0024-layout-and-naming.md",
    f"tests/architecture/{Path(__file__).name}",
}
"""They name the retired words."""


def retired(table: str) -> list[str]:
    """The words in the first column of a table of retired words."""
    rows = re.findall(r"^\| (`.*?`) \|", table, re.M)
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


@cache
def texts() -> dict[Path, list[str]]:
    """The lines of every handwritten file: code, pages, documents and tests."""
    files = [file for folder in SOURCE_FOLDERS for file in (ROOT / folder).rglob("*")]
    files += ROOT.glob("*.md")
    own = (
        file.relative_to(ROOT)
        for file in files
        if file.suffix in SOURCE_ENDINGS and not NOT_OURS & {*file.parts}
    )
    return {
        file: document(str(file)).splitlines()
        for file in sorted(own)
        if file.as_posix() not in OUT_OF_SCOPE
    }


def names(file: Path) -> Iterator[str]:
    """Every class, function, parameter and variable that a Python file defines."""
    for node in ast.walk(ast.parse(document(str(file)))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def lines_with(word: str) -> list[str]:
    """The locations, `file:line`, of a word in any text, also as a part of an identifier."""
    pattern = re.compile(rf"(?<![A-Za-z]){word}(?![a-z])")
    either_case = pattern if word[0].isupper() else re.compile(pattern.pattern, re.IGNORECASE)
    return [
        f"{file}:{number}"
        for file, lines in texts().items()
        for number, line in enumerate(lines, start=1)
        if either_case.search(line)
    ]


@pytest.mark.parametrize("name", CODE)
def test_a_term_of_the_glossary_names_code_that_exists(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_glossary_is_read_whole() -> None:
    terms = [row for row in TERMS.splitlines() if row.startswith("| ")][1:]
    assert len(CODE) == len(terms) > 20
    assert len(retired(WORDS)) >= 8
    assert len(retired(IDENTIFIERS)) >= 25


@pytest.mark.parametrize("word", retired(WORDS))
def test_a_retired_word_stands_nowhere(word: str) -> None:
    assert lines_with(word) == []


def test_no_identifier_uses_a_retired_name() -> None:
    refused = {*retired(IDENTIFIERS)}
    found = {
        f"{file}: {name}"
        for file in sources(*PACKAGES, "benchmarks", "tests")
        for name in names(file)
        if name in refused
    }
    assert found == set()
