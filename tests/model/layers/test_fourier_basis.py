"""The Fourier basis and its rotation between instants."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.layers.fourier_basis import basis, rotate, scaled_basis

TWENTY_YEARS = 7305.0
days = st.floats(-TWENTY_YEARS, TWENTY_YEARS)
angular = st.floats(1e-4, 500.0)
coefficient = st.floats(-2, 2, width=32)


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@given(at=days, frequency=angular)
def test_the_basis_is_the_cosine_and_sine_of_the_phase(at: float, frequency: float) -> None:
    found = basis(double(at), double(frequency))[0]
    assert found.tolist() == pytest.approx(
        [math.cos(frequency * at), math.sin(frequency * at)], abs=1e-6
    )


@given(event=days, query=days, frequencies=st.lists(angular, min_size=1, max_size=4))
def test_rotating_an_events_basis_gives_the_intervals_basis(
    event: float, query: float, frequencies: list[float]
) -> None:
    w = double(*frequencies)
    rotated = rotate(basis(double(event), w), basis(double(query), w))
    direct = basis(double(query - event), w)
    torch.testing.assert_close(rotated, direct, rtol=0, atol=2e-6)


@given(event=days, query=days, frequency=angular, a=coefficient, b=coefficient)
def test_rotating_coefficients_equals_rotating_the_basis(
    event: float, query: float, frequency: float, a: float, b: float
) -> None:
    w = double(frequency)
    coefficients = torch.tensor([[a, b]])
    at_event, at_query = basis(double(event), w), basis(double(query), w)
    rotated_query = (rotate(coefficients, at_query) * at_event).sum()
    rotated_basis = (coefficients * rotate(at_event, at_query)).sum()
    assert rotated_query.item() == pytest.approx(rotated_basis.item(), abs=1e-5)


@given(at=days, frequency=angular)
def test_rotating_twice_by_one_instant_is_the_identity(at: float, frequency: float) -> None:
    instant = basis(double(at), double(frequency))
    once = torch.tensor([[0.6, -0.8]])
    torch.testing.assert_close(rotate(rotate(once, instant), instant), once, rtol=0, atol=1e-6)


def test_phases_after_decades_resolve_seconds() -> None:
    # float32 resolves thirty years, in seconds, to 64 s; a second must still change the phase.
    w = double(2 * math.pi * 1440)
    second = 1 / 86_400
    later = basis(double(10_957.0, 10_957.0 + second), w)
    assert later[1].tolist() == pytest.approx(
        [math.cos(math.pi / 30), math.sin(math.pi / 30)], abs=1e-6
    )


def test_a_frequencys_gradient_is_the_interval_times_the_slope() -> None:
    frequency = double(3.0).requires_grad_()
    cosine = basis(double(2.0), frequency)[0, 0]
    cosine.backward()  # type: ignore[no-untyped-call]
    assert frequency.grad is not None
    assert frequency.grad.item() == pytest.approx(-2.0 * math.sin(6.0), abs=1e-5)


def test_an_empty_basis_rotates_to_an_empty_basis() -> None:
    empty = torch.zeros(1, 0, 4)
    assert rotate(empty, basis(torch.zeros(1, 0).double(), double(1.0, 2.0))).shape == (1, 0, 4)


def test_the_scaled_basis_has_a_kernel_of_one() -> None:
    w = double(0.1, 2.0, 30.0)
    weight, bias = scaled_basis(w)
    features = basis(double(0.0, 5.0, 777.7), w) @ weight.T + bias
    torch.testing.assert_close(features.square().sum(-1), torch.ones(3))
