"""Seconds, memory and bytes of `kairos prepare`, and of the data set of its shards, by events.

    python -m benchmarks.scale.prepare --sizes 1_000_000 10_000_000 100_000_000 --folder var/scale

Draws synthetic events of each size (`benchmarks.scale.synthetic_events`), prepares them by the
local engine in a process of its own, builds the data set of a training in another, up to ten
million events also that of the files in a third, and deletes them. Memory is the largest resident
set of a process, which starts no other; that of a data set includes the shards that are mapped into
it. The data of each (heap and anonymous mappings, RLIMIT_DATA) is limited: an allocation beyond
--limit-gb fails.
Writes benchmarks/scale/results/prepare.json, with the exponents of the costs between sizes.
"""

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import polars as pl

from benchmarks.scale.synthetic_events import DEMO, fit, write_events

RESULTS = Path(__file__).parent / "results" / "prepare.json"
_READ_AT_ONCE = 10_000_000
"""Most events whose data set is also built of the files, as without a preparation."""

# The largest resident set that `wait4` reports includes that of the process before the program.
_MEASURED = """
import atexit, pathlib, resource
resource.setrlimit(resource.RLIMIT_DATA, ({limit}, {limit}))
lines = pathlib.Path("/proc/self/status").read_text
atexit.register(lambda: print(*(line for line in lines().splitlines() if "VmHWM" in line)))
{code}
"""


def main() -> None:
    """Measure every size, and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--limit-gb", type=float, default=6.0)
    parser.add_argument("--folder", type=Path, required=True)
    chosen = parser.parse_args()
    demo = pl.read_parquet(DEMO)
    record: dict[str, object] = {
        "command": f"python -m benchmarks.scale.prepare {' '.join(sys.argv[1:])}",
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "polars": pl.__version__,
        "items": chosen.items,
        "limit_gb": chosen.limit_gb,
        "limit": "RLIMIT_DATA of each process",
    }
    rows: list[dict[str, float]] = []
    for events in chosen.sizes:
        source, target = chosen.folder / "events", chosen.folder / "prepared"
        shutil.rmtree(chosen.folder, ignore_errors=True)
        began = time.perf_counter()
        written, users = write_events(source, fit(demo), events=events, items=chosen.items)
        drawn = time.perf_counter() - began
        row = {"events": written, "users": users, "seconds_to_draw": round(drawn, 1)}
        row |= _prepare(source, target, events, chosen.limit_gb)
        rows.append(row)
        record |= {"rows": rows, "exponents": _fit_exponents(rows)}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
        print(json.dumps(row))
        shutil.rmtree(chosen.folder)


def _prepare(source: Path, target: Path, events: int, limit_gb: float) -> dict[str, float]:
    """Prepare the events and build their data set, and measure both."""
    pattern = str(source / "**" / "*.parquet")
    command = f"['prepare', {pattern!r}, {str(target)!r}]"
    prepared = _run(f"from cli.main import app; app({command})", limit_gb)
    data_set = _run(
        "from model.clock import now\n"
        "from training.preparation.events import PreparedEvents\n"
        f"selected = PreparedEvents.open({str(target)!r}).select_plausible(now())\n"
        "selected.build_dataset()",
        limit_gb,
    )
    row = {
        **prepared,
        "source_gb": round(_sum_bytes(source) / 1e9, 3),
        "prepared_gb": round(_sum_bytes(target) / 1e9, 3),
        "shards": len([*target.glob("*/*.safetensors")]),
        **{f"data_set_{name}": value for name, value in data_set.items()},
    }
    if events <= _READ_AT_ONCE:
        of_files = _run(
            "from model.clock import now\n"
            "from training.data.dataset import Dataset\n"
            "from training.data.limited_users import drop_excess\n"
            "from training.data.plausible_times import drop_implausible\n"
            "from training.data.sources import read_events\n"
            f"plausible, _ = drop_implausible(read_events({pattern!r}), now())\n"
            "Dataset.of(drop_excess(plausible)[0])",
            limit_gb,
        )
        row |= {f"data_set_of_files_{name}": value for name, value in of_files.items()}
    return row


def _run(code: str, limit_gb: float) -> dict[str, float]:
    """Run a program in a process of its own, with limited memory."""
    limit = int(limit_gb * 1e9)
    program = _MEASURED.format(limit=limit, code=code)
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"a program ended with status {status}: {code}")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_gb": round(int(output.split()[-2]) * 1024 / 1e9, 3),
    }


def _sum_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _fit_exponents(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """Fit `cost ~ events ** exponent` between each size and the next."""
    return {
        name: [
            round(
                math.log(later[name] / earlier[name])
                / math.log(later["events"] / earlier["events"]),
                3,
            )
            for earlier, later in pairwise(rows)
        ]
        for name in (
            *("seconds", "processor_seconds", "peak_gb", "prepared_gb"),
            *("data_set_processor_seconds", "data_set_peak_gb"),
        )
    }


if __name__ == "__main__":
    main()
