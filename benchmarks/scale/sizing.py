"""What a process of the service takes by the size of the catalog: memory, disk, processor time.

    python -m benchmarks.scale.sizing --bundle var/bundles/... --sizes 5000 100000 1000000

The model is that of a trained bundle, such as the demo's, with the item vectors of
`benchmarks.scale.item_vectors`, an index as the export chooses it, and drawn counts. One process of
the service, with one thread, answers one request at a time: ten items of histories of 50 events, in
the request, and stored in PostgreSQL. Memory is that of the process: after the requests, and its
peak, which includes opening. Writes benchmarks/scale/results/sizing.json.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import psutil
import torch

from benchmarks.scale.item_vectors import draw_items
from benchmarks.scale.peak_memory import read_peak
from benchmarks.speed.serving.databases import run_database, store_histories
from benchmarks.speed.serving.generator import Load, generate
from benchmarks.speed.serving.request_source import RequestKind, RequestSource, draw_histories
from benchmarks.speed.serving.services import Service, run_kairos
from benchmarks.speed.synthetic_bundle import assemble, count_events
from model.bundle.bundle import Bundle
from model.bundle.writing import write_bundle
from model.catalog import Catalog
from model.clock import MICROSECONDS_PER_SECOND
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor
from model.store.store import BundleStore
from training.config import IndexConfig
from training.data.dataset import Dataset
from training.data.sources import read_events
from training.evaluation.sampling import sample_users
from training.item_index import USERS, choose_index

RESULTS = Path(__file__).parent / "results" / "sizing.json"
EVENTS = 50
WARM_UP, REQUESTS = 300, 1_500
MEBIBYTE = 2**20
KINDS = {
    "in the request": RequestKind(events=EVENTS),
    "stored": RequestKind(events=EVENTS, stored=True),
}


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--events", type=Path, default=Path("demo/events.parquet"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    trained = open_predictor(arguments.bundle).bundle
    vectors = _sample_vectors(trained, arguments.events)
    rows = {}
    for items in arguments.sizes:
        with tempfile.TemporaryDirectory() as directory:
            store = BundleStore(Path(directory) / "bundles")
            until = int(time.time())
            bundle = _multiply_items(trained, vectors, items, until)
            version = store.publish(partial(write_bundle, bundle))
            files = [file for file in (store.root / version).rglob("*") if file.is_file()]
            row = {
                "inverted_file": bundle.index.inverted is not None,
                "bundle_mb": round(sum(file.stat().st_size for file in files) / MEBIBYTE),
            }
            del bundle
            rows[str(items)] = row | _measure(store.root, Path(directory), items, until)
        print(items, rows[str(items)], flush=True)
    record = {
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")


def _sample_vectors(trained: Bundle, file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of the items, and of users of the file."""
    events = Dataset.of(read_events(file)).reindex(
        trained.catalog, trained.manifest.recommender.actions
    )
    users = sample_users(
        trained.recommender, events, max_history=trained.manifest.max_history, histories=3_000
    )
    return trained.recommender.index_vectors().numpy()[1:], users


def _multiply_items(
    trained: Bundle, vectors: tuple[np.ndarray, np.ndarray], items: int, until: int
) -> Bundle:
    """Build a bundle of the trained model for a catalog that resembles its own."""
    own = trained.recommender
    config = trained.manifest.recommender.model_copy(update={"items": items})
    recommender = config.build()
    drawn = torch.from_numpy(np.concatenate(list(draw_items(*vectors, items))))
    dim = own.encoder.dim
    weights = {
        name: weight
        for name, weight in own.state_dict().items()
        if weight.shape == recommender.state_dict()[name].shape
    }
    recommender.load_state_dict(weights, strict=False)
    last_at = until * MICROSECONDS_PER_SECOND
    with torch.no_grad():
        recommender.items.weight[1:] = drawn[:, :dim]
        if recommender.item_bias is not None:
            recommender.item_bias[1:] = drawn[:, dim]
    if config.wide is not None:
        recommender.counts = count_events(items, np.random.default_rng(0), last_at=last_at)
    bundle = assemble(recommender.eval(), config, last_at=last_at)
    if items <= IndexConfig().exact_up_to:
        return bundle
    users = _sample_users(recommender, config, bundle.catalog, until)
    return replace(bundle, index=choose_index(bundle.index, users, IndexConfig()))


def _sample_users(
    recommender: Recommender, config: RecommenderConfig, catalog: Catalog, until: int
) -> np.ndarray:
    """Encode histories like those of the requests."""
    histories = draw_histories(
        np.random.default_rng(2), 2 * USERS, items=config.items, events=EVENTS, until=until
    )
    events = pl.DataFrame(
        {
            "user_id": [f"u{user}" for user in range(2 * USERS) for _ in range(EVENTS)],
            "item_id": [f"i{row}" for row in histories.rows.flatten().tolist()],
            "timestamp": pl.Series(histories.times.flatten() * MICROSECONDS_PER_SECOND).cast(
                pl.Datetime("us", "UTC")
            ),
            "action": pl.Series([None] * histories.rows.size, dtype=pl.String),
        }
    )
    dataset = Dataset.of(events).reindex(catalog, config.actions)
    return sample_users(recommender, dataset, max_history=EVENTS, histories=USERS)


def _measure(store: Path, directory: Path, items: int, until: int) -> dict[str, float]:
    row: dict[str, float] = {}
    with _run(store, directory, items, until) as service:
        memory = service.process.memory_info().rss
        for name, kind in KINDS.items():
            source = RequestSource(
                kind, port=service.port, key=service.key, items=items, until=until
            )
            _send(service, source, WARM_UP)
            before = service.read_processor_seconds()
            latencies = _send(service, source, REQUESTS)
            used = service.read_processor_seconds() - before
            label = name.replace(" ", "_")
            row[f"{label}_processor_ms"] = round(used / REQUESTS * 1e3, 2)
            row[f"{label}_p50_ms"] = round(statistics.median(latencies) * 1e3, 2)
            row[f"{label}_p99_ms"] = round(float(np.quantile(latencies, 0.99)) * 1e3, 2)
        row["opened_mb"] = round(memory / MEBIBYTE)
        row["serving_mb"] = round(service.process.memory_info().rss / MEBIBYTE)
        row["peak_mb"] = round(read_peak(service.process.pid) / MEBIBYTE)
    return row


@contextmanager
def _run(store: Path, directory: Path, items: int, until: int) -> Iterator[Service]:
    with run_database("postgresql", directory) as url:
        store_histories(url, items=items, events=EVENTS, until=until)
        with run_kairos(directory, store, url) as service:
            yield service


def _send(service: Service, source: RequestSource, count: int) -> list[float]:
    """Send requests, one at a time, and return their latencies."""
    load = Load(service.port, source.draw(count), None, 600.0, connections=1, repeat=False)
    outcome = generate(load)
    if outcome.failed:
        raise SystemExit(f"requests must succeed, but got statuses {dict(outcome.statuses)}")
    return [one for one in outcome.latencies if one is not None]


if __name__ == "__main__":
    main()
