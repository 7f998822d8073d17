"""Recommendations for everyone by Ray: one row per user, also when a node is lost."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

from tests import tiny
from tests.scale.data.everyone import (
    KILLED_AFTER,
    SHARDS,
    USERS,
    TinyModel,
    prepare_users,
    recommend,
)
from training.recommendations import MANIFEST


def test_each_user_has_one_row_though_a_node_is_lost(
    cluster: Any, second_node: Any, tmp_path: Path
) -> None:
    model = TinyModel(tiny.write_bundle(tmp_path / "bundles"))
    events = prepare_users(tmp_path)
    done: list[int] = []

    def lose_the_node(_: str, __: int) -> None:
        done.append(len(done))
        if len(done) == 3:
            cluster.remove_node(second_node, allow_graceful=False)

    by_ray = recommend(model, events, tmp_path / "ray", "ray", lose_the_node)
    local = recommend(model, events, tmp_path / "local", "local")
    assert len(done) == SHARDS
    assert by_ray["user_id"].n_unique() == len(by_ray) == USERS
    assert by_ray.sort("user_id").equals(local.sort("user_id"))


def test_each_user_has_one_row_though_runs_are_killed(tmp_path: Path) -> None:
    model = TinyModel(tiny.write_bundle(tmp_path / "bundles"))
    events = prepare_users(tmp_path)
    whole = recommend(model, events, tmp_path / "whole", "local")
    output = tmp_path / "killed"
    arguments = str(model.bundle), events.folder.location, str(output)
    code = (
        "from tests.scale.data.everyone import recommend_until_killed\n"
        f"recommend_until_killed(*{arguments!r})"
    )
    codes = []
    while not (output / MANIFEST).exists():
        codes.append(subprocess.run([sys.executable, "-c", code], check=False).returncode)
    table = pl.read_parquet(output / "*.parquet")
    assert codes == [-signal.SIGKILL] * (SHARDS // KILLED_AFTER) + [0]
    assert table.sort("user_id").equals(whole.sort("user_id"))
