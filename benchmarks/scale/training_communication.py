"""Communication of a training step by two processes, and the efficiency to expect of more.

    torchrun --standalone --nproc-per-node 2 benchmarks/scale/training_communication.py

Each of the processes takes steps with its half of every batch, on one thread; what they exchange is
counted and timed where PyTorch does it. Without `--events`, uses the demo's. Also compares the
events per process when windows are dealt out by length, and when they are not. Writes
benchmarks/scale/results/training-communication.json.

The efficiency is computed, not measured: each of `workers` computes as long as measured here, then
waits for a ring all-reduce of all gradients, of which nothing overlaps with the computation:

    seconds = 2 (workers - 1) / workers * bytes * 8 / bandwidth + 2 (workers - 1) * latency
    efficiency = compute / (compute + seconds)
"""

import argparse
import json
import os
import platform
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.futures import Future

from training.config import RunConfig
from training.data.batches import TrainingBatch, TrainingWindows
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.distributed import ProcessGroup, join_group
from training.fitting.building import build_recommender
from training.fitting.fit import make_optimizer
from training.fitting.objective import Objective

RESULTS = Path(__file__).parent / "results"
WORKERS = (8, 64)
GIGABITS = (10, 100)
LATENCY = 50e-6
"""Seconds per message, assumed: a TCP round trip within a data centre."""
CATALOGS = (100_000, 1_000_000)
"""Items for which the bytes are computed, since the gradient of the item table is dense."""


