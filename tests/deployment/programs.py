"""External programs that the tests run; a test is skipped if its program is not installed."""

import os
import shutil
import sys
from pathlib import Path

import pytest

_SEARCH_PATH = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"]
)


def program(name: str) -> str | None:
    """The path of a program; None if it is not installed."""
    return shutil.which(name, path=_SEARCH_PATH)


def requires_program(name: str, install: str) -> pytest.MarkDecorator:
    """Skips a test if a program is not installed; the reason says how to install it."""
    reason = f"{name} is not installed ({install})"
    return pytest.mark.skipif(program(name) is None, reason=reason)
