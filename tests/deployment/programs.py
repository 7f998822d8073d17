"""The programs of others that prove what is shipped; tests skip where one is missing."""

import os
import shutil
import sys
from pathlib import Path

import pytest

_PLACES = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"]
)


def program(name: str) -> str | None:
    """Where a program is; None where it is not installed."""
    return shutil.which(name, path=_PLACES)


def needs(name: str, package: str) -> pytest.MarkDecorator:
    """Skips a test where a program is not installed, saying what Debian calls its package."""
    reason = f"{name} is not installed (Debian: apt-get install {package})"
    return pytest.mark.skipif(program(name) is None, reason=reason)
