"""The estimated cost of a call: seconds of a model, fitted to what its calls have taken."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import product
from operator import mul
from typing import final

import numpy as np
from numpy.typing import NDArray

from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.inference.workload import Workload, count_recommendation

_INITIAL = Workload(
    calls=5e-4,
    encodings=1e-3,
    events=1e-5,
    pairs=1e-8,
    rows=1e-7,
    items=1e-5,
    comparisons=2e-8,
)
"""Seconds of one unit of each kind of work, before any measurement: a small model on one core."""

_MEMORY = 0.98
"""Weight of all earlier calls, relative to the latest one: about the last fifty count."""
_INERTIA = 0.05
"""Weight of the last fit, relative to one call: decides what the latest calls leave open."""
_MOST_SURPRISE = 4.0
"""A call counts as at most so many times its estimate, or as at least that share of it: a machine
that stands still for a moment says nothing about the model."""
_FITTED_CALLS = 16
_KEPT_VERSIONS = 32

_SHORT_RECOMMENDATIONS = 2
"""Recommendations from the longest history that take as long as the longest short call."""
_SHORT_SECONDS = 0.005
_LEAST_SECONDS = 1e-6
"""Of an estimate: a fit may find that a part costs nothing, and times are compared as ratios."""

_HOUR = 3_600_000_000
_CALIBRATIONS = ((0, 1), (None, 1), (None, 100))
"""Events (None for the longest history) and items of the calls that measure a new model."""


@final
class CostFit:
    """The seconds of each kind of work, by non-negative least squares of relative errors."""

    def __init__(self) -> None:
        self._scale = np.array(_INITIAL)
        # Relative to the initial values, so that all are of the same order.
        self._fitted = np.ones(len(self._scale))
        self._products = np.zeros((len(self._scale), len(self._scale)))
        self._targets = np.zeros(len(self._scale))
        self._seconds: tuple[float, ...] = tuple(_INITIAL)
        self._unfitted: list[tuple[Workload, float]] = []

    def estimate(self, workload: Workload) -> float:
        """Estimate the seconds of a call, more than none."""
        return max(math.fsum(map(mul, self._seconds, workload)), _LEAST_SECONDS)

    def calibrate(self, calls: Sequence[tuple[Workload, float]]) -> None:
        """Start from the workloads and seconds of the first calls, whatever was assumed before."""
        ratios = [seconds / self.estimate(workload) for workload, seconds in calls]
        self._scale = self._scale * float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-3)))))
        self._unfitted = list(calls)
        self._fit()

    def add(self, workload: Workload, seconds: float) -> None:
        """Add a call that took so many seconds."""
        estimate = self.estimate(workload)
        seconds = min(max(seconds, estimate / _MOST_SURPRISE), estimate * _MOST_SURPRISE)
        self._unfitted.append((workload, seconds))
        if len(self._unfitted) >= _FITTED_CALLS:
            self._fit()

    def _fit(self) -> None:
        workloads, took = zip(*self._unfitted, strict=True)
        inputs = np.array(workloads) * self._scale / np.maximum(took, 1e-6)[:, None]
        weights = _MEMORY ** np.arange(len(inputs) - 1, -1, -1)[:, None]
        memory = _MEMORY ** len(inputs)
        self._products = memory * self._products + inputs.T @ (weights * inputs)
        self._targets = memory * self._targets + (weights * inputs).sum(0)
        self._unfitted = []
        products = self._products + _INERTIA * np.eye(len(self._scale))
        targets = self._targets + _INERTIA * self._fitted
        self._fitted = solve_nonnegative(products, targets)
        seconds: NDArray[np.float64] = self._fitted * self._scale
        self._seconds = tuple(seconds.tolist())


def solve_nonnegative(
    products: NDArray[np.float64], targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve least squares without negative solutions, given by their normal equations.

    Some of the unknowns are zero, and the others solve their own equations: each choice is tried.
    For the seven kinds of work that takes a fifth of a millisecond; to import SciPy's method, half
    a second of every start.

    Args:
        products: positive definite.
    """
    chosen = np.array(list(product((0.0, 1.0), repeat=len(targets))))
    equations = chosen[:, :, None] * products * chosen[:, None, :]
    equations += (1 - chosen)[:, :, None] * np.eye(len(targets))
    solutions = np.linalg.solve(equations, (chosen * targets)[:, :, None])[:, :, 0]
    # How much the squares decrease from those of the solution zero, halved.
    decreases = np.where((solutions >= 0).all(1), solutions @ targets, -np.inf)
    best: NDArray[np.float64] = solutions[decreases.argmax()]
    return best


@final
class InferenceCosts:
    """Estimates the cost of calls to each version, and learns from what they took."""

    def __init__(self) -> None:
        self._fits: OrderedDict[str, CostFit] = OrderedDict()
        self._lock = threading.Lock()

    def estimate(self, predictor: Predictor, workload: Workload) -> float:
        """Estimate the seconds of a call to a model."""
        return self._find(predictor.version).estimate(workload)

    def bound_short_calls(self, predictor: Predictor) -> float:
        """Return the seconds up to which calls are short: two plain recommendations at most."""
        bundle = predictor.bundle
        workload = count_recommendation(bundle, bundle.manifest.max_history, 10)
        estimate = self._find(predictor.version).estimate(workload)
        return max(_SHORT_RECOMMENDATIONS * estimate, _SHORT_SECONDS)

    def add(self, predictor: Predictor, workload: Workload, seconds: float) -> None:
        """Learn from a call to a model that took so many seconds."""
        self._find(predictor.version).add(workload, seconds)

    def calibrate(
        self, predictor: Predictor, *, clock: Callable[[], float] = time.thread_time
    ) -> None:
        """Measure a model with a few calls before it serves requests; blocks.

        Args:
            clock: in seconds; of the thread by default, as others may be busy while it opens.
        """
        bundle = predictor.bundle
        calls: list[tuple[Workload, float]] = []
        for events, n in _CALIBRATIONS:
            length = bundle.manifest.max_history if events is None else events + 1
            query = _build_query(predictor, length)
            began = clock()
            predictor.recommend(query, Constraints(n=n, exclude_seen=False))
            workload = count_recommendation(bundle, length, n)
            calls.append((workload, clock() - began))
        fit = CostFit()
        fit.calibrate(calls)
        with self._lock:
            self._fits[predictor.version] = fit
            while len(self._fits) > _KEPT_VERSIONS:
                self._fits.popitem(last=False)

    def _find(self, version: str) -> CostFit:
        fit = self._fits.get(version)
        if fit is None:
            with self._lock:
                fit = self._fits.setdefault(version, CostFit())
        return fit


def _build_query(predictor: Predictor, length: int) -> Query:
    """Build a history of the catalog's items in turn, an hour apart, until the end of the data."""
    items, last_at = len(predictor.catalog), predictor.bundle.manifest.data_window.last_at
    events = tuple(
        Event(predictor.catalog.item_id(number % items + 1), last_at - (length - number) * _HOUR)
        for number in range(length)
    )
    return Query(events, last_at)
