"""Access to the files of the repository."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "cli", "kairos", "kairos_client", "model", "training")


def sources(*folders: str) -> list[Path]:
    """The Python files of some folders, relative to the root."""
    found = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return sorted(file.relative_to(ROOT) for file in found)


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, at any level."""
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def document(name: str) -> str:
    """The text of a document."""
    return (ROOT / name).read_text(encoding="utf-8")
