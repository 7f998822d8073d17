"""Memory of a training on prepared events, by events: its data set, its counts, and its steps.

    python -m benchmarks.scale.training_memory --sizes 1_000_000 10_000_000 100_000_000 --folder DIR

Draws and prepares synthetic events of each size (`benchmarks.scale.synthetic_events`) and, in a
process of its own, does what `kairos train` does up to its first steps, by the recipe of the demo:
builds the data set, splits it, counts what the wide part reads, plans an epoch, and takes a few
steps. Memory is the largest resident set until the end of each stage. Writes
benchmarks/scale/results/training_memory.json.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
import torch

from benchmarks.scale.peak_memory import read_peak
from benchmarks.scale.synthetic_events import DEMO, fit, write_events
from model.clock import now
from training.config import RunConfig
from training.data.batches import TrainingWindows
from training.engines import open_engine
from training.fitting.building import build_recommender
from training.fitting.fit import make_optimizer
from training.fitting.objective import Objective
from training.preparation.events import PreparedEvents
from training.preparation.prepare import prepare
from training.run import build_dataset, split_dataset

RESULTS = Path(__file__).parent / "results" / "training_memory.json"
STEPS = 5


def main() -> None:
    """Measure every size, and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(_measure(chosen.folder)))
        return
    rows = []
    for events in chosen.sizes:
        shutil.rmtree(chosen.folder, ignore_errors=True)
        written, users = write_events(
            chosen.folder / "events", fit(pl.read_parquet(DEMO)), events=events, items=chosen.items
        )
        target = chosen.folder / "prepared"
        with open_engine("local") as engine:
            prepare(f"{chosen.folder}/events/**/*.parquet", str(target), engine)
        command = [sys.executable, "-m", "benchmarks.scale.training_memory", "--measure"]
        printed = subprocess.run(
            [*command, "--sizes", "0", "--folder", str(target)], stdout=subprocess.PIPE, check=True
        ).stdout
        rows.append({"events": written, "users": users} | json.loads(printed.splitlines()[-1]))
        print(rows[-1], flush=True)
        shutil.rmtree(chosen.folder)
    sizes = " ".join(str(size) for size in chosen.sizes)
    record = {
        "command": f"python -m benchmarks.scale.training_memory --sizes {sizes} --folder DIR",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "items": chosen.items,
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _measure(folder: Path) -> dict[str, float]:
    config = RunConfig.read("demo")
    row: dict[str, float] = {"imports_gb": _read_peak()}
    began = time.perf_counter()

    def note(stage: str) -> None:
        nonlocal began
        row[f"{stage}_seconds"] = round(time.perf_counter() - began, 1)
        row[f"{stage}_gb"] = _read_peak()
        began = time.perf_counter()

    events = PreparedEvents.open(str(folder)).select_plausible(now())
    whole = build_dataset(config, events, None)
    note("data_set")
    split = split_dataset(config, whole)
    note("split")
    _, recommender = build_recommender(config, split.dataset, split.is_training)
    note("counts")
    windows = TrainingWindows(
        split.dataset,
        split.train_ends,
        predict=config.data.predict,
        max_history=config.encoder.max_history,
    )
    rng = np.random.default_rng(0)
    plan = windows.plan(rng, tokens=config.fit.tokens)
    note("plan")
    optimizer, objective = (
        make_optimizer(recommender, config.fit),
        Objective(recommender, config.fit),
    )
    recommender.train()
    for batch in islice(windows.build_batches(plan), STEPS):
        objective.compute_loss(batch, rng).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    note("steps")
    return row


def _read_peak() -> float:
    """Read the largest resident set so far, in gigabytes."""
    return round(read_peak() / 1e9, 3)


if __name__ == "__main__":
    main()
