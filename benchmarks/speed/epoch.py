"""Time per epoch of the time-aware encoders, relative to the positional controls.

    python benchmarks/speed/epoch.py --events .../ml-1m-users-1-2999/events.parquet

All have the same width, history length, batches, softmax and threads, and take turns in one
process. `positional` feeds positions to the same rotation; `position_table` is SASRec's network,
whose heads have no rotation features. Without `--events`, uses the demo's events. Writes medians
and their ratios to benchmarks/speed/results/epoch-DATA-THREADS.json.

The floor is the time of the arithmetic of `position_table` on real events, without padding, dropout
and everything element-wise, at the rate of a product of two square matrices that is measured
between the turns.
"""

import argparse
import json
import os
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

from model.encoders.self_attention import SelfAttentionConfig
from model.recommender import Recommender, RecommenderConfig
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.positional import PositionalConfig
from training.config import FitConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.data.split import LeaveOneOutConfig
from training.fitting.fit import make_optimizer
from training.fitting.objective import Objective

RESULTS = Path(__file__).parent / "results"
DIM, MAX_HISTORY = 64, 200

ENCODINGS: dict[str, TimeEncodingConfig] = {
    "position_table": PositionalConfig(frequencies=0),
    "positional": PositionalConfig(frequencies=32),
    "mercer": MercerConfig(periods=8, degree=4),
    "bochner_nonparametric": BochnerNonparametricConfig(frequencies=32),
}


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    torch.set_num_threads(arguments.threads)
    config = FitConfig(tokens=6_400)
    split = LeaveOneOutConfig().split(
        Dataset.of(read_events(arguments.events), min_item_events=5), "next_event"
    )
    windows = TrainingWindows(
        split.dataset, split.train_ends, predict="next_event", max_history=MAX_HISTORY
    )
    plan = windows.plan(np.random.default_rng(0), tokens=config.tokens)
    recommenders = {
        name: build_recommender(encoding, split.dataset) for name, encoding in ENCODINGS.items()
    }
    optimizers = {
        name: make_optimizer(recommender, config) for name, recommender in recommenders.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in ENCODINGS}
    operations = _count_operations(windows, len(split.dataset.catalog))
    floors: list[float] = []
    for turn in range(arguments.turns + 1):
        floors.append(operations / _measure_rate())
        for name, recommender in recommenders.items():
            took = _measure_epoch(
                recommender, optimizers[name], windows, plan, config, arguments.share
            )
            if turn:  # the first is a warm-up
                seconds[name].append(took)
    medians = {name: statistics.median(took) for name, took in seconds.items()}
    data = "/".join(arguments.events.parts[-2:])
    record = {
        "command": (
            f"python benchmarks/speed/epoch.py --events .../{data} --threads {arguments.threads} "
            f"--turns {arguments.turns} --share {arguments.share}"
        ),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": data,
        "targets": windows.targets,
        "items": len(split.dataset.catalog),
        "dim": DIM,
        "max_history": MAX_HISTORY,
        "tokens": config.tokens,
        "cores": os.cpu_count(),
        "threads": arguments.threads,
        "share_of_epoch_timed": arguments.share,
        "seconds_per_epoch": {name: round(value, 2) for name, value in medians.items()},
        "all_seconds": {
            name: [round(value, 2) for value in took] for name, took in seconds.items()
        },
        "floor_seconds": round(statistics.median(floors), 2),
        "floor_teraflop": round(operations / 1e12, 3),
        "ratio_to_floor": {
            name: round(value / statistics.median(floors), 2) for name, value in medians.items()
        },
        "ratio_to_positional": {
            name: round(value / medians["positional"], 3) for name, value in medians.items()
        },
        "ratio_to_position_table": {
            name: round(value / medians["position_table"], 3) for name, value in medians.items()
        },
    }
    RESULTS.mkdir(exist_ok=True)
    output = RESULTS / f"epoch-{arguments.events.parent.name}-{arguments.threads}.json"
    output.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def build_recommender(encoding: TimeEncodingConfig, dataset: Dataset) -> Recommender:
    """Build a network of the benchmark for the catalog of a data set."""
    torch.manual_seed(0)
    return RecommenderConfig(
        items=len(dataset.catalog),
        encoder=SelfAttentionConfig(dim=DIM, max_history=MAX_HISTORY, time_encoding=encoding),
    ).build()


def _count_operations(windows: TrainingWindows, items: int) -> float:
    """Count the floating-point operations of an epoch of `position_table`, forward and backward.

    Each target is encoded once: the events that windows overlap by are no part of the floor.
    """
    lengths = (windows.windows.ends - windows.windows.starts).astype(float)
    encoder = SelfAttentionConfig(dim=DIM)
    linear = 2 * (4 * DIM**2 + 2 * DIM * encoder.feed_forward)
    # A position attends to half of its window on average: a product for logits and one for values.
    attention = 2 * 2 * DIM * float((lengths**2).sum() / lengths.sum()) / 2
    forward = encoder.layers * (linear + attention) + 2 * DIM * items
    return 3 * windows.targets * forward


def _measure_rate() -> float:
    """Measure the floating-point operations per second of a product of square matrices."""
    size, matrix = 1_024, torch.randn(1_024, 1_024)
    seconds = []
    for _ in range(9):
        began = time.perf_counter()
        torch.mm(matrix, matrix)
        seconds.append(time.perf_counter() - began)
    return 2 * size**3 / statistics.median(seconds)


def _measure_epoch(
    recommender: Recommender,
    optimizer: torch.optim.Optimizer,
    windows: TrainingWindows,
    plan: list[np.ndarray],
    config: FitConfig,
    share: float,
) -> float:
    """Measure the seconds per epoch, extrapolated from an evenly spaced share of its batches."""
    rng = np.random.default_rng(0)
    objective = Objective(recommender, config)
    recommender.train()
    batches = plan[:: max(round(1 / share), 1)]
    began = time.perf_counter()
    for batch in batches:
        loss = objective.compute_loss(windows.build_batch(batch), rng)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return (time.perf_counter() - began) * len(plan) / len(batches)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=Path, default=Path("demo/events.parquet"))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.25)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
