"""The files in the wheel."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from tests.processes import ROOT

FOLDERS = ("app/dashboard/static", "app/dashboard/templates")


def test_the_wheel_holds_every_file_of_the_dashboard(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "app", source / "app", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", tmp_path, source], check=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as packed:
        packed_files = {name for name in packed.namelist() if name.startswith(FOLDERS)}
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    files = {path.relative_to(ROOT).as_posix() for path in found if path.is_file()}
    assert packed_files == files
