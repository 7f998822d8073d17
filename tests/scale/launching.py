"""`kairos train` as processes of a launcher, and what they leave behind."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from model.bundle.provenance import EPOCHS, Epoch
from model.bundle.reading import read_bundle
from tests import tiny
from tests.processes import ROOT

RECIPE = """
export_encoder = false
profile_histories = 20
[split]
kind = "by_time"
test = 0.15
validation = 0.15
[encoder]
kind = "self_attention"
dim = 8
feed_forward = 8
max_history = 6
dropout = 0.0
[fit]
epochs = {epochs}
tokens = 300
warmup_steps = 2
query_time_dropout = 0.0
"""
"""Draws nothing at random after the initial weights and the order of the batches."""


def write_inputs(directory: Path, *, epochs: int = 4, users: int = 60) -> tuple[str, ...]:
    """Write events and a recipe; the options of the command that name them."""
    events, recipe = directory / "events.parquet", directory / "recipe.toml"
    tiny.gap_world(users=users, length=12).write_parquet(events)
    recipe.write_text(RECIPE.format(epochs=epochs), "utf-8")
    return ("--events", str(events), "--recipe", str(recipe), "--threads", "1")


@dataclass(frozen=True)
class Launched:
    """A running command, and the file that its output goes to."""

    process: "subprocess.Popen[bytes]"
    output: Path

    def find_workers(self) -> dict[int, psutil.Process]:
        """Find the processes that train, by rank."""
        children = psutil.Process(self.process.pid).children()
        described = [(worker, worker.environ()) for worker in children]
        return {int(of["RANK"]): worker for worker, of in described if "RANK" in of}

    def find_workers_of_ray(self) -> list[psutil.Process]:
        """Find the processes of Ray Train that train."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in below if "RayTrainWorker" in process.name()]

    def finish(self) -> Path:
        """Wait for the command to end well; the bundle that it printed."""
        self.process.wait(timeout=600)
        written = self.output.read_text("utf-8")
        assert self.process.returncode == 0, written
        (bundle,) = (line for line in written.splitlines() if line.startswith("/"))
        return Path(bundle)


@contextmanager
def command(output: Path, *options: str, launcher: tuple[str, ...] = ()) -> Iterator[Launched]:
    """Run `kairos train`, at most until the end of the block."""
    output.mkdir()
    with (output / "printed.txt").open("wb") as printed:
        process = subprocess.Popen(
            [
                *(sys.executable, *launcher, "-m", "cli.main", "train", *options),
                *("--output", str(output)),
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Launched(process, output / "printed.txt")
    finally:
        process.terminate()
        process.wait(timeout=30)


def torchrun(
    output: Path, *options: str, processes: int, restarts: int = 0
) -> AbstractContextManager[Launched]:
    """Run `kairos train` by processes of torchrun, at most until the end of the block."""
    launcher = (
        *("-m", "torch.distributed.run", "--standalone"),
        *("--nproc-per-node", str(processes), "--max-restarts", str(restarts)),
    )
    return command(output, *options, launcher=launcher)


def read_epochs(bundle: Path) -> tuple[Epoch, ...]:
    """Read the figures of the epochs."""
    return EPOCHS.read(read_bundle(bundle).manifest)


def read_metrics(bundle: Path) -> dict[str, float]:
    """Read the metrics on the test questions."""
    return read_bundle(bundle).manifest.metrics
