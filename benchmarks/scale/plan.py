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
BYTES_OF_EVENT = 14
"""Of an item's number, a time and an action, as in the arrays of a training."""
POSITIONS_PER_EVENT = 6
"""Positions that a training on a day's events reads for each: ten new ones after fifty before."""
WIDTH = 64
BYTES_OF_ID = 40
"""Of an item's id and the table that finds it, in a file that is mapped."""
REPLICAS = 3
"""Copies of what must not be lost."""
CORES = 32
"""Of a machine."""
BUSY = 0.5
"""Share of the processors that a plan uses; with a third of the machines lost it is .75."""
STORE_OPERATIONS = 5_000
"""Reads or writes a second of a core of the store of histories."""
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
    bytes_per_item = WIDTH * 4 + KEPT * (8 + 4) + BYTES_OF_ID
    table = ITEMS * bytes_per_item / GIB
    machines = math.ceil(_count_cores_of_requests() / CORES)
    return Part(
        "vectors, followers and ids of all items, mapped on every machine that encodes",
        f"{table:,.0f} GiB each, {table * machines:,.0f} GiB in all",
        f"{ITEMS:.0e} × ({WIDTH} × 4 + {KEPT} × 12 + {BYTES_OF_ID} bytes), "
        f"{machines} machines of {CORES} cores",
        table * machines * GIB_MONTH,
    )


def _choose_split() -> Any:
    rows = _read("fleet.json")["rows"]
    return min((row for row in rows if row["utilisation"] == BUSY), key=lambda row: row["machines"])


def _plan_index() -> Part:
    row = _choose_split()
    index = _read("item_index.json")["rows"][f"kairos/{int(ITEMS / row['parts'])}"]
    gib = row["parts"] * index["resident_mb"] / 1024
    memory = gib * row["machines"] / row["parts"]
    return Part(
        f"search, the catalog in {row['parts']} parts",
        f"{row['cores']:,.0f} cores, {gib:,.0f} GiB once, {memory:,.0f} GiB in all",
        f"{row['search_p50_ms']:.2f} ms per part, few items not allowed; simulated, with repeated "
        f"searches: p99 {row['hedged_p99_ms']:.1f} ms",
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
    gib = USERS * HISTORY * BYTES_OF_EVENT / GIB * REPLICAS
    writes = EVENTS_PER_DAY / 86_400
    cores = (PEAK_REQUESTS + writes * REPLICAS) / STORE_OPERATIONS / BUSY
    return Part(
        f"latest {HISTORY} events of a user, in a wide-column store",
        f"{gib:,.0f} GiB on disks, {cores:,.0f} cores",
        f"{BYTES_OF_EVENT} bytes × {HISTORY} × {USERS:.0e} × {REPLICAS} copies; "
        f"{PEAK_REQUESTS:,.0f} reads and {writes:,.0f} × {REPLICAS} writes a second, "
        f"{STORE_OPERATIONS:,} of a core (assumed); PostgreSQL takes "
        f"{row['bytes_per_event']:.0f} bytes an event",
        gib * DISK_GIB_MONTH + cores * CORE_MONTH,
    )


def _plan_preparation() -> Part:
    row = _read("prepare.json")["rows"][-1]
    rate = row["events"] / row["processor_seconds"]
    hours = EVENTS_PER_DAY / rate / 3600
    return Part(
        "preparing a day's events, by themselves",
        f"{hours:,.1f} core hours a day",
        f"{EVENTS_PER_DAY:.0e} / {rate:,.0f} events per second of a core",
        _price_hours(hours),
    )


def _plan_training() -> Part:
    record = _read("training-communication.json")
    rate = record["tokens"] / record["processes"] / record["seconds_of_computation"]
    hours = EVENTS_PER_DAY * POSITIONS_PER_EVENT / rate / 3600
    table = ITEMS * WIDTH * 4 * 3 / GIB
    return Part(
        "one pass over a day's events, from yesterday's weights",
        f"{hours:,.0f} core hours a day, {hours / HOURS_OF_RETRAINING:,.0f} cores in "
        f"{HOURS_OF_RETRAINING} hours; {table:,.0f} GiB of item table and moments",
        f"{EVENTS_PER_DAY:.0e} × {POSITIONS_PER_EVENT} positions / {rate:,.0f} per second of a "
        f"core; {ITEMS:.0e} × {WIDTH} × 4 bytes × 3",
        _price_hours(hours) + table * GIB_MONTH * HOURS_OF_RETRAINING / 24,
    )


def _plan_everyone() -> Part:
    record = _read("recommend_everyone.json")
    row, split = record["rows"]["encoder and wide part"], _choose_split()
    alone = 1e3 / row["users_per_second_and_core"]
    exact = record["milliseconds_per_user_in_batches"]["search_alone"]
    milliseconds = alone - exact + split["parts"] * split["search_p50_ms"]
    hours = USERS * milliseconds / 1e3 / 3600
    return Part(
        "recommendations for everyone, once a day",
        f"{hours:,.0f} core hours a day",
        f"{USERS:.0e} × ({alone:.1f} - {exact:.1f} + {split['parts']} × "
        f"{split['search_p50_ms']:.2f} ms): measured with {record['items']:,} items, whose exact "
        "search is replaced by that of all parts",
        _price_hours(hours),
    )


def _price_hours(hours_a_day: float) -> float:
    return hours_a_day * DAYS_OF_MONTH * CORE_MONTH / HOURS_OF_MONTH


if __name__ == "__main__":
    main()
