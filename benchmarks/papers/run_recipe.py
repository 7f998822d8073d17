"""Train a recipe for several seeds and record what it reached.

    python benchmarks/papers/run_recipe.py badges_mercer \
        --events .../stackoverflow-badges/events.parquet --seeds 0 1 2

Writes benchmarks/papers/results/RECIPE.json: the command, the machine, the data's digest, every
seed's figures with its duration, and their mean and standard deviation.
"""

import argparse
import hashlib
import json
import os
import platform
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import torch

from cli.offline import run_training
from training.config import RunConfig

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run, and rewrite the record after every seed."""
    arguments = _arguments()
    config = RunConfig.read(arguments.recipe)
    runs: list[dict[str, object]] = []
    for seed in arguments.seeds:
        # What is measured is measured before any refit, which a record has no use for.
        fit = config.fit.model_copy(update={"seed": seed, "refit": False})
        with tempfile.TemporaryDirectory() as output:
            outcome = run_training(
                config.model_copy(update={"fit": fit}),
                str(arguments.events),
                None,
                Path(output),
                threads=arguments.threads,
            )
        runs.append(
            {
                "seed": seed,
                "seconds": round(outcome.seconds, 1),
                "best_epoch": outcome.best_epoch,
                **outcome.report.model_dump(),
            }
        )
        _record(arguments, config, runs)
        print(seed, f"{outcome.seconds:.0f} s", json.dumps(outcome.report.rows["model"]))


def _record(
    arguments: argparse.Namespace, config: RunConfig, runs: list[dict[str, object]]
) -> None:
    rows = [run["rows"] for run in runs]
    summary = {
        name: {
            metric: {
                "mean": statistics.mean(values),
                "sd": statistics.stdev(values) if len(values) > 1 else 0.0,
            }
            for metric in rows[0][name]  # type: ignore[index]
            if (values := [row[name][metric] for row in rows])  # type: ignore[index]
        }
        for name in rows[0]  # type: ignore[attr-defined]
    }
    record = {
        "recipe": arguments.recipe,
        "command": "python benchmarks/papers/run_recipe.py " + " ".join(_shown(sys.argv[1:])),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "threads": arguments.threads,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "data": {
            "file": "/".join(arguments.events.parts[-2:]),
            "sha256": hashlib.sha256(arguments.events.read_bytes()).hexdigest(),
        },
        "config": config.model_dump(mode="json"),
        "summary": summary,
        "runs": runs,
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{arguments.recipe}.json"
    file.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _shown(words: list[str]) -> list[str]:
    """Paths without the folders of this machine."""
    return [f".../{'/'.join(Path(word).parts[-2:])}" if "/" in word else word for word in words]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("--events", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
