"""Users per second and core of `kairos recommend --engine`, and the time for a million users.

    python -m benchmarks.scale.recommend_everyone --users 3_000 --items 100_000

Recommends ten items to synthetic users (`benchmarks.scale.synthetic_events`), whose histories are
as long as those of the demo, by a bundle of the shipped architecture with and without a wide part.
Its weights are not trained, which changes the answers but not their cost. Users are independent of
each other, so the time for a million is that of the sample in proportion. Also compares one user at
a time with batches: the cost of each, and whether the answers are equal to the last bit.
Writes benchmarks/scale/results/recommend_everyone.json.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import polars as pl
import torch
from torch.nn import functional as F

from benchmarks.scale.synthetic_events import DEMO, fit, write_events
from benchmarks.speed.synthetic_bundle import build_bundle, count_events
from model.batch import SequenceBatch
from model.bundle.bundle import Bundle
from model.history import Query
from model.inference.predictor import Predictor
from model.inference.query import prepare_query
from model.wide import WideConfig
from training.engines import open_engine
from training.preparation.events import PreparedEvents, list_history
from training.preparation.folder import Folder
from training.preparation.prepare import prepare
from training.recommendations import Request, recommend_everyone

RESULTS = Path(__file__).parent / "results" / "recommend_everyone.json"
BATCH = 32
COMPARED = 512
EVERYONE = 1_000_000


@dataclass(frozen=True)
class _Model:
    """A bundle that is built where it is opened."""

    items: int
    last_at: int
    is_wide: bool

    def __call__(self) -> Predictor:
        return Predictor(_build(self))


@cache
def _build(model: _Model) -> Bundle:
    wide: dict[str, Any] = {}
    if model.is_wide:
        rng = np.random.default_rng(0)
        counts = count_events(model.items, rng, last_at=model.last_at)
        wide = {"wide": WideConfig(), "counts": counts}
    bundle = build_bundle(model.items, last_at=model.last_at, **wide)
    ids = tuple(f"item-{number}" for number in range(model.items))
    return replace(bundle, catalog=replace(bundle.catalog, item_ids=ids))


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=3_000)
    parser.add_argument("--items", type=int, default=100_000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    fitted = fit(pl.read_parquet(DEMO))
    with tempfile.TemporaryDirectory() as name, open_engine("local") as engine:
        folder = Path(name)
        count = int(chosen.users * fitted.events_per_user)
        write_events(folder / "events", fitted, events=count, items=chosen.items)
        prepare(f"{folder}/events/**/*.parquet", f"{folder}/prepared", engine, shards=4)
        events = PreparedEvents.open(f"{folder}/prepared")
        last_at = events.manifest.last_at
        rows = {
            label: _measure(_Model(chosen.items, last_at, is_wide), events, folder / label)
            for label, is_wide in (("encoder", False), ("encoder and wide part", True))
        }
        batches = _compare_batches(_build(_Model(chosen.items, last_at, False)), events)
        record = {
            "command": f"python -m benchmarks.scale.recommend_everyone {' '.join(sys.argv[1:])}",
            "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "faiss": faiss.__version__,
            "items": chosen.items,
            "users": events.manifest.users,
            "events_per_user": round(events.manifest.events / events.manifest.users, 1),
            "rows": rows,
            "milliseconds_per_user_in_batches": batches,
        }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    print(json.dumps(record, indent=1))


def _measure(model: _Model, events: PreparedEvents, output: Path) -> dict[str, float]:
    """Recommend to every user on one core, with the model open."""
    request = Request(model_version="synthetic", query_time=events.manifest.last_at + 3_600_000_000)
    _build(model)
    with open_engine("local") as engine:
        began, used = time.perf_counter(), time.process_time()
        manifest = recommend_everyone(model, request, events, Folder(str(output)), engine)
        wall, processor = time.perf_counter() - began, time.process_time() - used
    size = sum(file.stat().st_size for file in output.glob("*.parquet"))
    return {
        "users": manifest.users,
        "wall_seconds": round(wall, 2),
        "processor_seconds": round(processor, 2),
        "users_per_second_and_core": round(manifest.users / processor, 1),
        "core_hours_for_a_million_users": round(processor / manifest.users * EVERYONE / 3600, 2),
        "megabytes_for_a_million_users": round(size / manifest.users * EVERYONE / 1e6, 1),
    }


def _compare_batches(bundle: Bundle, events: PreparedEvents) -> dict[str, float | bool]:
    """Compare encoding and searching one user at a time with batches of like lengths."""
    shard = events.open_shard(0)
    item_ids = events.list_texts("item_id").to_list()
    actions = events.list_texts("action").to_list()
    every = np.ones(len(shard), dtype=np.bool_)
    instant = events.manifest.last_at + 3_600_000_000
    queries = [
        Query.as_of(list_history(shard, user, item_ids, actions, every), instant)
        for user in range(min(COMPARED, shard.users))
    ]
    singles = [batch for query in queries if (batch := prepare_query(bundle, query).batch)]
    singles.sort(key=lambda batch: batch.rows.shape[1])
    batches = [_join(singles[at : at + BATCH]) for at in range(0, len(singles), BATCH)]
    recommender, index = bundle.recommender, bundle.index._index

    def encode(histories: list[SequenceBatch]) -> Any:
        with torch.inference_mode():
            parts = [recommender.index_queries(recommender(each).user) for each in histories]
        return torch.cat(parts).numpy()

    def search(users: Any, size: int) -> Any:
        found = [index.search(users[at : at + size], 10) for at in range(0, len(users), size)]
        return np.concatenate([np.concatenate(part, axis=1) for part in found])

    alone, encode_alone = _time(lambda: encode(singles), len(singles))
    together, encode_together = _time(lambda: encode(batches), len(singles))
    found, search_alone = _time(lambda: search(alone, 1), len(singles))
    found_together, search_together = _time(lambda: search(alone, BATCH), len(singles))
    return {
        "batch": BATCH,
        "encode_alone": encode_alone,
        "encode_together": encode_together,
        "user_vectors_equal_to_the_last_bit": float((alone == together).all(1).mean()),
        "largest_difference_of_a_user_vector": float(np.abs(alone - together).max()),
        "search_alone": search_alone,
        "search_together": search_together,
        "searches_equal_to_the_last_bit": float((found == found_together).all(1).mean()),
    }


def _join(singles: list[SequenceBatch]) -> SequenceBatch:
    """Pad histories side by side."""
    longest = max(batch.rows.shape[1] for batch in singles)

    def pad(tensor: torch.Tensor) -> torch.Tensor:
        return F.pad(tensor, (0, longest - tensor.shape[1])) if tensor.ndim == 2 else tensor

    return SequenceBatch(
        *(torch.cat([pad(tensor) for tensor in column]) for column in zip(*singles, strict=True))
    )


def _time(compute: Callable[[], Any], users: int) -> tuple[Any, float]:
    """Return a result, and the milliseconds of processor per user; the better of two runs."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        result = compute()
        seconds.append(time.process_time() - began)
    return result, round(min(seconds) / users * 1_000, 3)


if __name__ == "__main__":
    main()
