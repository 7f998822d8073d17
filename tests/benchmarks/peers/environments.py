"""Environments of peers that hold no library."""

import shutil
import sys
from pathlib import Path

from benchmarks.papers.peers.environments import LIBRARIES, VERSIONS, find_versions


def make_environments(folder: Path) -> None:
    """Make environments whose interpreters run the chain peer in place of the runners."""
    for library in LIBRARIES:
        interpreter = folder / library / "bin" / "python"
        interpreter.parent.mkdir(parents=True)
        interpreter.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m tests.benchmarks.peers.chain_peer "$3"\n'
        )
        interpreter.chmod(0o755)
        shutil.copyfile(find_versions(library), folder / library / VERSIONS)
