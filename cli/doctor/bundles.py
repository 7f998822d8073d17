"""Checks of the bundle store: current version, integrity, latency, age, disk."""

import os
import time
from pathlib import Path

import numpy as np

from cli.doctor.check import Check, Checks, failure, ok, warning
from cli.doctor.database import check_free_space
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, from_datetime
from model.errors import BundleError, OutdatedBundleError
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from training.evaluation.latency import measure_recall

_MAX_AGE_DAYS = 30
_MIN_RECALL = 0.99
_QUERIES = 20
_TOP_N = 10
_PUBLISH = "run kairos retrain, or kairos train and kairos publish"


def check_bundles(root: Path, at: int) -> Checks:
    """Check the store and every version in it, at an instant (epoch microseconds)."""
    store = BundleStore(root)
    versions = store.list_versions()
    if not versions:
        finding = f"{root.resolve()} contains no version: there is nothing to serve"
        yield failure("bundles", finding, _PUBLISH)
        return
    current, traffic = store.read_current(), store.read_traffic()
    yield _check_current(current, versions)
    in_use = {current, traffic.challenger, traffic.shadow}
    for version in versions:
        yield _check_version(store, version, in_use=version in in_use)
    if current in versions:
        yield from _check_age(store, str(current), at)
    yield check_writable(root)
    yield check_free_space("bundles.disk", root)


def _check_current(current: str | None, versions: list[str]) -> Check:
    if current is None:
        finding = f"{len(versions)} versions are published, but none is current"
        return failure("bundles", finding, "kairos models activate")
    if current not in versions:
        return failure(
            "bundles",
            f"CURRENT names {current[:80]!r}, which is not published",
            "kairos models activate a published version",
        )
    return ok("bundles", f"{len(versions)} published, {current} is current")


def _check_version(store: BundleStore, version: str, *, in_use: bool) -> Check:
    name = f"bundle {version}"
    try:
        predictor = store.open(version)
        milliseconds, recall = measure_predictor(predictor)
    except OutdatedBundleError as error:
        create = failure if in_use else warning
        return create(name, f"{error}", f"{_PUBLISH}; then delete the old version's directory")
    except (BundleError, OSError, ValueError, RuntimeError) as error:
        create = failure if in_use else warning
        return create(
            name,
            f"{error}" + ("" if in_use else " (not in use)"),
            "kairos models activate another one, then publish it again or delete its directory",
        )
    finding = f"opens, median latency {milliseconds:.1f} ms, index recall {recall:.3f}"
    if recall < _MIN_RECALL:
        return failure(name, f"{finding}, below {_MIN_RECALL}", "train and publish again")
    return ok(name, finding)


def measure_predictor(predictor: Predictor) -> tuple[float, float]:
    """Measure the median latency in milliseconds, and the index's recall of the exact best items.

    Raises:
        BundleError: if a score is not finite.
    """
    draw = np.random.default_rng(0)
    last_at = predictor.bundle.manifest.data_window.last_at
    exact = predictor.bundle.recommender.index_vectors().numpy()[1:]
    seconds, recalls = [], []
    for _ in range(_QUERIES):
        rows = draw.integers(1, len(predictor.catalog) + 1, size=3).tolist()
        history = tuple(
            Event(predictor.catalog.item_id(row), last_at - ago * MICROSECONDS_PER_SECOND)
            for ago, row in zip((300, 200, 100), rows, strict=True)
        )
        query = Query(history, last_at)
        began = time.perf_counter()
        answer = predictor.recommend(query, Constraints(n=_TOP_N, exclude_seen=False))
        seconds.append(time.perf_counter() - began)
        if not answer.items or not np.isfinite([item.score for item in answer.items]).all():
            raise BundleError(
                f"a bundle returns items with finite scores, but {predictor.version} returned "
                f"{len(answer.items)} items; train again"
            )
        recalls += measure_recall(predictor, query, exact)
    return float(np.median(seconds)) * 1000, float(np.mean(recalls)) if recalls else 1.0


def _check_age(store: BundleStore, version: str, at: int) -> Checks:
    try:
        manifest = store.read_manifest(version)
    except BundleError:
        return  # _check_version reports it
    days = (at - from_datetime(manifest.created_at)) / MICROSECONDS_PER_DAY
    finding = f"the current version is {days:.1f} days old"
    if days > _MAX_AGE_DAYS:
        yield warning("bundles.age", finding, "run kairos retrain, on a schedule")
    else:
        yield ok("bundles.age", finding)


def check_writable(root: Path) -> Check:
    """Check whether this user can publish and activate versions."""
    probe = root / f".incoming-doctor-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        return warning(
            "bundles.writing",
            f"this user can neither publish nor activate versions: {error}",
            f"grant this user write access to {root.resolve()}",
        )
    return ok("bundles.writing", "writable")
