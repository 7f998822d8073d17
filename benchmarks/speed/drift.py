"""Latency of one recommendation with and without the parts of a wide part.

    python benchmarks/speed/drift.py

Synthetic bundles of 100,000 items with the same encoder; every row adds one part to the row before.
They recommend for the same queries of 100 events in one process and one thread. The models take
turns at every query, each once to warm up and once measured. The last rows query the whole model at
an earlier instant: again, and for the first time, when the popularity at that instant is computed.
Writes medians, and the medians of the differences to the model without a wide part at the same
query, to benchmarks/speed/results/drift.json.

Times are processor time of the thread, because other work on the machine would count otherwise; it
still shares caches and memory.
"""

import argparse
import json
import os
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

import faiss
import numpy as np
import torch

from benchmarks.speed.synthetic_bundle import DAYS, DIM, build_bundle, count_events
from model.clock import MICROSECONDS_PER_DAY
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.wide import WideConfig

RESULTS = Path(__file__).parent / "results" / "drift.json"
EVENTS_PER_QUERY, QUERIES = 100, 20
LAST_AT = 1_700_006_400_000_000 + DAYS * MICROSECONDS_PER_DAY

NO_PARTS = WideConfig(popularity=False, repeats=False, followers=False, calendar=False)
MODELS: dict[str, WideConfig | None] = {
    "without": None,
    "popularity": NO_PARTS.model_copy(update={"popularity": True}),
    "repeats": NO_PARTS.model_copy(update={"popularity": True, "repeats": True}),
    "followers": NO_PARTS.model_copy(
        update={"popularity": True, "repeats": True, "followers": True}
    ),
    "calendar": WideConfig(),
}
EARLIER = ("earlier instant", "earlier instant, first time")


def main() -> None:
    """Measure and record."""
    arguments = _parse_arguments()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(0)
    counts = count_events(arguments.items, rng, last_at=LAST_AT)
    predictors = {
        name: Predictor(build_bundle(arguments.items, last_at=LAST_AT, wide=wide, counts=counts))
        for name, wide in MODELS.items()
    }
    queries = [_draw_query(rng, arguments.items) for _ in range(QUERIES)]
    milliseconds: dict[str, list[float]] = {name: [] for name in (*MODELS, *EARLIER)}
    whole = predictors["calendar"]
    for turn in range(arguments.turns):
        instant = LAST_AT - int(rng.uniform(0.2, 0.8) * DAYS) * MICROSECONDS_PER_DAY
        for number, query in enumerate(queries):
            for name, predictor in predictors.items():
                _measure(predictor, query)
                milliseconds[name].append(_measure(predictor, query))
            earlier = _move(query, instant)
            first = _measure(whole, earlier)
            milliseconds[EARLIER[0]].append(_measure(whole, earlier))
            if turn and not number:
                milliseconds[EARLIER[1]].append(first)
    medians = {name: statistics.median(each) for name, each in milliseconds.items()}
    without = np.array(milliseconds["without"])
    more = {
        name: float(np.median(np.array(each) - without))
        for name, each in milliseconds.items()
        if len(each) == len(without)
    }
    record = {
        "command": (
            f"python benchmarks/speed/drift.py --items {arguments.items} --turns {arguments.turns}"
        ),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "items": arguments.items,
        "dim": DIM,
        "events_per_query": EVENTS_PER_QUERY,
        "recommendations": {name: len(each) for name, each in milliseconds.items()},
        "cores": os.cpu_count(),
        "threads": 1,
        "p50_ms": {name: round(value, 3) for name, value in medians.items()},
        "p50_ms_more_than_without": {name: round(value, 3) for name, value in more.items()},
        "ratio_to_without": {
            name: round(value / medians["without"], 3) for name, value in medians.items()
        },
    }
    if arguments.record:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _measure(predictor: Predictor, query: Query) -> float:
    """Measure the milliseconds of a recommendation."""
    began = time.thread_time()
    predictor.recommend(query, Constraints(n=10))
    return 1_000 * (time.thread_time() - began)


def _draw_query(rng: np.random.Generator, items: int) -> Query:
    """Draw a history of baskets of up to four items, half of them bought before."""
    rows = rng.integers(0, items, EVENTS_PER_QUERY)
    again = rng.random(EVENTS_PER_QUERY) < 0.5
    rows[again] = rng.choice(rows[~again], again.sum())
    baskets = np.sort(rng.integers(0, EVENTS_PER_QUERY // 2, EVENTS_PER_QUERY))
    days = DAYS * (1 - baskets / EVENTS_PER_QUERY)
    ats = LAST_AT - (np.sort(days)[::-1] - days.min()) * MICROSECONDS_PER_DAY
    events = [Event(f"i{row}", int(at)) for row, at in zip(rows, np.sort(ats), strict=True)]
    return Query.as_of(events, LAST_AT + MICROSECONDS_PER_DAY)


def _move(query: Query, query_time: int) -> Query:
    """Shift a query to another instant, its events alike."""
    moved = query_time - query.query_time
    return Query(
        tuple(Event(event.item_id, event.at + moved) for event in query.history), query_time
    )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument(
        "--record", action=argparse.BooleanOptionalAction, default=True, help="write the record"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
