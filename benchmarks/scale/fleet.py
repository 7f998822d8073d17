"""A catalog that is split over many machines: how long a request waits for the slowest of them.

    python -m benchmarks.scale.fleet

A request searches every part of the catalog at once and waits for all. A part is served by
machines of many cores; requests arrive at random (Poisson) and wait in the order of their arrival.
The time of a search is that of `results/item_index.json`, between whose sizes the logarithms are
interpolated; a search takes a time of a log-normal distribution with its median and 99th
percentile. One search in ten thousand also meets a pause (assumed: a machine that cleans up or is
interrupted). A hedged request sends a search again, to another machine, when it takes longer than
95 of 100, and takes the first answer. Writes benchmarks/scale/results/fleet.json.
"""

import heapq
import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results"
ITEMS, REQUESTS_PER_SECOND, CORES = 100_000_000, 100_000, 32
PARTS = (10, 25, 50, 100)
UTILISATIONS = (0.3, 0.5, 0.7)
PAUSE_MS, PAUSED = 50.0, 1e-4
HEDGED_AFTER = 0.95
NETWORK_MS = 0.5
"""Of a message within a data centre and back, with its encoding (assumed)."""
SIMULATED = 200_000
P99 = 2.3263
"""Standard deviations from the mean to the 99th percentile of a normal distribution."""

Durations = NDArray[np.float64]


def main() -> None:
    """Simulate every split, print a table, and record."""
    rows = json.loads((RESULTS / "item_index.json").read_text())["rows"]
    measured = {
        int(name.partition("/")[2]): row for name, row in rows.items() if name.startswith("kairos/")
    }
    rng = np.random.default_rng(0)
    simulated = []
    for parts in PARTS:
        p50, p99 = (_interpolate(measured, f"p{rank}_ms", ITEMS // parts) for rank in (50, 99))
        spread = math.log(max(p99 / p50, 1.01)) / P99
        mean = p50 * math.exp(spread**2 / 2) + PAUSE_MS * PAUSED
        # Those of repeated searches included.
        cores = REQUESTS_PER_SECOND * parts * (2 - HEDGED_AFTER) * mean / 1e3
        for utilisation in UTILISATIONS:
            plain, repeated = (
                _simulate_machine(p50, spread, utilisation * load, rng) + NETWORK_MS
                for load in (1, 2 - HEDGED_AFTER)
            )
            row = {
                "parts": parts,
                "utilisation": utilisation,
                "search_p50_ms": round(p50, 3),
                "cores": round(cores / utilisation),
                "machines": math.ceil(cores / utilisation / CORES),
            }
            for name, durations in (("plain", plain), ("hedged", _hedge(repeated, rng))):
                slowest = rng.choice(durations, size=(100_000, parts)).max(axis=1)
                for rank in (50, 99, 99.9):
                    row[f"{name}_p{rank:g}_ms"] = round(float(np.percentile(slowest, rank)), 2)
            simulated.append(row)
            print(row)
    record = {
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "items": ITEMS,
        "requests_per_second": REQUESTS_PER_SECOND,
        "cores_per_machine": CORES,
        "rows": simulated,
    }
    (RESULTS / "fleet.json").write_text(json.dumps(record, indent=2) + "\n")


def _interpolate(measured: dict[int, dict[str, float]], name: str, items: int) -> float:
    sizes = sorted(measured)
    if not sizes[0] <= items <= sizes[-1]:
        raise SystemExit(
            f"searches are interpolated between the measured sizes, {sizes[0]:,} to {sizes[-1]:,}, "
            f"but a part has {items:,} items; measure them with benchmarks.scale.item_index"
        )
    logs = np.log([measured[size][name] for size in sizes])
    return float(np.exp(np.interp(math.log(items), np.log(sizes), logs)))


def _simulate_machine(
    p50: float, spread: float, utilisation: float, rng: np.random.Generator
) -> Durations:
    """Simulate one machine: each request takes the core that is free first, after it arrived."""
    durations = rng.lognormal(math.log(p50), spread, SIMULATED)
    durations += PAUSE_MS * (rng.random(SIMULATED) < PAUSED)
    arrivals = np.cumsum(rng.exponential(durations.mean() / (CORES * utilisation), SIMULATED))
    free = [0.0] * CORES
    taken = np.empty(SIMULATED)
    for number, (arrival, duration) in enumerate(zip(arrivals, durations, strict=True)):
        end = max(arrival, free[0]) + duration
        heapq.heapreplace(free, end)
        taken[number] = end - arrival
    return taken


def _hedge(searches: Durations, rng: np.random.Generator) -> Durations:
    """Send the slow ones again, to machines that are as busy."""
    after = np.quantile(searches, HEDGED_AFTER)
    return np.minimum(searches, after + rng.permutation(searches))


if __name__ == "__main__":
    main()
