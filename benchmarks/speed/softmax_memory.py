"""Peak memory of the softmax by catalog size: chunked, and with all logits at once.

    python benchmarks/speed/softmax_memory.py

Each case runs in a process of its own and measures the growth of its peak resident set during the
forward and backward pass of one loss, 6,400 positions, width 64. Writes
benchmarks/speed/results/softmax_memory.json.
"""

import argparse
import json
import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import torch
import torch.nn.functional as F

from training.fitting.losses.softmax import full_softmax

RESULTS = Path(__file__).parent / "results" / "softmax_memory.json"
POSITIONS, WIDTH = 6_400, 64
CATALOGS = (3_000, 30_000, 100_000, 300_000)
MAX_DENSE_ITEMS = 100_000
"""With more items, all logits at once do not fit into memory."""


def main() -> None:
    """Measure every case, or one of them in this process."""
    arguments = _parse_arguments()
    if arguments.one:
        print(_measure_growth(arguments.one[0], int(arguments.one[1])))
        return
    rows = []
    for items in CATALOGS:
        row: dict[str, object] = {
            "items": items,
            "chunked_mib": _measure_in_subprocess("chunked", items),
        }
        row["all_at_once_mib"] = (
            _measure_in_subprocess("dense", items) if items <= MAX_DENSE_ITEMS else None
        )
        row["item_table_mib"] = round(items * WIDTH * 4 / 2**20, 1)
        rows.append(row)
        print(row)
    record = {
        "command": "python benchmarks/speed/softmax_memory.py",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "positions": POSITIONS,
        "width": WIDTH,
        "rows": rows,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def _measure_in_subprocess(kind: str, items: int) -> float:
    """Measure the growth in MiB, in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, str(items)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _measure_growth(kind: str, items: int) -> float:
    """Measure the MiB by which the peak resident set grows during one loss, gradients included."""
    torch.set_num_threads(1)
    users = torch.randn(POSITIONS, WIDTH, requires_grad=True)
    vectors = torch.randn(items + 1, WIDTH, requires_grad=True)
    targets = torch.randint(1, items + 1, (POSITIONS,))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if kind == "chunked":
        weights = torch.ones(POSITIONS)
        loss = full_softmax(users, vectors, targets, torch.arange(POSITIONS), weights)
    else:
        loss = F.cross_entropy(users @ vectors[1:].T, targets - 1)
    loss.backward()
    return round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, 1)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "ITEMS"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
