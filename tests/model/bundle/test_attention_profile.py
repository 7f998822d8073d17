from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from model.bundle.attention_profile import SCHEMA, read_profile, write_profile
from model.errors import BundleError
from model.store.opening import open_predictor
from tests import tiny

CURVES = pl.DataFrame(
    {
        "view": ["observed", "predicted"],
        "by": ["all", "action"],
        "name": ["", "buy"],
        "interval_days": [0.5, 30.0],
        "mean": [0.75, 0.25],
        "sd": [0.1, 0.0],
        "count": [12, 1],
    },
    schema=SCHEMA,
)


def test_curves_survive_a_round_trip(tmp_path: Path) -> None:
    write_profile(CURVES, tmp_path / "p.parquet")
    assert_frame_equal(read_profile((tmp_path / "p.parquet").read_bytes()), CURVES)


def test_a_file_without_the_columns_is_refused_by_name(tmp_path: Path) -> None:
    CURVES.drop("sd").write_parquet(tmp_path / "p.parquet")
    with pytest.raises(BundleError, match=r"mean, sd, count, but attention_profile\.parquet does"):
        read_profile((tmp_path / "p.parquet").read_bytes())


def test_a_bundle_holds_its_attention_profile(tmp_path: Path) -> None:
    config = tiny.recommender_config()
    unnamed = tmp_path / "unnamed"
    unnamed.mkdir()
    version = tiny.writer(config, tiny.recommender(config), attention_profile=CURVES)(unnamed)
    opened = open_predictor(unnamed.rename(tmp_path / version))
    assert opened.bundle.attention_profile is not None
    assert_frame_equal(opened.bundle.attention_profile, CURVES)


def test_a_bundle_without_an_attention_profile_has_none(tmp_path: Path) -> None:
    assert open_predictor(tiny.write_bundle(tmp_path)).bundle.attention_profile is None
