"""Time per epoch of the time-aware encoders, relative to the positional controls.

    python benchmarks/speed/epoch.py --events .../ml-1m-users-1-2999/events.parquet

All have the same width, history length, batches, softmax and threads, and take turns in one
process. `positional` feeds positions to the same rotation; `position_table` is SASRec's network,
whose heads have no rotation features. Without `--events`, uses the demo's events. Writes medians
and their ratios to benchmarks/speed/results/epoch.json.
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

RESULTS = Path(__file__).parent / "results" / "epoch.json"
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
    recommenders = {name: _build(encoding, split.dataset) for name, encoding in ENCODINGS.items()}
    optimizers = {
        name: make_optimizer(recommender, config) for name, recommender in recommenders.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in ENCODINGS}
    for turn in range(arguments.turns + 1):
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
        "ratio_to_positional": {
            name: round(value / medians["positional"], 3) for name, value in medians.items()
        },
        "ratio_to_position_table": {
            name: round(value / medians["position_table"], 3) for name, value in medians.items()
        },
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _build(encoding: TimeEncodingConfig, dataset: Dataset) -> Recommender:
    torch.manual_seed(0)
    return RecommenderConfig(
        items=len(dataset.catalog),
        encoder=SelfAttentionConfig(dim=DIM, max_history=MAX_HISTORY, time_encoding=encoding),
    ).build()


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
