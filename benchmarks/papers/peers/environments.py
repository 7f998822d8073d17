"""Makes the environments of the peers' libraries, at pinned versions.

    python -m benchmarks.papers.peers.environments [--folder build/peers] [rectools] [replay]

Each is a virtual environment `FOLDER/LIBRARY`. `KAIROS_PEERS` names the folder if it is another.
"""

import argparse
import os
import shutil
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

VERSIONS = "versions.txt"
"""The list of versions that an environment was made of, in its folder, once it is complete."""

LIBRARIES: tuple[Library, ...] = get_args(Library)


def find_folder() -> Path:
    """Find the folder of the environments: of the variable, or build/peers in the checkout."""
    return Path(os.environ.get(FOLDER_VARIABLE) or CODE / "build" / "peers")


def find_interpreter(library: Library) -> Path:
    """Find the interpreter of a library's environment.

    Raises:
        TrainingError: if there is none.
    """
    environment = find_folder() / library
    interpreter = environment / "bin" / "python"
    problem = None
    if not interpreter.exists():
        problem = f"there is no {interpreter}"
    elif not _is_complete(environment, library):
        problem = f"{environment} is not complete, or of other versions"
    if problem is not None:
        raise TrainingError(
            f"a peer runs in the environment of its library, but {problem}; make it: "
            f"python -m benchmarks.papers.peers.environments {library}, or set {FOLDER_VARIABLE}"
        )
    return interpreter


def make_environment(folder: Path, library: Library) -> None:
    """Make the environment of a library from its list of versions.

    Raises:
        TrainingError: if a package cannot be installed.
    """
    environment = folder / library
    (environment / VERSIONS).unlink(missing_ok=True)
    venv.create(environment, with_pip=True)
    python, versions = str(environment / "bin" / "python"), str(find_versions(library))
    try:
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", versions], check=True)
    except subprocess.CalledProcessError as error:
        raise TrainingError(
            f"the packages of {versions} are installed by pip, which ended with "
            f"{error.returncode}; see its message above, and make the environment again"
        ) from error
    shutil.copyfile(versions, environment / VERSIONS)


def find_versions(library: Library) -> Path:
    """Find the list of versions of a library's environment."""
    return Path(__file__).parent / "constraints" / f"{library}.txt"


def _is_complete(environment: Path, library: Library) -> bool:
    """Return whether an environment was made to its end, at the versions of now."""
    made = environment / VERSIONS
    return made.is_file() and made.read_bytes() == find_versions(library).read_bytes()


def main() -> int:
    """Make the chosen environments; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="library", help="By default both.")
    parser.add_argument("--folder", type=Path, default=find_folder())
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.libraries} - {*LIBRARIES}):
        parser.error(f"a library is one of {LIBRARIES}, but got {unknown}; check the names")
    for library in arguments.libraries or LIBRARIES:
        try:
            make_environment(arguments.folder.absolute(), library)
        except TrainingError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"{arguments.folder / library} is made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
