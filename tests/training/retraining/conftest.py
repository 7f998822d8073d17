"""Fixtures: a workspace of the retraining job, empty or with a champion."""

import shutil
from pathlib import Path

import pytest

from tests.training.retraining.workspace import Workspace
from tests.training.ring import ring_world


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def champion_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = Workspace(tmp_path_factory.mktemp("champion"))
    assert workspace.retrain(workspace.job(ring_world())).result == "promoted"
    return workspace.root


@pytest.fixture
def with_champion(champion_root: Path, tmp_path: Path) -> Workspace:
    """A workspace with a champion."""
    shutil.copytree(champion_root, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Workspace(tmp_path)
