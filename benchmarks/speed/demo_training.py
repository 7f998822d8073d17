"""Seconds of the demo's training by phase, and what it reached.

    python benchmarks/speed/demo_training.py

Runs what `kairos demo` runs between the import and the start of the service: the fit, two refits,
the measurement and the export. Writes benchmarks/speed/results/demo_training.json.
"""

import argparse
import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import torch

from training.config import RunConfig
from training.data.sources import read_events, read_items
from training.fitting.fit import EpochReport
from training.run import train

RESULTS = Path(__file__).parent / "results" / "demo_training.json"
DEMO = Path("demo")


class EpochSeconds:
    """Records the seconds of the epochs of each fit; a `Progress` of a run."""

    def __init__(self) -> None:
        self.seconds: list[list[float]] = []

    def start_fit(self, name: str, epochs: int, done: int = 0) -> None:  # noqa: ARG002
        """Begin another list."""
        print(name, epochs, flush=True)
        self.seconds.append([])

    def finish_step(self, done: int, of: int, loss: float) -> None:
        """Ignore a batch."""

    def finish_epoch(self, report: EpochReport) -> None:
        """Record an epoch."""
        print(report.epoch, round(report.seconds, 1), flush=True)
        self.seconds[-1].append(round(report.seconds, 2))


def main() -> None:
    """Train, and record."""
    arguments = _parse_arguments()
    torch.set_num_threads(arguments.threads)
    progress = EpochSeconds()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        outcome = train(
            RunConfig.read("demo"),
            read_events(DEMO / "events.parquet"),
            read_items(DEMO / "items.parquet"),
            Path(directory),
            progress=progress,
        )
    total = time.perf_counter() - began
    in_epochs = sum(map(sum, progress.seconds))
    record = {
        "command": f"python benchmarks/speed/demo_training.py --threads {arguments.threads}",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "threads": arguments.threads,
        "seconds": round(total, 1),
        "seconds_of_epochs": progress.seconds,
        "seconds_beside_epochs": round(total - in_epochs, 1),
        "ndcg@10": round(outcome.report.metrics["ndcg@10"], 4),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
