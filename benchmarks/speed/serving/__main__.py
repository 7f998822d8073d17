"""Latency and throughput of serving, open loop.

    python -m benchmarks.speed.serving                               # the quick cases, 6 minutes
    python -m benchmarks.speed.serving --cases inline-50 echo        # only these
    python -m benchmarks.speed.serving --cases peers --rectools rectools/bin/python \\
        --replay replay/bin/python
    python -m benchmarks.speed.serving --cases all
    python -m benchmarks.speed.serving --store var/bundles --events events.parquet

Each case starts the real service on a bundle of an untrained model over synthetic items, with one
worker and one thread, and sends it requests from a process of its own on the same machine. Rates
are found by open-loop trials: the requests' intended starts are drawn before (Poisson arrivals with
a seed, or a constant rate), and latency counts from them. The sustained rate is the highest at
which at least 99 % of the offered requests are answered, none fails, and the 90th percentile is
below 7 ms; it is found by doubling and then bisecting to 5 %. Results of a run replace those of its
cases in benchmarks/speed/results/serving.json. With `--store` only the current version of that
store is measured, with the latest 200 events of each user of `--events`; nothing is recorded.
"""

import argparse
import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import torch

from benchmarks.speed.serving.cases import CASES, QUICK
from benchmarks.speed.serving.generator import MeasurementError
from benchmarks.speed.serving.measurements import Bench, Figures

RESULTS = Path(__file__).parents[1] / "results" / "serving.json"


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    torch.set_num_threads(1)
    names = tuple(CASES) if arguments.cases == ["all"] else arguments.cases
    if unknown := set(names) - set(CASES):
        raise SystemExit(f"unknown cases: {', '.join(sorted(unknown))}; --help lists them")
    peers = {"RecTools": arguments.rectools, "RePlay": arguments.replay}
    with tempfile.TemporaryDirectory(prefix="kairos-serving-") as directory:
        bench = Bench(
            Path(directory),
            seconds=arguments.seconds,
            arrivals=arguments.arrivals,
            patience=arguments.patience,
            peers={name: path for name, path in peers.items() if path is not None},
        )
        if arguments.store is not None:
            figures = bench.measure_own(arguments.store, arguments.events)
            print(f"  {_format_figures(figures)}")
            return
        failed: list[str] = []
        for name in names:
            print(f"{name}: {CASES[name]}", flush=True)
            began = time.monotonic()
            try:
                figures = bench.measure(CASES[name])
            except MeasurementError as error:
                failed.append(name)
                print(f"  {error}", flush=True)
                continue
            seconds = time.monotonic() - began
            print(f"  {_format_figures(figures)} in {seconds:.0f} s", flush=True)
            if arguments.record:
                _record(name, figures, arguments)
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def _format_figures(figures: Figures) -> str:
    """Format the figures without the single trials, which were printed already."""
    return json.dumps({key: value for key, value in figures.items() if key != "trials"})


def _record(name: str, figures: Figures, arguments: argparse.Namespace) -> None:
    """Replace the record of a case; those of other cases stay."""
    record = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    cases = record.get("cases", {})
    cases[name] = {
        "command": _format_command(name, arguments),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "processor": _read_processor_name(),
        "arrivals": arguments.arrivals,
        "seconds": arguments.seconds,
        **figures,
    }
    ordered = {each: cases[each] for each in CASES if each in cases}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"cases": ordered}, indent=1) + "\n", "utf-8")


def _format_command(name: str, arguments: argparse.Namespace) -> str:
    command = f"python -m benchmarks.speed.serving --cases {name} --seconds {arguments.seconds:g}"
    if arguments.arrivals != "poisson":
        command += f" --arrivals {arguments.arrivals}"
    if name == "peers":
        command += " --rectools rectools/bin/python --replay replay/bin/python"
    return command


def _read_processor_name() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.serving",
        description=__doc__,
        epilog=f"cases: {', '.join(CASES)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--cases", nargs="+", default=list(QUICK), help="names of cases, or all; default: quick"
    )
    parser.add_argument("--store", type=Path, help="measure its current version instead of cases")
    parser.add_argument("--events", type=Path, default=Path("demo/events.parquet"))
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of a trial")
    parser.add_argument("--arrivals", choices=["poisson", "constant"], default="poisson")
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        help="most seconds that the run waits for other work on the machine to end",
    )
    parser.add_argument("--rectools", type=Path, help="interpreter of RecTools' environment")
    parser.add_argument("--replay", type=Path, help="interpreter of RePlay's environment")
    parser.add_argument(
        "--record", action=argparse.BooleanOptionalAction, default=True, help="write the record"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
