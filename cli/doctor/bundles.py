"""Checks of the bundle store: current version, integrity, latency, age, disk."""

import os
import time
from pathlib import Path

import numpy as np

from app.serving.pointers import Pointers, read_pointers
from cli.doctor.check import Check, Checks, failure, ok, warning
from cli.doctor.database import check_free_space
from model.bundle.manifest import MANIFEST
from model.bundle.signature import NO_KEYS, BundleKeys
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, from_datetime
from model.errors import BundleError, OutdatedBundleError
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.store.mirrored import MirroredStore
from model.store.store import BundleStore
from training.evaluation.latency import measure_recall

_MAX_AGE_DAYS = 30
_MIN_RECALL = 0.99
_QUERIES = 20
_TOP_N = 10
_PUBLISH = "run kairos retrain, or kairos train and kairos publish"


def check_bundles(root: Path, at: int, keys: BundleKeys = NO_KEYS) -> Checks:
    """Check the store and every version in it, at an instant (epoch microseconds).

    Args:
        keys: with which the versions must be signed.
    """
    store = BundleStore(root, keys)
    versions = store.list_versions()
    yield from _check_unfinished(store, versions)
    if not versions:
        finding = f"{root.resolve()} contains no version: there is nothing to serve"
        yield failure("bundles", finding, _PUBLISH)
        return
    pointers = read_pointers(store)
    current, traffic = pointers.current, pointers.traffic
    if "current" in pointers.faults:
        yield failure("bundles", pointers.faults["current"], "kairos models activate")
    else:
        yield _check_current(current, versions)
    yield from _check_traffic(pointers, versions)
    in_use = {current, traffic.challenger, traffic.shadow}
    for version in versions:
        yield _check_version(store, version, in_use=version in in_use)
    if current in versions:
        yield from _check_age(store, str(current), at)
    yield check_writable(root)
    yield check_free_space("bundles.disk", root)


def check_mirror(store: MirroredStore) -> Checks:
    """Compare what a store in an object store serves with its local copy, without changing it."""
    remedy = "check AWS_ENDPOINT_URL and the credentials; the service copies what it can reach"
    try:
        behind = store.list_behind()
    except OSError as error:
        yield failure("bundles.mirror", f"{store.storage.url} cannot be read: {error}", remedy)
        return
    if behind:
        finding = f"{', '.join(behind)} of {store.storage.url} differs from the local copy"
        yield warning("bundles.mirror", finding, "see the service's log, or start the service")
    else:
        yield ok("bundles.mirror", f"as in {store.storage.url}")


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


def _check_traffic(pointers: Pointers, versions: list[str]) -> Checks:
    remedy = "set it again with PUT /v1/models/traffic"
    if "traffic" in pointers.faults:
        finding = f"{pointers.faults['traffic']}; processes go on with the traffic they read last"
        yield failure("bundles.traffic", finding, remedy)
    for role in ("challenger", "shadow"):
        version = getattr(pointers.traffic, role)
        if version is not None and version not in versions:
            finding = f"the {role} is {version[:80]!r}, which is not published: it does not serve"
            yield failure("bundles.traffic", finding, remedy)


def _check_unfinished(store: BundleStore, versions: list[str]) -> Checks:
    """Report directories that are no versions: left by killed publishers, or without a manifest."""
    if leftovers := store.list_leftovers():
        yield warning(
            "bundles.unfinished",
            f"{len(leftovers)} unfinished files of killed publishers take space "
            f"({leftovers[0].name})",
            "none needed: the next publish, and the next start of the service, removes them",
        )
    if not store.root.is_dir():
        return
    for path in sorted(store.root.iterdir()):
        if path.is_dir() and not path.name.startswith(".") and path.name not in versions:
            yield warning(
                "bundles.unfinished",
                f"{path.name} has no {MANIFEST}: it is no version, and cannot be served",
                "publish it again, or remove the directory",
            )


def _check_version(store: BundleStore, version: str, *, in_use: bool) -> Check:
    name = f"bundle {version}"
    try:
        predictor = store.open(version)
        differing = count_differing_vectors(predictor)
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
    if differing:
        finding = (
            f"{differing} of {len(predictor.catalog)} vectors in the index are not those of the "
            "item table: wrong items are retrieved"
        )
        return failure(name, finding, "train and publish again")
    finding = f"opens, median latency {milliseconds:.1f} ms, index recall {recall:.3f}"
    if recall < _MIN_RECALL:
        return failure(name, f"{finding}, below {_MIN_RECALL}", "train and publish again")
    return ok(name, finding)


def count_differing_vectors(predictor: Predictor) -> int:
    """Count the items whose vector in the index is not that of the item table."""
    vectors = predictor.bundle.recommender.index_vectors().numpy()[1:]
    indexed = predictor.bundle.index.vectors(np.arange(1, len(vectors) + 1))
    return int((indexed != vectors).any(axis=1).sum())


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
