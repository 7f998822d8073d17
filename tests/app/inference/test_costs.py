"""Estimates of what calls cost, fitted to what they took."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

from app.inference.costs import CostFit, InferenceCosts, solve_nonnegative
from model.inference.workload import Workload, count_recommendation, count_sweep
from model.store.store import BundleStore
from tests import tiny
from tests.app import tiny_bundle

TRUE = Workload(calls=2e-3, encodings=3e-3, events=4e-5, pairs=0.0, rows=2e-7, items=5e-5)


def seconds_of(workload: Workload) -> float:
    return float(np.dot(TRUE, workload))


def draw(rng: np.random.Generator) -> Workload:
    instants = int(rng.integers(1, 50))
    events = int(rng.integers(1, 400))
    return Workload(
        encodings=instants,
        events=instants * events,
        pairs=instants * events**2,
        rows=instants * 5000,
        items=instants * int(rng.integers(1, 100)),
    )


def test_estimates_approach_what_calls_take() -> None:
    rng, fit = np.random.default_rng(0), CostFit()
    for _ in range(400):
        workload = draw(rng)
        fit.add(workload, seconds_of(workload) * float(rng.lognormal(0, 0.1)))
    errors = [fit.estimate(w) / seconds_of(w) for w in (draw(rng) for _ in range(50))]
    assert min(errors) > 0.8
    assert max(errors) < 1.25


def test_estimates_follow_a_machine_that_becomes_slower() -> None:
    rng, fit = np.random.default_rng(1), CostFit()
    for factor in (1, 5):
        for _ in range(400):
            workload = draw(rng)
            fit.add(workload, factor * seconds_of(workload))
    workload = draw(rng)
    assert fit.estimate(workload) == pytest.approx(5 * seconds_of(workload), rel=0.2)


def test_one_stall_changes_an_estimate_little() -> None:
    rng, fit = np.random.default_rng(2), CostFit()
    for _ in range(200):
        workload = draw(rng)
        fit.add(workload, seconds_of(workload))
    typical = draw(rng)
    fit.add(typical, 1000.0)
    for _ in range(16):
        workload = draw(rng)
        fit.add(workload, seconds_of(workload))
    assert fit.estimate(typical) == pytest.approx(seconds_of(typical), rel=0.3)


def test_estimates_are_never_negative() -> None:
    rng, fit = np.random.default_rng(3), CostFit()
    for _ in range(100):
        fit.add(draw(rng), float(rng.lognormal(-4, 3)))
    assert all(fit.estimate(draw(rng)) > 0 for _ in range(100))


def test_a_part_that_seems_to_cost_nothing_costs_something() -> None:
    rng, fit = np.random.default_rng(0), CostFit()
    for _ in range(400):
        items = int(rng.choice([1, 10, 100, 500]))
        # What grows faster than linearly leaves nothing for the call itself.
        fit.add(Workload(rows=5000, items=items), 2e-4 * (items / 10) ** 1.5)
    assert 0 < fit.estimate(Workload()) < 1e-4


def test_least_squares_without_negative_solutions_are_scipys() -> None:
    rng = np.random.default_rng(4)
    for scale in np.geomspace(1e-3, 1e3, 50):
        inputs = rng.exponential(size=(20, 7)) * (rng.random((20, 7)) < 0.5) * scale
        products = inputs.T @ inputs + 0.05 * np.eye(7)
        targets = products @ rng.normal(0.5, 1, 7)
        lower = np.linalg.cholesky(products)
        expected, _ = nnls(lower.T, np.linalg.solve(lower, targets))
        found = solve_nonnegative(products, targets)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_new_model_is_measured_before_it_serves(tmp_path: Path) -> None:
    version = tiny_bundle.publish(tmp_path, seed=1)
    predictor = BundleStore(tmp_path).open(version)
    ticks = iter(range(1000))
    costs = InferenceCosts()
    costs.calibrate(predictor, clock=lambda: float(next(ticks)))  # a second a call
    one = costs.estimate(predictor, count_recommendation(predictor.bundle, 1, 1))
    assert one == pytest.approx(1.0, rel=0.3)


def test_a_sweep_counts_each_encoding_and_every_returned_item(tmp_path: Path) -> None:
    version = tiny_bundle.publish(tmp_path, seed=1)
    bundle = BundleStore(tmp_path).open(version).bundle
    workload = count_sweep(bundle, [10, 20, 30], [5, 15, 25, 25, 25], 7)
    assert workload == Workload(
        encodings=1,  # the events before 5 are none; the others share an encoding
        events=2,
        pairs=2 * 2 + (1 + 1) + 3 * (2 + 1),
        rows=5 * 20,
        items=5 * 7,
    )


def test_a_sweep_counts_the_events_of_the_last_basket(tmp_path: Path) -> None:
    encoder = tiny.ENCODER.model_copy(update={"baskets": True})
    version = tiny_bundle.publish(tmp_path, seed=1, encoder=encoder)
    bundle = BundleStore(tmp_path).open(version).bundle
    workload = count_sweep(bundle, [10, 20, 20, 20], [15, 25], 7)
    assert workload.pairs == 4 * 4 + 1 * (1 + 1) + 3 * (4 + 3)
