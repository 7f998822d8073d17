"""Searches of an index by catalog size: build time, memory, latency, recall, and filters.

    python -m benchmarks.scale.item_vectors --bundle var/bundles/... --events demo/events.parquet \
        --output vectors.npz
    python -m benchmarks.scale.item_index --vectors vectors.npz --sizes 10000 100000 1000000

Vectors are of `benchmarks.scale.item_vectors`. Every index is built in a process of its own, with
all cores, and its searches are measured in another that opens its file, on one thread, one user
vector at a time. Recall is the mean share of the exact hundred best items, over user vectors that
the index was not built with. Adds to benchmarks/scale/results/item_index.json.

Kinds of indexes:
    exact: scores all items.
    kairos: what the export chooses for a large catalog (`training.item_index`).
    hnsw: a graph over the vectors of the model, by inner product.
    hnsw_whitened: a graph over the vectors between which a distance means a difference of scores.
    ivfpq_whitened: lists of product codes of them, of which the exact scores are computed.
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.scale.item_vectors import draw_items
from model.bundle.index import ItemIndex
from model.bundle.whitening import ItemTransform, compute_whitening
from training.config import IndexConfig
from training.item_index import choose_index

RESULTS = Path(__file__).parent / "results" / "item_index.json"
TOP, BUILT_WITH, MEASURED = 100, 1_000, 300
SHARES = (0.95, 0.5, 0.2, 0.05, 0.01)
RECALL = IndexConfig().recall
MEBIBYTE = 2**20

Rows = NDArray[np.int64]
Vectors = NDArray[np.float32]
Search = Callable[[Vectors], Rows]


class Kind(NamedTuple):
    """How an index is built into a file, and opened for searches."""

    build: Callable[[ItemIndex, Vectors, Path], None]
    open: Callable[[ItemIndex, Path], Search]


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=[*STEPS])
    parser.add_argument(
        "--directory", type=Path, help="keep the files there, to measure them again later"
    )
    parser.add_argument("--step", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        step, kind, directory = arguments.step
        print(json.dumps(STEPS[step](kind, arguments.vectors, Path(directory))))
        return
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as temporary:
            directory = (arguments.directory or Path(temporary)) / str(size)
            if not (directory / "best.npy").exists():
                directory.mkdir(parents=True, exist_ok=True)
                _write_items(arguments.vectors, size, directory)
            for kind in arguments.kinds:
                row: dict[str, float | str] = {}
                for step in arguments.steps:
                    row |= _run_step(step, kind, arguments.vectors, directory)
                print(f"{size:>10,} {kind:<14} {row}", flush=True)
                _record(f"{kind}/{size}", row)


def _record(name: str, row: dict[str, float | str]) -> None:
    record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": {}}
    record["machine"] = f"{psutil.cpu_count()} cores of {_read_processor()}"
    record["faiss"] = faiss.__version__
    row["recorded_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    record["rows"][name] = record["rows"].get(name, {}) | row
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")


def _read_processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _run_step(step: str, kind: str, vectors: Path, directory: Path) -> dict[str, float]:
    """Run one step in a process of its own, so that its memory is its own, too."""
    command = [sys.executable, "-m", "benchmarks.scale.item_index", "--vectors", str(vectors)]
    output = subprocess.run(
        [*command, "--step", step, kind, str(directory)], check=True, stdout=subprocess.PIPE
    ).stdout
    measured: dict[str, float] = json.loads(output.splitlines()[-1])
    return measured


def _write_items(vectors: Path, size: int, directory: Path) -> None:
    """Write the item vectors, and the exact best of the measured users."""
    model = np.load(vectors)
    index = faiss.IndexFlatIP(model["items"].shape[1])
    for batch in draw_items(model["items"], model["users"], size):
        index.add(batch)
    faiss.write_index(index, str(directory / "items"))
    np.save(directory / "best.npy", index.search(_draw_measured(vectors), TOP)[1] + 1)


def _draw_users(vectors: Path) -> Vectors:
    users: Vectors = np.load(vectors)["users"]
    return users[np.random.default_rng(0).permutation(len(users))]


def _draw_measured(vectors: Path) -> Vectors:
    return _draw_users(vectors)[BUILT_WITH : BUILT_WITH + MEASURED]


def _map(path: Path) -> NDArray[np.uint8]:
    return np.memmap(path, dtype=np.uint8, mode="r")


def _read_all(items: ItemIndex) -> Vectors:
    return items.vectors(np.arange(1, len(items) + 1))


def _build_nothing(_items: ItemIndex, _users: Vectors, _file: Path) -> None:
    pass


def _open_exact(items: ItemIndex, _file: Path) -> Search:
    return lambda user: items.search(user, TOP)[0]


def _build_kairos(items: ItemIndex, users: Vectors, file: Path) -> None:
    chosen = choose_index(items, users, IndexConfig())
    if chosen.inverted is not None:
        chosen.inverted.save(file)


def _open_kairos(items: ItemIndex, file: Path) -> Search:
    return _open_exact(_load_kairos(items, file), file)


def _load_kairos(items: ItemIndex, file: Path) -> ItemIndex:
    return ItemIndex.load(_map(file.parent / "items"), _map(file)) if file.exists() else items


def _build_hnsw(items: ItemIndex, users: Vectors, file: Path) -> None:
    index = faiss.IndexHNSWFlat(items.width, 32, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 100
    index.add(_read_all(items))
    index.hnsw.efSearch = _tune(items, users, lambda ef: _open_graph(index, ef))
    faiss.write_index(index, str(file))


def _open_hnsw(_items: ItemIndex, file: Path) -> Search:
    index = faiss.read_index(str(file))
    return _open_graph(index, index.hnsw.efSearch)


def _open_graph(index: faiss.IndexHNSWFlat, breadth: int) -> Search:
    parameters = faiss.SearchParametersHNSW(efSearch=breadth)
    return lambda user: index.search(user[None], TOP, params=parameters)[1][0] + 1


def _build_hnsw_whitened(items: ItemIndex, users: Vectors, file: Path) -> None:
    matrix, vectors = _whiten(items, users)
    index = faiss.IndexHNSWFlat(len(matrix), 32)
    index.hnsw.efConstruction = 100
    index.add(vectors)
    index.hnsw.efSearch = _tune(items, users, lambda ef: _before(matrix, _open_graph(index, ef)))
    faiss.write_index(index, str(file))
    np.save(f"{file}.npy", matrix)


def _open_hnsw_whitened(items: ItemIndex, file: Path) -> Search:
    return _before(np.load(f"{file}.npy"), _open_hnsw(items, file))


def _build_ivfpq_whitened(items: ItemIndex, users: Vectors, file: Path) -> None:
    matrix, vectors = _whiten(items, users)
    lists = round(4 * len(items) ** 0.5)
    index = faiss.index_factory(len(matrix), f"IVF{lists},PQ{len(matrix) // 2}")
    index.train(vectors[:: max(1, len(vectors) // (64 * lists))])
    index.add(vectors)
    index.nprobe = _tune(items, users, lambda probes: _open_lists(items, index, matrix, probes))
    faiss.write_index(index, str(file))
    np.save(f"{file}.npy", matrix)


def _open_ivfpq_whitened(items: ItemIndex, file: Path) -> Search:
    index = faiss.read_index(str(file))
    return _open_lists(items, index, np.load(f"{file}.npy"), index.nprobe)


def _open_lists(items: ItemIndex, index: faiss.IndexIVFPQ, matrix: Vectors, probes: int) -> Search:
    parameters = faiss.SearchParametersIVF(nprobe=probes)

    def search(user: Vectors) -> Rows:
        found = index.search((matrix @ user)[None], 10 * TOP, params=parameters)[1][0] + 1
        rows: Rows = found[found > 0]
        return rows[np.argsort(-items.score(user, rows))[:TOP]]

    return search


def _whiten(items: ItemIndex, users: Vectors) -> tuple[Vectors, Vectors]:
    matrix, vectors = compute_whitening(users), _read_all(items)
    return matrix, ItemTransform(matrix, vectors).apply(vectors)


def _before(matrix: Vectors, search: Search) -> Search:
    return lambda user: search(matrix @ user)


def _tune(items: ItemIndex, users: Vectors, open_with: Callable[[int], Search]) -> int:
    """Return the first of powers of two with which a search finds what the export asks for."""
    sample = users[:200]
    best = [items.search(user, TOP)[0] for user in sample]
    setting = 1
    while setting < 4_096:
        search = open_with(setting)
        found = [
            np.isin(rows, search(user)).mean() for user, rows in zip(sample, best, strict=True)
        ]
        if np.mean(found) >= RECALL:
            break
        setting *= 2
    return setting


def _build(kind: str, vectors: Path, directory: Path) -> dict[str, float]:
    items = ItemIndex.load(_map(directory / "items"))
    began = time.perf_counter()
    KINDS[kind].build(items, _draw_users(vectors)[:BUILT_WITH], directory / kind)
    file = directory / kind
    return {
        "build_seconds": round(time.perf_counter() - began, 1),
        "build_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "file_mb": round(file.stat().st_size / MEBIBYTE, 1) if file.exists() else 0,
    }


def _measure(kind: str, vectors: Path, directory: Path) -> dict[str, float]:
    users, best = _draw_measured(vectors), np.load(directory / "best.npy")
    faiss.omp_set_num_threads(1)
    before = psutil.Process().memory_info().rss
    search = KINDS[kind].open(ItemIndex.load(_map(directory / "items")), directory / kind)
    for user in users:
        search(user)  # what a search reads comes from the disk once
    seconds, recalls = [], []
    for user, exact in zip(users, best, strict=True):
        began = time.perf_counter()
        rows = search(user)
        seconds.append(time.perf_counter() - began)
        recalls.append(np.isin(exact, rows).mean())
    return {
        "recall": round(float(np.mean(recalls)), 4),
        "p50_ms": round(float(np.median(seconds)) * 1e3, 3),
        "p99_ms": round(float(np.quantile(seconds, 0.99)) * 1e3, 3),
        "resident_mb": round((psutil.Process().memory_info().rss - before) / MEBIBYTE),
    }


def _measure_filters(kind: str, vectors: Path, directory: Path) -> dict[str, float]:
    """Measure searches among a share of the items: at random, and the most alike to one item."""
    file = directory / kind
    if kind != "kairos" or not file.exists():
        return {}
    users = _draw_measured(vectors)[:100]
    faiss.omp_set_num_threads(1)
    index = _load_kairos(ItemIndex.load(_map(directory / "items")), file)
    assert index.inverted is not None
    row: dict[str, float] = {"lists": index.inverted.lists, "probes": index.inverted.probes}
    every = _read_all(index)
    rng = np.random.default_rng(1)
    # In the space of the lists, where a category would be together.
    matrix = compute_whitening(_draw_users(vectors)[:BUILT_WITH])
    items = ItemTransform(matrix, every)
    likeness = np.concatenate(
        [
            -((items.apply(batch) - items.apply(every[:1])) ** 2).sum(-1)
            for batch in np.array_split(every, len(every) // 100_000 + 1)
        ]
    )
    for name, order in (("random", rng.random(len(every))), ("alike", likeness)):
        for share in SHARES:
            allowed = np.zeros(len(every) + 1, dtype=np.bool_)
            allowed[1:] = order >= np.quantile(order, 1 - share)
            rows = np.flatnonzero(allowed)
            vectors_allowed = index.vectors(rows)
            recalls, seconds = [], []
            for user in users:
                scores = vectors_allowed @ user
                best = rows[np.argpartition(-scores, TOP)[:TOP]]
                began = time.perf_counter()
                found, _ = index.search(user, TOP, allowed=allowed)
                seconds.append(time.perf_counter() - began)
                recalls.append(np.isin(best, found).mean())
            row[f"{name}_{share:g}_recall"] = round(float(np.mean(recalls)), 4)
            row[f"{name}_{share:g}_p50_ms"] = round(float(np.median(seconds)) * 1e3, 2)
    return row


KINDS = {
    "exact": Kind(_build_nothing, _open_exact),
    "kairos": Kind(_build_kairos, _open_kairos),
    "hnsw": Kind(_build_hnsw, _open_hnsw),
    "hnsw_whitened": Kind(_build_hnsw_whitened, _open_hnsw_whitened),
    "ivfpq_whitened": Kind(_build_ivfpq_whitened, _open_ivfpq_whitened),
}
STEPS = {"build": _build, "measure": _measure, "filters": _measure_filters}


if __name__ == "__main__":
    main()