class Step(nn.Module):
    """The loss of a batch as a module, as in `training.fitting.fit`."""

    def __init__(self, recommender: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.recommender = recommender
        self._objective = objective

    def forward(self, batch: TrainingBatch, rng: np.random.Generator) -> Tensor:
        """Compute the loss."""
        return self._objective.compute_loss(batch, rng)


class Meter:
    """Counts the bytes of gradients, and the seconds until they are added up."""

    def __init__(self) -> None:
        self.bytes = 0
        self.seconds = 0.0

    def hook(self, group: ProcessGroup, bucket: dist.GradBucket) -> Future[Tensor]:
        """Add up a bucket of gradients, as PyTorch does without a hook."""
        began, buffer = time.perf_counter(), bucket.buffer()
        self.bytes += buffer.numel() * buffer.element_size()
        buffer.div_(group.size)
        done = dist.all_reduce(buffer, async_op=True).get_future()

        def finish(finished: Future[list[Tensor]]) -> Tensor:
            self.seconds += time.perf_counter() - began
            return finished.value()[0]

        added: Future[Tensor] = done.then(finish)
        return added


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    torch.set_num_threads(1)
    with join_group() as group:
        config = RunConfig.read(arguments.recipe)
        data = Dataset.of(read_events(str(arguments.events)), min_item_events=5)
        known = np.ones(len(data), dtype=np.bool_)
        _, recommender = build_recommender(config, data, known)
        windows = TrainingWindows(
            data,
            data.offsets[1:],
            predict=config.data.predict,
            max_history=config.encoder.max_history,
        )
        plan = windows.plan(np.random.default_rng(0), tokens=config.fit.tokens)
        step = group.share_gradients(Step(recommender, Objective(recommender, config.fit, group)))
        meter = Meter()
        step.register_comm_hook(group, meter.hook)
        optimizer = make_optimizer(recommender, config.fit)
        taken = _take_steps(
            step, optimizer, windows, plan[:: len(plan) // arguments.steps], group, meter
        )
        if group.is_leader:
            items = len(data.catalog)
            _record(arguments, config, windows, plan, taken, items, recommender)


def _take_steps(
    step: nn.Module,
    optimizer: torch.optim.Optimizer,
    windows: TrainingWindows,
    plan: list[NDArray[np.int64]],
    group: ProcessGroup,
    meter: Meter,
) -> list[tuple[int, float, float]]:
    """Take steps; bytes, seconds until gradients are added up, and seconds of each."""
    step.train()
    taken: list[tuple[int, float, float]] = []
    rng = np.random.default_rng(group.rank)
    for batch in windows.build_batches(plan, part=group.rank, parts=group.size):
        dist.barrier()
        meter.bytes, meter.seconds = 0, 0.0
        began = time.perf_counter()
        loss = step(batch, rng)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        taken.append((meter.bytes, meter.seconds, time.perf_counter() - began))
    return taken[2:]  # the first are warm-ups


def _record(
    arguments: argparse.Namespace,
    config: RunConfig,
    windows: TrainingWindows,
    plan: list[NDArray[np.int64]],
    taken: list[tuple[int, float, float]],
    items: int,
    recommender: nn.Module,
) -> None:
    size = statistics.median(step[0] for step in taken)
    seconds = statistics.median(step[1] for step in taken)
    compute = statistics.median(step[2] - step[1] for step in taken)
    weights = sum(weight.numel() for weight in recommender.parameters() if weight.requires_grad)
    table = 4 * (items + 1) * config.encoder.build(items=1, actions=0).dim
    record = {
        "command": "torchrun --standalone --nproc-per-node 2 "
        "benchmarks/scale/training_communication.py "
        f"--recipe {arguments.recipe} --steps {arguments.steps}",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, no GPU",
        "load_average": round(os.getloadavg()[0], 1),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "data": "/".join(arguments.events.parts[-2:]),
        "items": items,
        "tokens": config.fit.tokens,
        "processes": 2,
        "steps": len(taken),
        "weights": weights,
        "bytes_per_step": int(size),
        "bytes_of_item_table": table,
        "seconds_of_communication_on_loopback": round(seconds, 4),
        "seconds_of_computation": round(compute, 4),
        "assumed_latency_seconds": LATENCY,
        "expected_efficiency": {
            f"{workers} workers, {gigabits} Gbit/s": round(
                compute / (compute + _predict_seconds(size, workers, gigabits)), 3
            )
            for workers in WORKERS
            for gigabits in GIGABITS
        },
        "expected_seconds_of_communication": {
            f"{name}, {workers} workers, {gigabits} Gbit/s": round(
                _predict_seconds(of_catalog, workers, gigabits), 4
            )
            for name, of_catalog in _list_sizes(size, table, items)
            for workers in WORKERS
            for gigabits in GIGABITS
        },
        "events_of_the_fullest_process_over_the_mean": {
            f"{parts} processes": _measure_balance(windows, plan, parts) for parts in (2, 4, 8)
        },
    }
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(record, indent=1)
    (RESULTS / "training-communication.json").write_text(text + "\n", "utf-8")
    print(text)


def _predict_seconds(size: float, workers: int, gigabits: int) -> float:
    """Predict the seconds of a ring all-reduce of so many bytes."""
    transfer = 2 * (workers - 1) / workers * size * 8 / (gigabits * 1e9)
    return transfer + 2 * (workers - 1) * LATENCY


def _list_sizes(size: float, table: int, items: int) -> list[tuple[str, float]]:
    """List the bytes of a step for this catalog and larger ones."""
    larger = [(f"{count:,} items", size + table * (count / items - 1)) for count in CATALOGS]
    return [(f"{items:,} items", size), *larger]


def _measure_balance(
    windows: TrainingWindows, plan: list[NDArray[np.int64]], parts: int
) -> dict[str, float]:
    """Compare the events of the fullest process with the mean, over an epoch.

    In every step the others wait for the fullest.
    """
    lengths = windows.windows.ends - windows.windows.starts
    shuffled = np.random.default_rng(0).permutation(len(lengths))
    sizes = np.cumsum([len(batch) for batch in plan])[:-1]
    divided = {
        "dealt by length": [windows.deal(batch, parts) for batch in plan],
        "batches of like length, not dealt": [np.array_split(batch, parts) for batch in plan],
        "batches of any length, not dealt": [
            np.array_split(batch, parts) for batch in np.split(shuffled, sizes)
        ],
    }
    ratios: dict[str, float] = {}
    for name, batches in divided.items():
        events = np.array([[lengths[part].sum() for part in batch] for batch in batches])
        ratios[name] = round(float(events.max(1).sum() / events.mean(1).sum()), 4)
    return ratios


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=Path, default=Path("demo/events.parquet"))
    parser.add_argument("--recipe", default="movielens_mercer")
    parser.add_argument("--steps", type=int, default=20)
    return parser.parse_args()


if __name__ == "__main__":
    main()
