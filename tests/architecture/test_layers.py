import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import PACKAGES, ROOT, document, imports, sources


def test_imports_point_down() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [lint_imports, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_only_the_index_imports_faiss() -> None:
    importing = {str(file) for file in sources(*PACKAGES) if "faiss" in imports(file)}
    modules = {"faiss_file.py", "index.py", "inverted_file.py"}
    assert importing <= {f"model/bundle/{module}" for module in modules}


def test_no_module_imports_a_pickling_library() -> None:
    pickling = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    assert [str(file) for file in sources(*PACKAGES) if pickling & {*imports(file)}] == []


def test_the_client_imports_only_httpx_and_pydantic() -> None:
    permitted = {*sys.stdlib_module_names, "kairos_client", "httpx", "pydantic"}
    imported = {
        module.partition(".")[0] for file in sources("kairos_client") for module in imports(file)
    }
    assert imported <= permitted


FAILURES_OF_DRIVERS = re.compile(
    r"sqlalchemy\.exc|from sqlalchemy import .*\bexc\b|(psycopg|sqlite3)\.(errors\b|\w*Error\b)"
)


def test_only_the_database_layer_knows_the_failures_of_drivers() -> None:
    """A type that one module forgets would otherwise become a 500 or the end of a task."""
    knowing = {
        str(file)
        for file in sources(*PACKAGES, "migrations")
        if FAILURES_OF_DRIVERS.search(document(str(file)))
    }
    assert knowing == {
        "app/db/deadline.py",
        "app/db/engine.py",
        "app/db/failures.py",
        # Training imports nothing of the service.
        "training/data/database_source.py",
    }
