"""Kernels of repurchases, and the repeats that they are fitted to."""

import math

import numpy as np
import pytest
import torch

from model.layers.repurchase_kernel import (
    DEFAULT_INTERVAL,
    UNIT_DAYS,
    KernelCoefficients,
    KernelFit,
    KernelShapes,
    compute_log_kernel,
    find_repeats,
    fit_shapes,
    measure_visit_interval,
)
from tests.contracts.histories import DAY, START


def test_a_kernel_is_a_density_over_all_intervals() -> None:
    # From -40 units: the normal part reaches below zero, the exponential one does not.
    shapes = KernelShapes(*(torch.tensor(one) for one in (0.4, -0.3, 1.2, -1.0)))
    grid = torch.linspace(0, 40, 400_001, dtype=torch.float64)
    total = compute_log_kernel(grid, shapes).exp().sum() * (grid[1] - grid[0])
    assert math.isclose(total, 1.0, rel_tol=1e-2)


def test_coefficients_compute_the_same_kernel() -> None:
    torch.manual_seed(0)
    shapes, intervals = KernelShapes(*torch.randn(4, 50)), 3 * torch.rand(50)
    found = KernelCoefficients.of_shapes(shapes).compute(intervals)
    torch.testing.assert_close(found, compute_log_kernel(intervals, shapes).exp())
    assert (KernelCoefficients.of_shapes(shapes).compute(-intervals - 1e-3) == 0).all()


def test_a_kernel_long_before_the_purchase_is_0() -> None:
    shapes = KernelShapes(*torch.tensor([0.0, -3.0, 0.1, -3.0])[:, None])
    found = KernelCoefficients.of_shapes(shapes).compute(torch.tensor([-100.0]))
    assert found.tolist() == [0.0]


def test_repeats_are_paired_with_all_purchases_before_them() -> None:
    rows = torch.tensor([1, 2, 1, 1, 3, 3, 1])
    times = START + DAY * torch.tensor([0, 5, 10, 40, 0, 0, 3])
    users = torch.tensor([0, 0, 0, 0, 1, 1, 1])
    found = find_repeats(rows, times, users, most_earlier=50)
    assert found.rows.tolist() == [1, 1]
    assert found.repeat_of.tolist() == [0, 1, 1]
    assert found.days.tolist() == [10, 30, 40]
    assert found.latest_days.tolist() == [10, 30]
    assert find_repeats(rows, times, users, most_earlier=1).days.tolist() == [10, 30]


def test_a_fit_finds_the_interval_of_each_item() -> None:
    # Of every user, two purchases of one of the items.
    users = torch.arange(30).repeat_interleave(2)
    rows = 1 + users % 2
    days = torch.where(rows == 1, 21, 60) * (torch.arange(60) % 2)
    fit = KernelFit(steps=400, shrinkage=1e-3)
    shapes = fit_shapes(rows, START + DAY * days, users, items=3, fit=fit)
    log_kernel = compute_log_kernel(
        torch.tensor([21 / 70, 60 / 70]), KernelShapes(*shapes.T[:, 1:3])
    )
    crossed = compute_log_kernel(torch.tensor([10 / 70, 30 / 70]), KernelShapes(*shapes.T[:, 1:3]))
    assert (log_kernel > crossed + 1).all()


@pytest.mark.parametrize("most_pairs", [1, 7, 100, 400])
def test_a_fit_in_slices_is_that_of_the_whole(most_pairs: int) -> None:
    rng = np.random.default_rng(0)
    users = torch.arange(9).repeat_interleave(20)
    rows = torch.from_numpy(rng.integers(1, 6, 180))
    times = START + torch.from_numpy(np.sort(rng.uniform(0, 200, (9, 20)) * DAY).ravel()).long()
    fit = KernelFit(steps=5, shrinkage=1.0)
    sliced = fit_shapes(rows, times, users, items=5, fit=fit, most_pairs=most_pairs)
    whole = fit_shapes(rows, times, users, items=5, fit=fit)
    assert not torch.equal(whole[1], whole[2])
    torch.testing.assert_close(sliced, whole, rtol=1e-3, atol=1e-4)


def test_the_visit_interval_is_the_median_between_instants() -> None:
    times = START + DAY * torch.tensor([0, 0, 4, 10, 3, 5])
    users = torch.tensor([0, 0, 0, 0, 1, 1])
    assert measure_visit_interval(times, users) == 4.0
    assert measure_visit_interval(times[:2], users[:2]) == DEFAULT_INTERVAL


def purchases_of(*, users: int, items: int, length: int) -> tuple[torch.Tensor, ...]:
    """Rows, times and users of random purchases, most of them repeats."""
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.integers(1, items + 1, users * length))
    days = np.sort(rng.gamma(2.0, 60.0, (users, length)))
    times = START + torch.from_numpy((days * DAY).ravel()).long()
    return rows, times, torch.arange(users).repeat_interleave(length)


def objective_of(
    shapes: torch.Tensor, purchases: tuple[torch.Tensor, ...], shrinkage: float
) -> float:
    """The authors' loss of all repeats, and the cost of what items differ by."""
    repeats = find_repeats(*purchases, most_earlier=50)
    of_pairs = KernelShapes(*shapes[repeats.rows[repeats.repeat_of]].unbind(-1))
    density = compute_log_kernel((repeats.days / UNIT_DAYS).float(), of_pairs).exp()
    sums = torch.zeros(len(repeats.rows)).index_add(0, repeats.repeat_of, density)
    differences = shapes[1:] - shapes[0]
    cost = 0.5 * shrinkage * differences.square().sum()
    return float(cost - torch.nn.functional.logsigmoid(sums).sum())


@pytest.mark.parametrize("shrinkage", [1.0, 100.0, 1e5])
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_a_fit_never_ends_above_its_start(steps: int, shrinkage: float) -> None:
    purchases = purchases_of(users=40, items=6, length=15)
    start, end = (
        objective_of(
            fit_shapes(*purchases, items=6, fit=KernelFit(steps=most, shrinkage=shrinkage)),
            purchases,
            shrinkage,
        )
        for most in (0, steps)
    )
    assert end < start


def test_a_long_fit_ends_alike_from_both_starts() -> None:
    purchases = purchases_of(users=40, items=6, length=15)
    of_all, own = (
        fit_shapes(
            *purchases,
            items=6,
            fit=KernelFit(steps=200, shrinkage=100.0, is_measured=is_measured),
        )
        for is_measured in (False, True)
    )
    ends = [objective_of(shapes, purchases, 100.0) for shapes in (of_all, own)]
    assert math.isclose(*ends, rel_tol=1e-3)
    # The same start, held more strongly, leaves items closer to each other.
    held = fit_shapes(*purchases, items=6, fit=KernelFit(steps=200, shrinkage=1e5))
    assert (held[1:] - held[0]).square().sum() < 0.01 * (of_all[1:] - of_all[0]).square().sum()
