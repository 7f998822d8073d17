"""The store of bundles: is there one to serve, is each sound, and is it of today?"""

import os
import time
from pathlib import Path

import numpy as np

from cli.doctor_checks.check import Check, Checks, broken, doubtful, well
from cli.doctor_checks.database import free_space
from model.clock import MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, from_datetime
from model.errors import BundleError
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.store.store import BundleStore
from training.evaluation.latency import measure_recall

_OLD_DAYS = 30
_LEAST_RECALL = 0.99
_ASKED = 20
_TOP = 10
_PUBLISH = "run kairos retrain, or kairos train and kairos publish"


def checks_of_bundles(root: Path, at: int) -> Checks:
    """The store at an instant (epoch microseconds), and every version in it."""
    store = BundleStore(root)
    versions = store.versions()
    if not versions:
        yield broken("bundles", f"{root.resolve()} holds none: there is nothing to serve", _PUBLISH)
        return
    current, traffic = store.current(), store.traffic()
    yield _current(current, versions)
    in_use = {current, traffic.challenger, traffic.shadow}
    for version in versions:
        yield from _version(store, version, in_use=version in in_use)
    if current in versions:
        yield from _age(store, str(current), at)
    yield writable(root)
    yield free_space("bundles.disk", root)


def _current(current: str | None, versions: list[str]) -> Check:
    if current is None:
        return broken(
            "bundles", f"{len(versions)} are published, none is current", "kairos models activate"
        )
    if current not in versions:
        return broken(
            "bundles",
            f"CURRENT names {current[:80]!r}, which is not published",
            "kairos models activate one that is",
        )
    return well("bundles", f"{len(versions)} published, {current} is current")


def _version(store: BundleStore, version: str, *, in_use: bool) -> Checks:
    name = f"bundle {version}"
    try:
        predictor = store.open(version)
        milliseconds, recall = tried_out(predictor)
    except (BundleError, OSError, ValueError, RuntimeError) as error:
        finding = broken if in_use else doubtful
        yield finding(
            name,
            f"{error}" + ("" if in_use else " (not in use)"),
            "kairos models activate another one, then publish it again or delete its directory",
        )
        return
    told = f"sound, answers in {milliseconds:.1f} ms, index recall {recall:.3f} against exact"
    if recall < _LEAST_RECALL:
        yield broken(name, f"{told}, below {_LEAST_RECALL}", "train and publish again")
    else:
        yield well(name, told)


def tried_out(predictor: Predictor) -> tuple[float, float]:
    """Median milliseconds of an answer, and the share of the exact best that the index found."""
    draw = np.random.default_rng(0)
    last_at = predictor.bundle.manifest.data_window.last_at
    exact = predictor.bundle.recommender.index_vectors().numpy()[1:]
    seconds, recalls = [], []
    for _ in range(_ASKED):
        rows = draw.integers(1, len(predictor.catalog) + 1, size=3).tolist()
        history = tuple(
            Event(predictor.catalog.item_id(row), last_at - ago * MICROSECONDS_PER_SECOND)
            for ago, row in zip((300, 200, 100), rows, strict=True)
        )
        query = Query(history, last_at)
        began = time.perf_counter()
        answer = predictor.recommend(query, Constraints(n=_TOP, exclude_seen=False))
        seconds.append(time.perf_counter() - began)
        if not answer.items or not np.isfinite([item.score for item in answer.items]).all():
            raise BundleError(
                f"a bundle answers with finite scores, but {predictor.version} answered "
                f"{len(answer.items)} items; train again"
            )
        recalls += measure_recall(predictor, query, exact)
    return float(np.median(seconds)) * 1000, float(np.mean(recalls)) if recalls else 1.0


def _age(store: BundleStore, version: str, at: int) -> Checks:
    try:
        manifest = store.manifest(version)
    except BundleError:
        return  # told already
    days = (at - from_datetime(manifest.created_at)) / MICROSECONDS_PER_DAY
    told = f"the current one was made {days:.1f} days ago"
    if days > _OLD_DAYS:
        yield doubtful("bundles.age", told, "run kairos retrain, on a schedule")
    else:
        yield well("bundles.age", told)


def writable(root: Path) -> Check:
    """Whether versions can be published and activated from here."""
    probe = root / f".incoming-doctor-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        return doubtful(
            "bundles.writing",
            f"nothing can be published or activated from here: {error}",
            f"give this user the right to write to {root.resolve()}",
        )
    return well("bundles.writing", "can be published to")
