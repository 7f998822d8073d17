"""Makes the environments of the peers' libraries, at pinned versions.

    python -m benchmarks.papers.peers.environments [--folder build/peers] [rectools] [replay]

Each is a virtual environment `FOLDER/LIBRARY`. `KAIROS_PEERS` names the folder if it is another.
"""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import get_args

from benchmarks.papers.peers.config import Library
from model.errors import TrainingError

CODE = Path(__file__).parents[3]
"""The checkout, from which the runners import."""

FOLDER_VARIABLE = "KAIROS_PEERS"
"""The environment variable with the folder of the environments."""

LIBRARIES: tuple[Library, ...] = get_args(Library)


def find_folder() -> Path:
    """Find the folder of the environments: of the variable, or build/peers in the checkout."""
    return Path(os.environ.get(FOLDER_VARIABLE) or CODE / "build" / "peers")


def find_interpreter(library: Library) -> Path:
    """Find the interpreter of a library's environment.

    Raises:
        TrainingError: if there is none.
    """
    interpreter = find_folder() / library / "bin" / "python"
    if not interpreter.exists():
        raise TrainingError(
            f"a peer runs in the environment of its library, but there is no {interpreter}; make "
            f"it: python -m benchmarks.papers.peers.environments {library}, or set "
            f"{FOLDER_VARIABLE}"
        )
    return interpreter


def make_environment(folder: Path, library: Library) -> None:
    """Make the environment of a library from its list of versions."""
    venv.create(folder / library, with_pip=True)
    versions = Path(__file__).parent / "constraints" / f"{library}.txt"
    subprocess.run(
        [folder / library / "bin" / "python", "-m", "pip", "install", "-q", "-r", versions],
        check=True,
    )


def main() -> int:
    """Make the chosen environments; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="library", help="By default both.")
    parser.add_argument("--folder", type=Path, default=find_folder())
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.libraries} - {*LIBRARIES}):
        parser.error(f"a library is one of {LIBRARIES}, but got {unknown}; check the names")
    for library in arguments.libraries or LIBRARIES:
        make_environment(arguments.folder.absolute(), library)
        print(f"{arguments.folder / library} is made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
