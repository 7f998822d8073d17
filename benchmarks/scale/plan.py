"""What a billion users, a hundred million items and 100,000 requests a second would take.

    python -m benchmarks.scale.plan

Arithmetic over measured figures, the records in `benchmarks/scale/results`, and over assumptions
that are named here. Prints the table of docs/scale.md.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from model.followers import KEPT

RESULTS = Path(__file__).parent / "results"

USERS, ITEMS, PEAK_REQUESTS = 1e9, 1e8, 1e5
EVENTS_PER_DAY = 2e9
"""Two hundred million users a day with ten events each."""
HISTORY = 400
"""Events of a user that the service keeps at hand, at most."""
WIDTH = 64
REPLICAS = 3
"""Copies of what must not be lost or must not stop."""
CORES = 32
"""Of a machine."""
BUSY = 0.5
"""Share of the processors that a plan uses, so that half of the machines may be lost."""
HOURS_OF_RETRAINING = 4

CORE_MONTH, GIB_MONTH, DISK_GIB_MONTH, OBJECT_GIB_MONTH = 25.0, 3.0, 0.08, 0.023
"""Prices in US dollars, rounded from what public clouds list for machines without commitment."""
GIB, HOURS_OF_MONTH, DAYS_OF_MONTH = 2**30, 730, 30


class Part(NamedTuple):
    """A part of the plan.

    Attributes:
        needs: cores, memory and disk in words.
        arithmetic: how they follow from measured figures.
        dollars: a month.
    """

    name: str
    needs: str
    arithmetic: str
    dollars: float


def main() -> None:
    """Print the table."""
    parts = [
        _plan_encoding(),
        _plan_item_table(),
        _plan_index(),
        _plan_event_log(),
        _plan_histories(),
        _plan_preparation(),
        _plan_training(),
        _plan_everyone(),
    ]
    print("| part | needs | arithmetic | a month |")
    print("|---|---|---|---:|")
    for part in parts:
        print(f"| {part.name} | {part.needs} | {part.arithmetic} | ${part.dollars:,.0f} |")
    print(f"| all | | | ${sum(part.dollars for part in parts):,.0f} |")


def _read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text())


def _count_cores_of_requests() -> float:
    stored = _read("sizing.json")["rows"]["5000"]["stored_processor_ms"]
    return float(PEAK_REQUESTS * stored / 1e3 / BUSY)


def _plan_encoding() -> Part:
    row = _read("sizing.json")["rows"]["5000"]
    cores = _count_cores_of_requests()
    memory = cores * row["serving_mb"] / 1024
    return Part(
        "requests: decode, encode, rank, answer",
        f"{cores:,.0f} cores, {memory:,.0f} GiB",
        f"{PEAK_REQUESTS:,.0f}/s × {row['stored_processor_ms']:.1f} ms (50 events, stored) / "
        f"{BUSY:g} busy; {row['serving_mb']} MiB a process",
        cores * CORE_MONTH + memory * GIB_MONTH,
    )


def _plan_item_table() -> Part:
    bytes_per_item = WIDTH * 4 + KEPT * (8 + 4)
    table = ITEMS * bytes_per_item / GIB
    machines = math.ceil(_count_cores_of_requests() / CORES)
    return Part(
        "vectors and followers of all items, mapped on every machine that encodes",
        f"{table:,.0f} GiB each, {table * machines:,.0f} GiB in all",
        f"{ITEMS:.0e} × ({WIDTH} × 4 + {KEPT} × 12 bytes), {machines} machines of {CORES} cores",
        table * machines * GIB_MONTH,
    )


def _plan_index() -> Part:
    rows = _read("fleet.json")["rows"]
    row = min((row for row in rows if row["utilisation"] == BUSY), key=lambda row: row["machines"])
    index = _read("item_index.json")["rows"]["kairos/1000000"]
    gib = ITEMS * (index["resident_mb"] / 1e6) / 1024
    memory = gib * row["machines"] / row["parts"]
    return Part(
        f"search, the catalog in {row['parts']} parts",
        f"{row['cores']:,.0f} cores, {gib:,.0f} GiB once, {memory:,.0f} GiB in all",
        f"{row['search_p50_ms']:.2f} ms per part at its size, simulated; "
        f"p99 {row['hedged_p99_ms']:.1f} ms",
        row["cores"] * CORE_MONTH + memory * GIB_MONTH,
    )


def _plan_event_log() -> Part:
    row = _read("prepare.json")["rows"][-1]
    size = row["prepared_gb"] * 1e9 / row["events"]
    year = EVENTS_PER_DAY * 365 * size / GIB
    return Part(
        "events of a year, prepared, in an object store",
        f"{year:,.0f} GiB",
        f"{EVENTS_PER_DAY:.0e} a day × 365 × {size:.1f} bytes",
        year * OBJECT_GIB_MONTH,
    )


def _plan_histories() -> Part:
    row = _read("event_store.json")["postgresql"]
    size, rate = row["bytes_per_event"], row["events_per_second"]
    gib = USERS * HISTORY * 13 / GIB * REPLICAS
    return Part(
        f"latest {HISTORY} events of a user, in a wide-column store",
        f"{gib:,.0f} GiB on disks, {EVENTS_PER_DAY / 86_400:,.0f} writes/s",
        f"13 bytes × {HISTORY} × {USERS:.0e} × {REPLICAS} copies; as rows of PostgreSQL "
        f"{size:.0f} bytes each, {rate:,.0f} a second measured",
        gib * DISK_GIB_MONTH,
    )


def _plan_preparation() -> Part:
    row = _read("prepare.json")["rows"][-1]
    rate = row["events"] / row["processor_seconds"]
    hours = EVENTS_PER_DAY / rate / 3600
    return Part(
        "preparing a day's events",
        f"{hours:,.1f} core hours a day",
        f"{EVENTS_PER_DAY:.0e} / {rate:,.0f} events per second of a core",
        hours * DAYS_OF_MONTH * CORE_MONTH / HOURS_OF_MONTH,
    )


def _plan_training() -> Part:
    record = _read("training-communication.json")
    rate = record["tokens"] / record["seconds_of_computation"]
    hours = EVENTS_PER_DAY / rate / 3600
    table = ITEMS * WIDTH * 4 * 3 / GIB
    return Part(
        "one pass over a day's events, from yesterday's weights",
        f"{hours:,.0f} core hours a day, {hours / HOURS_OF_RETRAINING:,.0f} cores in "
        f"{HOURS_OF_RETRAINING} hours; {table:,.0f} GiB of item table and moments",
        f"{EVENTS_PER_DAY:.0e} / {rate:,.0f} events per second of a core; "
        f"{ITEMS:.0e} × {WIDTH} × 4 bytes × 3",
        hours * DAYS_OF_MONTH * CORE_MONTH / HOURS_OF_MONTH,
    )


def _plan_everyone() -> Part:
    row = _read("recommend_everyone.json")["rows"]["encoder and wide part"]
    rate = row["users_per_second_and_core"]
    hours = USERS / rate / 3600
    return Part(
        "recommendations for everyone, once a day",
        f"{hours:,.0f} core hours a day",
        f"{USERS:.0e} / {rate:,.0f} users per second of a core (100,000 items)",
        hours * DAYS_OF_MONTH * CORE_MONTH / HOURS_OF_MONTH,
    )


if __name__ == "__main__":
    main()
