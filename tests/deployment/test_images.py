"""Runs the steps of the Dockerfiles in Debian roots; takes minutes and downloads packages."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deployment.programs import requires_program
from tests.processes import ROOT

LARGEST_MEBIBYTES = 1600


@pytest.mark.slow
@pytest.mark.timeout(3600)
@requires_program("debootstrap", "apt-get install debootstrap")
@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_the_images_build_and_run(tmp_path: Path, published: Path) -> None:
    volume = Path(shutil.copytree(published, tmp_path / "volume"))
    # The steps use the same local package directories as pip on this machine.
    directories = os.environ.get("PIP_FIND_LINKS", "").split()
    borrowed = [option for path in directories for option in ("--borrow", path)]
    run = subprocess.run(
        [
            sys.executable,
            str(ROOT / "docker" / "run_steps.py"),
            *[str(ROOT / "docker" / f"{name}.Dockerfile") for name in ("api", "trainer")],
            *["--directory", str(tmp_path / "images"), "--volume", str(volume), *borrowed],
        ],
        capture_output=True,
        text=True,
        timeout=3500,
        check=False,
    )
    shutil.rmtree(tmp_path / "images", ignore_errors=True)
    reports = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{"image"')]
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    api, trainer = reports
    assert api["user"] == "10001"
    assert max(api["mebibytes"], trainer["mebibytes"]) < LARGEST_MEBIBYTES
