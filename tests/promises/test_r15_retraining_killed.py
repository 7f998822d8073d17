"""R15: retraining killed in any phase keeps the champion; of two concurrent runs, one runs."""

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
from tests.training.ring import ring_world, write_events

RECIPE = """
item_bias = true
profile_histories = 50
export_encoder = false

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
ALREADY_ACTIVE = ("after_pointer", "record")
"""Points at which the challenger is already active."""


@dataclass(frozen=True)
class Workspace:
    """A store with a champion, a database, and the arguments of the next run."""

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
    def fixed_arguments(self) -> list[str]:
        """Arguments with a fixed `--until`, so that a second run resumes a killed one."""
        return self.arguments("ring", "--until", "2030-01-01T00:00:00Z")

    def copy(self, root: Path) -> "Workspace":
        return Workspace(Path(shutil.copytree(self.root, root)))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with an active champion."""
    workspace = Workspace(tmp_path_factory.mktemp("prepared") / "workspace")
    workspace.root.mkdir()
    (workspace.root / "ring.toml").write_text(RECIPE)
    (workspace.root / "counting.toml").write_text(COUNTING)
    write_events(ring_world(users=30, length=12), workspace.root / "events.parquet")
    kairos(*workspace.arguments("counting"))
    assert workspace.results() == ["promoted"]
    return workspace


Run = Callable[..., list[int]]
"""Runs the jobs of workspaces at the same time, each up to a point; returns the exit codes."""


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """A process that has imported everything, and forks the runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.promises.killed_retrainer"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        requests, results = parent.stdin, parent.stdout
        assert requests is not None
        assert results is not None

        def run(*pairs: tuple[str, Workspace]) -> list[int]:
            print(
                json.dumps([(point, workspace.fixed_arguments) for point, workspace in pairs]),
                file=requests,
                flush=True,
            )
            return [int(code) for code in json.loads(results.readline())]

        yield run
        parent.kill()


def test_a_killed_run_keeps_the_champion_and_the_next_succeeds(
    prepared: Workspace, run: Run, tmp_path: Path, strength: Strength, figures: Figures
) -> None:
    points = strength.select(short=("within_fit", "after_rename", "after_pointer"), full=POINTS)
    champion = prepared.store.read_current()
    workspaces = {point: prepared.copy(tmp_path / point) for point in points}
    killed = touched = unsound = recovered = 0
    for group in _split(points, 4):
        codes = run(*((point, workspaces[point]) for point in group))
        killed += codes.count(-signal.SIGKILL)
        for point in group:
            store = workspaces[point].store
            current = store.read_current()
            touched += current != champion and point not in ALREADY_ACTIVE
            unsound += store.open().version != current
        run(*((SURVIVES, workspaces[point]) for point in group))
        for point in group:
            workspace = workspaces[point]
            results = workspace.results()
            recovered += (
                results == ["promoted", "abandoned", "promoted"]
                and workspace.store.read_current() != champion
            )
            workspace.store.open()
    figures.record(
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


def test_of_two_concurrent_runs_one_runs(
    prepared: Workspace, run: Run, tmp_path: Path, strength: Strength, figures: Figures
) -> None:
    pairs = strength.select(short=1, full=5)
    ran = refused = rows = 0
    for number in range(pairs):
        workspace = prepared.copy(tmp_path / str(number))
        codes = run((SURVIVES, workspace), (SURVIVES, workspace))
        ran += codes.count(0)
        refused += codes.count(3)
        rows += len(workspace.results()) - 1
    figures.record("R15", "two at once", pairs=pairs, ran=ran, refused=refused, recorded=rows)
    assert (ran, refused, rows) == (pairs, pairs, pairs)


def _split(points: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    return [points[begin : begin + size] for begin in range(0, len(points), size)]
