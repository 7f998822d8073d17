"""A subset of the demo: every twentieth customer, and three small trained versions.

Built by the commands an operator runs: import, two retrainings, and a third model with modulated
attention.
"""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
from filelock import FileLock

ROOT = Path(__file__).parents[2]
CUSTOMER = "12347"
"""One of the customers, with some two hundred events."""
SHARE = 20
PATIENCE_SECONDS = 300

_RECIPE = """
profile_histories = 200
export_encoder = false
map_items = 1000

[data]
predict = "next_basket"
ignored_actions = ["cancel"]
groups = "clusters"

[split]
kind = "by_time"
of = "events"
test = 0.1
validation = 0.1

[encoder]
kind = "self_attention"
dim = 16
heads = 2
layers = 1
feed_forward = 16
max_history = 50
repeats = true
{modulation}

[encoder.time_encoding]
kind = "mercer"
periods = 4
degree = 2

[fit]
epochs = 2
tokens = 4000
refit = true
frequency_learning_rate = 0.02

[gate]
questions = 20
may_lose = 1.0
popularity_lead = -1.0
p95_seconds = 5.0
"""
_MODULATED = "modulation = {groups = 4}"


def build(directory: Path) -> Path:
    """Build the database and the bundles, once for all test processes.

    Returns the directory, with `kairos.db` and `bundles`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(directory / "lock"):
        if not (directory / "done").exists():
            _build(directory)
            (directory / "done").touch()
    return directory


def _build(directory: Path) -> None:
    events = pl.read_parquet(ROOT / "demo" / "events.parquet")
    customers = events["user_id"].unique().sort()
    chosen = pl.concat([customers.gather_every(SHARE), pl.Series([CUSTOMER])])
    events_file, items_file = directory / "events.parquet", str(ROOT / "demo" / "items.parquet")
    events.filter(pl.col("user_id").is_in(chosen.implode())).write_parquet(events_file)
    (directory / "mercer.toml").write_text(_RECIPE.format(modulation=""))
    (directory / "modulated.toml").write_text(_RECIPE.format(modulation=_MODULATED))
    _kairos(directory, "import-items", items_file)
    _kairos(directory, "import-events", str(events_file))
    for until in ("2011-09-01T00:00:00Z", "2011-12-10T00:00:00Z"):
        retrain = ("retrain", "--recipe", "mercer.toml", "--store", "bundles", "--runs", "runs")
        # The events were stored just now; `--known-by` keeps them in the training window.
        known = ("--until", until, "--known-by", "2100-01-01T00:00:00Z")
        _kairos(directory, *retrain, *known, "--threads", "1")
    # The last one: tests expect the third version to be the newest.
    train = (
        *("train", "--recipe", "modulated.toml", "--output", "modulated", "--threads", "1"),
        *("--events", str(events_file), "--items", items_file),
    )
    _kairos(directory, *train)
    _kairos(directory, "publish", "modulated", "--store", "bundles", "--no-activate")


def _kairos(directory: Path, *arguments: str) -> None:
    """Run a command of the CLI in `directory`."""
    database = f"sqlite:///{directory / 'kairos.db'}"
    done = subprocess.run(
        [Path(sys.executable).parent / "kairos", *arguments],
        cwd=directory,
        env={**os.environ, "KAIROS_DATABASE_URL": database},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"kairos {' '.join(arguments)}: {done.stdout}{done.stderr}"
