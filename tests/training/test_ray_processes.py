import sys
from pathlib import Path

import pytest

from cli.train import _locate
from model.errors import MissingPackageError
from training.ray_processes import run_on_ray


def test_without_ray_the_error_names_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'kairos\[scale\]'"):
        run_on_ray(lambda group: group, tmp_path, processes=2, uses_gpus=False)


@pytest.mark.parametrize(
    ("location", "sent"),
    [
        ("events/*.parquet", "{here}/events/*.parquet"),
        ("/data/events", "/data/events"),
        ("s3://bucket/events", "s3://bucket/events"),
        ("sqlite:///var/kairos.db", "sqlite:///{here}/var/kairos.db"),
        ("sqlite:////var/kairos.db", "sqlite:////var/kairos.db"),
        ("postgresql://user@host/name", "postgresql://user@host/name"),
    ],
)
def test_other_machines_get_absolute_locations(location: str, sent: str) -> None:
    assert _locate(location) == sent.format(here=Path.cwd())
