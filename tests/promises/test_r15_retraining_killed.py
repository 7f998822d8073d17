"""R15: retraining killed in each phase leaves the champion untouched; of two at once, one runs."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from model.store.store import BundleStore
from tests.cli.world import kairos
from tests.processes import ROOT
from tests.promises.figures import Figures
from tests.promises.killed_retrainer import POINTS, SURVIVES
from tests.promises.strength import Strength
from tests.training.ring import ring_world, written

RECIPE = """
item_bias = true
profile_histories = 50

[split]
kind = "by_time"
test = 0.15
validation = 0.15

[encoder]
kind = "self_attention"
dim = 8
heads = 1
layers = 1
feed_forward = 8
max_history = 8

[encoder.time_encoding]
kind = "mercer"
periods = 2

[fit]
epochs = 2
tokens = 800
warmup_steps = 2
learning_rate = 0.02
refit = true

[gate]
questions = 10
may_lose = 1.0
popularity_lead = -1.0
p95_seconds = 30.0
"""
COUNTING = (
    RECIPE.partition("[encoder]")[0]
    + '[encoder]\nkind = "markov"\n[gate]'
    + (RECIPE.partition("[gate]")[2])
)
IN_PLACE = ("after_pointer", "record")
"""Points at which the challenger serves already."""


@dataclass(frozen=True)
class Night:
    """A store with a champion, a database, and the arguments of the run that is to come."""

    root: Path

    @property
    def store(self) -> BundleStore:
        return BundleStore(self.root / "store")

    def results(self) -> list[str]:
        with closing(sqlite3.connect(self.root / "kairos.db")) as connection:
            ordered = "SELECT result FROM training_runs ORDER BY started_at"
            return [result for (result,) in connection.execute(ordered)]

    def arguments(self, recipe: str = "ring", *more: str) -> list[str]:
        return [
            *("retrain", "--recipe", str(self.root / f"{recipe}.toml"), "--threads", "1"),
            *("--events", str(self.root / "events.parquet")),
            *("--database", f"sqlite:///{self.root / 'kairos.db'}"),
            *("--store", str(self.store.root), "--runs", str(self.root / "runs"), *more),
        ]

    @property
    def order(self) -> list[str]:
        """The same each time, so that a killed run is gone on with."""
        return self.arguments("ring", "--until", "2030-01-01T00:00:00Z")

    def copy(self, root: Path) -> "Night":
        return Night(Path(shutil.copytree(self.root, root)))


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The champion is in place, and has been for a while."""
    night = Night(tmp_path_factory.mktemp("evening") / "night")
    night.root.mkdir()
    (night.root / "ring.toml").write_text(RECIPE)
    (night.root / "counting.toml").write_text(COUNTING)
    written(ring_world(users=30, length=12), night.root / "events.parquet")
    kairos(*night.arguments("counting"))
    assert night.results() == ["promoted"]
    return night


Run = Callable[..., list[int]]
"""Runs the jobs of some nights at the same time, each to a point; answers how each ended."""


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """One process that has everything loaded, and starts the others."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.promises.killed_retrainer"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        told, heard = parent.stdin, parent.stdout
        assert told is not None
        assert heard is not None

        def run(*pairs: tuple[str, Night]) -> list[int]:
            print(
                json.dumps([(point, night.order) for point, night in pairs]), file=told, flush=True
            )
            return [int(code) for code in json.loads(heard.readline())]

        yield run
        parent.kill()


def test_wherever_retraining_is_killed_the_champion_serves_on_and_the_next_run_succeeds(
    evening: Night, run: Run, tmp_path: Path, strength: Strength, figures: Figures
) -> None:
    points = strength.of(short=("within_fit", "after_rename", "after_pointer"), full=POINTS)
    champion = evening.store.current()
    nights = {point: evening.copy(tmp_path / point) for point in points}
    killed = touched = unsound = recovered = 0
    for some in _in_parts(points, 4):
        codes = run(*((point, nights[point]) for point in some))
        killed += codes.count(-signal.SIGKILL)
        for point in some:
            store = nights[point].store
            current = store.current()
            touched += current != champion and point not in IN_PLACE
            unsound += store.open().version != current
        run(*((SURVIVES, nights[point]) for point in some))
        for point in some:
            night = nights[point]
            left = night.results()
            recovered += (
                left == ["promoted", "abandoned", "promoted"] and night.store.current() != champion
            )
            night.store.open()
    figures.keep(
        "R15",
        "killed at a named point",
        points=len(points),
        killed=killed,
        champion_touched=touched,
        unsound=unsound,
        next_run_succeeded=recovered,
    )
    assert killed == len(points)
    assert touched == unsound == 0
    assert recovered == len(points)


def test_of_two_at_once_one_runs(
    evening: Night, run: Run, tmp_path: Path, strength: Strength, figures: Figures
) -> None:
    pairs = strength.of(short=1, full=5)
    ran = refused = rows = 0
    for number in range(pairs):
        night = evening.copy(tmp_path / str(number))
        codes = run((SURVIVES, night), (SURVIVES, night))
        ran += codes.count(0)
        refused += codes.count(3)
        rows += len(night.results()) - 1
    figures.keep("R15", "two at once", pairs=pairs, ran=ran, refused=refused, recorded=rows)
    assert (ran, refused, rows) == (pairs, pairs, pairs)


def _in_parts(points: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    return [points[begin : begin + size] for begin in range(0, len(points), size)]
