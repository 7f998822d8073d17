"""What the start of a process does, and what it leaves for later."""

import os
import subprocess
import sys
from pathlib import Path

from migrations.run import upgrade

NOT_NEEDED = {
    *("alembic", "mako"),  # of a schema that is up to date
    "psycopg",  # of SQLite
    *("matplotlib", "pandas", "plotly", "scipy", "sklearn", "sympy"),
    *("torch._dynamo", "torch._inductor", "training"),
}
"""What takes seconds to import."""

START = """
import gc, sys, threading
import fastapi, uvicorn

collections, descriptions, at_serving = [], [], []
derive = fastapi.FastAPI.openapi
fastapi.FastAPI.openapi = lambda app: descriptions.append(app) or derive(app)
started = uvicorn.Server.startup

async def startup(self, sockets=None):
    at_serving.extend([len(collections), len(descriptions), gc.isenabled(), gc.get_freeze_count()])
    await started(self, sockets)
    self.handle_exit(2, None)

uvicorn.Server.startup = startup

from app import server
from app.settings import Settings

def count(phase, collection):
    if phase == "start" and collection["generation"] == 2:
        collections.append(collection)

gc.callbacks.append(count)
try:
    server.run(Settings())
finally:
    print("RAN", *at_serving)
    print("IMPORTED", *sys.modules)
"""


def start(database_url: str, bundle_store: Path, runtime_directory: Path) -> tuple[str, set[str]]:
    """Start a process, and stop it when it accepts connections; return what it printed."""
    upgrade(database_url)
    environment = {
        "KAIROS_BUNDLE_STORE": str(bundle_store),
        "KAIROS_DATABASE_URL": database_url,
        "KAIROS_PORT": "0",
        "KAIROS_RUNTIME_DIRECTORY": str(runtime_directory),
    }
    process = subprocess.run(
        [sys.executable, "-c", START],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "bundle_activated" in process.stderr
    ran, _, imported = process.stdout.partition("IMPORTED")
    return ran.strip(), set(imported.split())


def test_a_start_does_only_what_serving_needs(
    sqlite_url: str, bundle_store: Path, tmp_path: Path
) -> None:
    ran, imported = start(sqlite_url, bundle_store, tmp_path / "runtime")
    collections, descriptions, collects, frozen = ran.split()[1:]
    assert (collections, descriptions, collects) == ("1", "0", "True")
    assert int(frozen) > 100_000
    assert {"torch", "faiss", "app.main"} <= imported
    assert not NOT_NEEDED & imported


def test_another_database_imports_its_own_driver(
    postgresql_url: str, bundle_store: Path, tmp_path: Path
) -> None:
    _, imported = start(postgresql_url, bundle_store, tmp_path / "runtime")
    assert "psycopg" in imported
    assert "alembic" not in imported
