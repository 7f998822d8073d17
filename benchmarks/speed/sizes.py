"""Curves of time and memory against the number of items, the length of a history, and events.

    python benchmarks/speed/sizes.py --ten-million

With one thread; times are processor time, as other work on the machine would count otherwise. What
takes milliseconds is measured in one process in which the sizes take turns: medians. Opening and
what precedes training are measured in a process for each size, whose peak of memory is that of the
size; the least of `--turns` for opening, one run for the others. An exponent is the slope of the
logarithms, fitted by least squares: 1 is proportional, 0 does not depend on the size. Where a part
of the cost does not, the exponent of the two largest sizes says more. Writes
benchmarks/speed/results/sizes.json.

- items: opening a bundle with a wide part, verified and warmed up; the file of the index; and one
  recommendation of ten items from 100 events.
- history: one recommendation from the events that a request sends; the model reads the latest 200.
- events: preparing events of a Parquet file for training (reading, grouping by user, splitting),
  counting popularity and followers, and one step on 6,400 positions. Users have 100 events each, of
  5,000 items.
"""

import argparse
import json
import os
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import torch

from benchmarks.speed.synthetic_bundle import DAYS, DIM, build_bundle, count_events
from model.bundle.manifest import INDEX
from model.bundle.writing import write_bundle
from model.clock import MICROSECONDS_PER_DAY
from model.encoders.self_attention import SelfAttentionConfig
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.recommender import RecommenderConfig
from model.store.store import BundleStore
from model.wide import WideConfig
from training.config import FitConfig
from training.data.batches import TrainingWindows
from training.data.dataset import Dataset
from training.data.event_counts import count_pairs, count_training_events
from training.data.sources import read_events
from training.data.split import LeaveOneOutConfig, Split, is_before
from training.fitting.fit import make_optimizer
from training.fitting.objective import Objective

RESULTS = Path(__file__).parent / "results" / "sizes.json"
LAST_AT = 1_700_006_400_000_000
ITEMS = (5_000, 20_000, 100_000, 1_000_000)
HISTORIES = (10, 20, 50, 100, 200)
SENT = 1_000
"""Events beyond those that the model reads; no part of the exponent."""
EVENTS = (100_000, 1_000_000)
MOST_EVENTS = 10_000_000
HISTORY_ITEMS, EVENT_ITEMS, EVENTS_PER_USER = 20_000, 5_000, 100
TURNS = 20

Measurement = dict[str, float]


