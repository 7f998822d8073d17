import importlib
import re

import pytest

from tests.architecture.repository import ROOT, document

GLOSSARY = document("docs/glossary.md")
TERMS, _, RETIRED = GLOSSARY.partition("## Retired words")
NAMES = re.findall(r"\| `((?:app|model|training)\.[\w.]+)` \|$", TERMS, re.M)
ROWS = re.findall(r"^\| (`.*?) \|", RETIRED.partition("In identifiers")[0], re.M)
PHRASES = re.findall(r"`([^`]+)`", "".join(ROWS))
PACKAGES = ("app", "benchmarks", "cli", "kairos_client", "model", "training")


@pytest.mark.parametrize("name", NAMES)
def test_a_term_of_the_glossary_exists_in_the_code(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_retired_word_is_in_the_source(phrase: str) -> None:
    pattern = re.compile(rf"\b{re.escape(phrase)}\b")
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    assert [str(file) for file in files if pattern.search(file.read_text("utf-8"))] == []
