"""Seconds per epoch and peak memory of training, beside RecTools and RePlay.

    python benchmarks/speed/training_peers.py --events .../ml-1m-users-1-2999/events.parquet \\
        --rectools rectools/bin/python --replay replay/bin/python

Every network has width 64, two blocks, up to 200 events, a full softmax and the same threads; each
trains for an epoch in a process of its own, and they take turns. Memory is the largest resident set
of the process. The peers read the latest 200 events of a user and leave out earlier ones, so Kairos
is measured twice: on these targets, and on all of them. A peer without an interpreter is left out.
peers/README.md describes their environments. Writes
benchmarks/speed/results/training-peers-DATA-THREADS.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import torch

from training.config import FitConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.data.split import LeaveOneOutConfig
from training.fitting.fit import fit

RESULTS = Path(__file__).parent / "results"
PEERS = Path(__file__).parent / "peers"
DIM, MAX_HISTORY, MIN_ITEM_EVENTS = 64, 200, 5


def main() -> None:
    """Measure every network in turns, or one of Kairos' in this process."""
    arguments = _parse_arguments()
    if arguments.one is not None:
        network, targets = arguments.one
        _train_one(Path(arguments.events), network, targets, arguments.threads)
        return
    with tempfile.TemporaryDirectory() as directory:
        table = Path(directory) / "events.tsv"
        _write_table(arguments.events, table)
        commands = _build_commands(arguments, table)
        measured: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
        for _ in range(arguments.turns):
            for name, command in commands.items():
                measured[name].append(_run(command, arguments.threads))
                print(name, measured[name][-1], flush=True)
    rows = {
        name: {
            key: round(statistics.median(turn[key] for turn in turns), 2)
            for key in ("seconds_per_epoch", "peak_mib")
        }
        for name, turns in measured.items()
    }
    data = "/".join(arguments.events.parts[-2:])
    record = {
        "command": (
            f"python benchmarks/speed/training_peers.py --events .../{data} "
            f"--rectools rectools/bin/python --replay replay/bin/python "
            f"--threads {arguments.threads} --turns {arguments.turns}"
        ),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "dim": DIM,
        "max_history": MAX_HISTORY,
        "cores": os.cpu_count(),
        "threads": arguments.threads,
        "rows": rows,
        "turns": measured,
    }
    RESULTS.mkdir(exist_ok=True)
    output = RESULTS / f"training-peers-{arguments.events.parent.name}-{arguments.threads}.json"
    output.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(rows, indent=1))


def _build_commands(arguments: argparse.Namespace, table: Path) -> dict[str, list[str]]:
    threads = ["--threads", str(arguments.threads)]
    commands = {}
    if arguments.rectools is not None:
        script = [str(arguments.rectools), str(PEERS / "rectools_training.py"), str(table)]
        commands["RecTools HSTU"] = [*script, "--model", "hstu", *threads]
        commands["RecTools SASRec"] = [*script, "--model", "sasrec", *threads]
    if arguments.replay is not None:
        script = [str(arguments.replay), str(PEERS / "replay_training.py"), str(table)]
        commands["RePlay SASRec"] = [*script, *threads]
    own = [sys.executable, __file__, "--events", str(arguments.events), *threads]
    for network in ("mercer", "position_table"):
        for targets in ("latest", "all"):
            commands[f"Kairos {network}, {targets} targets"] = [*own, "--one", network, targets]
    return commands


def _run(command: list[str], threads: int) -> dict[str, float]:
    """Run a command that prints its seconds per epoch, and measure its peak resident set."""
    variables = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    # `wait4` returns the peak of this child, `getrusage` that of the largest child so far.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=os.environ | variables
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with status {process.returncode}")
    seconds = json.loads(printed.splitlines()[-1])["seconds_per_epoch"]
    return {"seconds_per_epoch": statistics.median(seconds), "peak_mib": usage.ru_maxrss / 1024}


def _write_table(events: Path, table: Path) -> None:
    """Write the events as the peers read them, sorted by user and time."""
    _leave_out_rare_items(read_events(events)).select(
        user="user_id", item="item_id", timestamp=pl.col("timestamp").dt.epoch("s")
    ).sort("user", "timestamp", maintain_order=True).write_csv(table, separator="\t")


def _leave_out_rare_items(events: pl.DataFrame) -> pl.DataFrame:
    frequent = events.group_by("item_id").len().filter(pl.col("len") >= MIN_ITEM_EVENTS)
    return events.join(frequent, on="item_id", how="semi", maintain_order="left")


def _train_one(events: Path, network: str, targets: str, threads: int) -> None:
    """Train an epoch of one of Kairos' networks in this process, and print its seconds."""
    from epoch import ENCODINGS, build_recommender  # noqa: PLC0415 - the peers' process needs none

    torch.set_num_threads(threads)
    table = _leave_out_rare_items(read_events(events))
    if targets == "latest":
        # As many targets after the first event, and one for validation and for the test.
        table = table.group_by("user_id", maintain_order=True).tail(MAX_HISTORY + 3)
    split = LeaveOneOutConfig().split(Dataset.of(table), "next_event")
    windows = TrainingWindows(
        split.dataset, split.train_ends, predict="next_event", max_history=MAX_HISTORY
    )
    recommender = build_recommender(ENCODINGS[network], split.dataset)
    began = time.perf_counter()
    fit(recommender, windows, FitConfig(epochs=1), evaluate=None)
    print(json.dumps({"seconds_per_epoch": [time.perf_counter() - began]}))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=Path, default=Path("demo/events.parquet"))
    parser.add_argument("--rectools", type=Path, help="Interpreter of RecTools' environment.")
    parser.add_argument("--replay", type=Path, help="Interpreter of RePlay's environment.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
