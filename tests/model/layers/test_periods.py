"""Spacings of initial periods, and learned periods."""

import math

import pytest
import torch

from model.layers.periods import Periods, log_uniform, paper_spacing


def test_log_uniform_periods_are_geometric_with_both_bounds() -> None:
    found = log_uniform(count=4, shortest=0.1, longest=100.0).exp().tolist()
    assert found == pytest.approx([0.1, 1.0, 10.0, 100.0])


def test_paper_spacing_is_in_multiples_of_the_lowest_frequency() -> None:
    found = paper_spacing(count=3, shortest=2.0, longest=18.0).exp().tolist()
    multiples = [9 - 8 ** (i / 3) for i in (1, 2, 3)]
    assert multiples == pytest.approx([7, 5, 1])
    assert found == pytest.approx([18 / multiple for multiple in multiples])


@pytest.mark.parametrize("longest", [1.0, 1.2, 2.0, 1e6])
def test_paper_spacing_is_finite_for_any_range(longest: float) -> None:
    periods = paper_spacing(count=5, shortest=1.0, longest=longest)
    assert periods.isfinite().all()
    assert periods[-1].exp().item() == pytest.approx(longest)


@pytest.mark.parametrize("spacing", [log_uniform, paper_spacing])
@pytest.mark.parametrize("bounds", [(9.0, 1.0), (0.0, 1.0), (-1.0, 1.0)])
def test_bounds_out_of_order_are_rejected_with_their_values(spacing, bounds) -> None:  # type: ignore[no-untyped-def]
    shortest, longest = bounds
    with pytest.raises(ValueError, match=f"shortest={shortest}, longest={longest}"):
        spacing(count=2, shortest=shortest, longest=longest)


def test_a_frequency_is_one_turn_per_period() -> None:
    periods = Periods(torch.tensor([0.5, 7.0], dtype=torch.float64).log(), learned=True)
    assert (periods.frequencies() * periods()).tolist() == pytest.approx([2 * math.pi] * 2)


def test_fixed_periods_have_no_gradient() -> None:
    logs = log_uniform(count=2, shortest=1.0, longest=2.0)
    assert Periods(logs, learned=True)().requires_grad
    assert not Periods(logs, learned=False)().requires_grad
