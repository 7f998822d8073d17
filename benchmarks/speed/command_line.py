"""Seconds of `kairos --help`, which waits for the import of what the command line needs.

    python benchmarks/speed/command_line.py

Medians of ten runs. Writes benchmarks/speed/results/command_line.json.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "command_line.json"
RUNS = 10


def main() -> None:
    """Measure and record."""
    command = [str(Path(sys.executable).parent / "kairos"), "--help"]
    wall, processor = [], []
    for _ in range(RUNS + 1):
        before, began = _get_processor_seconds(), time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        wall.append(time.perf_counter() - began)
        processor.append(_get_processor_seconds() - before)
    record = {
        "command": "python benchmarks/speed/command_line.py",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        # The first run fills the cache of files.
        "wall_seconds": round(statistics.median(wall[1:]), 3),
        "processor_seconds": round(statistics.median(processor[1:]), 3),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _get_processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