def main() -> None:
    """Measure and record, or take one measurement for the process that does."""
    arguments = _parse_arguments()
    if arguments.measure is not None:
        torch.set_num_threads(1)
        measure, directory, *sizes = arguments.measure
        print(json.dumps(_measure(measure, Path(directory), [int(size) for size in sizes])))
        return
    events = (*EVENTS, *((MOST_EVENTS,) if arguments.ten_million else ()))
    with tempfile.TemporaryDirectory() as directory:
        run = partial(_run, Path(directory))
        for items in ITEMS:
            run("write_bundle", items)
        for size in events:
            run("write_events", size)
            run("write_split", size)
        opened = [[run("open", items)[0] for items in ITEMS] for _ in range(arguments.turns)]
        histories = run("histories", *HISTORIES, SENT)
        curves = {
            "opening": _fit(ITEMS, [_take_least(list(each)) for each in zip(*opened, strict=True)]),
            "recommendation by items": _fit(ITEMS, run("recommendations", *ITEMS)),
            "recommendation by history": _fit(HISTORIES, histories[:-1]),
            "preparation": _fit(events, [run("prepare", size)[0] for size in events]),
            "counts": _fit(events, [run("count", size)[0] for size in events]),
            "step": _fit(events, run("steps", *events)),
        }
    record = {
        "command": "python benchmarks/speed/sizes.py"
        + (" --ten-million" if arguments.ten_million else ""),
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "threads": 1,
        "turns": arguments.turns,
        "curves": curves,
        f"recommendation by a history of {SENT}": histories[-1],
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _run(directory: Path, measure: str, *sizes: int) -> list[Measurement]:
    """Take the measurements of some sizes in a process of their own."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    printed = subprocess.run(
        [sys.executable, __file__, "--measure", measure, str(directory), *map(str, sizes)],
        env={**os.environ, **one_thread},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    measured: list[Measurement] = json.loads(printed)
    print(measure, *zip(sizes, measured, strict=True), file=sys.stderr)
    return measured


def _fit(sizes: tuple[int, ...], measured: list[Measurement]) -> dict[str, object]:
    """Fit the exponent of each quantity, of all sizes and of the two largest."""
    values = {name: [each[name] for each in measured] for name in measured[0]}
    return {
        "sizes": sizes,
        "values": values,
        "exponents": {name: _fit_exponent(sizes, each) for name, each in values.items()},
        "last_exponents": {
            name: _fit_exponent(sizes[-2:], each[-2:]) for name, each in values.items()
        },
    }


def _fit_exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    return round(float(np.polyfit(np.log(sizes), np.log(values), 1)[0]), 2)


def _take_least(measured: list[Measurement]) -> Measurement:
    """Take the least of each quantity."""
    return {name: min(each[name] for each in measured) for name in measured[0]}


def _write_bundle(items: int, directory: Path) -> Measurement:
    counts = count_events(items, np.random.default_rng(0), last_at=LAST_AT)
    bundle = build_bundle(items, last_at=LAST_AT, wide=WideConfig(), counts=counts)
    BundleStore(directory / f"bundles-{items}").publish(partial(write_bundle, bundle))
    return {}


def _measure_opening(items: int, directory: Path) -> Measurement:
    store = BundleStore(directory / f"bundles-{items}")
    before, began = _read_peak_mebibytes(), time.process_time()
    store.open()
    opened, peak = time.process_time() - began, _read_peak_mebibytes()
    (index,) = store.root.glob(f"*/{INDEX}")
    return {
        "seconds": round(opened, 2),
        "peak_mib": round(peak - before, 1),
        "index_mib": round(index.stat().st_size / 2**20, 1),
    }


def _measure_recommendations(sizes: list[int], directory: Path) -> list[Measurement]:
    predictors = [BundleStore(directory / f"bundles-{items}").open() for items in sizes]
    milliseconds = _take_turns([partial(_recommend, predictor, 100) for predictor in predictors])
    return [{"milliseconds": each} for each in milliseconds]


def _measure_histories(sizes: list[int], directory: Path) -> list[Measurement]:
    predictor = BundleStore(directory / f"bundles-{HISTORY_ITEMS}").open()
    recommend = [partial(_recommend, predictor, events) for events in sizes]
    peaks = []
    for each in recommend:
        each(np.random.default_rng(0))
        peaks.append(round(_read_peak_mebibytes(), 1))
    milliseconds = _take_turns(recommend)
    return [
        {"milliseconds": each, "process_peak_mib": peak}
        for each, peak in zip(milliseconds, peaks, strict=True)
    ]


def _take_turns(measure: list[Callable[[np.random.Generator], float]]) -> list[float]:
    """Measure in turns; return the median of each, in milliseconds."""
    rng = np.random.default_rng(0)
    turns = [[each(rng) for each in measure] for _ in range(TURNS + 1)]
    # The first is a warm-up.
    return [round(1_000 * statistics.median(each), 2) for each in zip(*turns[1:], strict=True)]


def _recommend(predictor: Predictor, events: int, rng: np.random.Generator) -> float:
    """Measure the seconds of a recommendation from a random history."""
    items = rng.integers(0, len(predictor.catalog), events)
    times = LAST_AT - rng.integers(0, DAYS * MICROSECONDS_PER_DAY, events)
    history = [Event(f"i{item}", int(at)) for item, at in zip(items, times, strict=True)]
    query = Query.as_of(history, LAST_AT + MICROSECONDS_PER_DAY)
    # Once before: what is measured finds the model in the caches, whichever was measured last.
    predictor.recommend(query, Constraints(n=10))
    began = time.process_time()
    predictor.recommend(query, Constraints(n=10))
    return time.process_time() - began


def _write_events(events: int, directory: Path) -> Measurement:
    """Write events in order of time; items are popular by Zipf's law."""
    rng = np.random.default_rng(0)
    users = rng.permutation(np.arange(events) % (events // EVENTS_PER_USER))
    items = (EVENT_ITEMS * rng.random(events) ** 4).astype(np.int64)
    times = np.sort(LAST_AT - rng.integers(0, DAYS * MICROSECONDS_PER_DAY, events))
    table = pl.DataFrame({"user": users, "item": items, "timestamp": times}).select(
        user_id=pl.format("u{}", "user"),
        item_id=pl.format("i{}", "item"),
        timestamp=pl.col("timestamp").cast(pl.Datetime("us", "UTC")),
    )
    table.write_parquet(directory / f"events-{events}.parquet")
    return {}


def _split(events: int, directory: Path) -> Split:
    dataset = Dataset.of(read_events(directory / f"events-{events}.parquet"), min_item_events=5)
    return LeaveOneOutConfig().split(dataset, "next_event")


def _write_split(events: int, directory: Path) -> Measurement:
    with (directory / f"split-{events}").open("wb") as file:
        pickle.dump(_split(events, directory), file)
    return {}


def _read_split(events: int, directory: Path) -> Split:
    with (directory / f"split-{events}").open("rb") as file:
        split: Split = pickle.load(file)
    return split


def _measure_preparation(events: int, directory: Path) -> Measurement:
    before, began = _read_peak_mebibytes(), time.process_time()
    _split(events, directory)
    return {
        "seconds": round(time.process_time() - began, 2),
        "peak_mib": round(_read_peak_mebibytes() - before, 1),
    }


def _measure_counts(events: int, directory: Path) -> Measurement:
    split, before = _read_split(events, directory), _read_peak_mebibytes()
    began = time.process_time()
    is_training = is_before(split.dataset, split.train_ends)
    pairs = count_pairs(split.dataset, is_training, "next_event")
    count_training_events(split.dataset, is_training, pairs)
    return {
        "seconds": round(time.process_time() - began, 2),
        "peak_mib": round(_read_peak_mebibytes() - before, 1),
    }


def _measure_steps(sizes: list[int], directory: Path) -> list[Measurement]:
    steps = _take_turns([_Steps(_read_split(events, directory)).take for events in sizes])
    return [{"milliseconds": each} for each in steps]


class _Steps:
    """A training that takes single steps."""

    def __init__(self, split: Split) -> None:
        config, encoder = FitConfig(), SelfAttentionConfig(dim=DIM)
        self._windows = TrainingWindows(
            split.dataset, split.train_ends, predict="next_event", max_history=encoder.max_history
        )
        self._plan = self._windows.plan(np.random.default_rng(0), tokens=config.tokens)
        torch.manual_seed(0)
        items = len(split.dataset.catalog)
        recommender = RecommenderConfig(items=items, encoder=encoder).build()
        recommender.train()
        self._objective = Objective(recommender, config)
        self._optimizer = make_optimizer(recommender, config)

    def take(self, rng: np.random.Generator) -> float:
        """Take a step on a random batch; return its seconds."""
        batch = self._plan[int(rng.integers(len(self._plan)))]
        began = time.process_time()
        loss = self._objective.compute_loss(self._windows.build_batch(batch), rng)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        return time.process_time() - began


def _read_peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


_OF_ONE_SIZE: dict[str, Callable[[int, Path], Measurement]] = {
    "write_bundle": _write_bundle,
    "write_events": _write_events,
    "write_split": _write_split,
    "open": _measure_opening,
    "prepare": _measure_preparation,
    "count": _measure_counts,
}
_OF_SEVERAL_SIZES: dict[str, Callable[[list[int], Path], list[Measurement]]] = {
    "recommendations": _measure_recommendations,
    "histories": _measure_histories,
    "steps": _measure_steps,
}


def _measure(measure: str, directory: Path, sizes: list[int]) -> list[Measurement]:
    if measure in _OF_SEVERAL_SIZES:
        return _OF_SEVERAL_SIZES[measure](sizes, directory)
    return [_OF_ONE_SIZE[measure](size, directory) for size in sizes]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ten-million", action="store_true", help="measure 10,000,000 events, too")
    parser.add_argument("--turns", type=int, default=2)
    # Of the processes that measure.
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
