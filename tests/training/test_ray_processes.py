import sys
from pathlib import Path

import pytest

from model.errors import MissingPackageError
from training.ray_processes import run_on_ray


def test_without_ray_the_error_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'kairos\[scale\]'"):
        run_on_ray(lambda group: group, tmp_path, processes=2, uses_gpus=False)
