"""The non-stationary kernel against its formula."""

import math

import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor

from model.time_encodings import TimeEncodingConfig
from model.time_encodings.nonstationary import Nonstationary, NonstationaryConfig

CONFIG = NonstationaryConfig(components=3, hidden=5, shortest_period=0.5, longest_period=400.0)
EIGHTY_YEARS = 80 * 365.25
TIMES = [0.0, 1 / 86_400, 0.3, 1.0, 6.5, 100.25, 3652.5, EIGHTY_YEARS]


@pytest.fixture
def kernel() -> Nonstationary:
    """A kernel whose components change over time."""
    torch.manual_seed(3)
    kernel = CONFIG.build()
    with torch.no_grad():
        for parameter in kernel.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return kernel


@pytest.fixture
def times() -> Tensor:
    return torch.tensor(TIMES, dtype=torch.float64)


def test_the_kernel_follows_the_formula(kernel: Nonstationary, times: Tensor) -> None:
    gram = kernel(times[:, None], times[None, :])
    assert gram.dtype == torch.float32
    expected = [[by_definition(kernel, t, u) for u in TIMES] for t in TIMES]
    assert (gram.double() - torch.tensor(expected, dtype=torch.float64)).abs().max() < 2e-6


def test_kernel_of_an_instant_with_itself_is_its_squared_weights(
    kernel: Nonstationary, times: Tensor
) -> None:
    expected = kernel.components(times).weights.square().sum(-1).float()
    torch.testing.assert_close(kernel(times, times), expected, rtol=1e-5, atol=0)


def test_initial_kernel_of_an_instant_with_itself_is_about_one(times: Tensor) -> None:
    itself = CONFIG.build()(times, times)
    torch.testing.assert_close(itself, torch.ones_like(itself), rtol=0, atol=0.2)


def test_the_kernel_is_positive_semi_definite(kernel: Nonstationary) -> None:
    times = torch.rand(40, dtype=torch.float64) * 800
    gram = kernel(times[:, None], times[None, :]).double()
    assert torch.equal(gram, gram.T)
    assert torch.linalg.eigvalsh(gram).min() > -1e-5 * gram.diagonal().max()


def test_the_kernel_is_not_stationary(kernel: Nonstationary) -> None:
    times = torch.rand(20, dtype=torch.float64) * 30
    gram = kernel(times[:, None], times[None, :])
    shifted = kernel(times[:, None] + 100.0, times[None, :] + 100.0)
    assert (gram - shifted).abs().max() > 1e-2
    assert not kernel.is_stationary


def test_constant_components_give_the_spectral_mixture_kernel(
    kernel: Nonstationary, times: Tensor
) -> None:
    with torch.no_grad():
        for part in (kernel.weight, kernel.frequency, kernel.length):
            part.linear2.weight.zero_()
    weights, frequencies, lengths = (part.tolist() for part in kernel.components(times[0]))
    for interval in (0.0, 0.01, 0.3, 2.0, 40.0, 500.0):
        expected = sum(
            w
            * w
            * math.exp(-(interval**2) / (2 * length**2))
            * math.cos(2 * math.pi * mu * interval)
            for w, mu, length in zip(weights, frequencies, lengths, strict=True)
        )
        for at in (0.0, 3.7, 9000.0):
            found = kernel(double(at + interval), double(at))
            assert found.item() == pytest.approx(expected, abs=1e-5)


def test_kernel_and_gradients_are_finite_for_eighty_years(
    kernel: Nonstationary, times: Tensor
) -> None:
    gram = kernel(times[:, None], times[None, :])
    assert gram.isfinite().all()
    (gram * torch.randn_like(gram)).sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in kernel.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert (parameter.grad != 0).any(), name


def test_kernel_and_gradients_are_finite_for_extreme_components(
    times: Tensor,
) -> None:
    kernel = CONFIG.build()
    with torch.no_grad():
        for part in (kernel.weight, kernel.frequency, kernel.length):
            part.linear2.bias.copy_(torch.tensor([-2000.0, -30.0, 2000.0]))
    gram = kernel(times[:, None], times[None, :])
    assert gram.isfinite().all()
    gram.sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in kernel.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_a_batch_of_pairs_equals_one_by_one(kernel: Nonstationary, times: Tensor) -> None:
    pairwise = kernel(times.view(2, 4, 1), times.view(2, 1, 4))
    assert pairwise.shape == (2, 4, 4)
    one = kernel(times[1], times[3])
    assert one.shape == ()
    torch.testing.assert_close(pairwise[0, 1, 3], one, rtol=0, atol=1e-6)


def test_fixed_periods_have_no_gradient() -> None:
    fixed = CONFIG.model_copy(update={"learn_periods": False}).build()
    assert not fixed.base_periods().requires_grad
    assert CONFIG.build().base_periods().requires_grad


def test_paper_code_has_four_components() -> None:
    kernel = NonstationaryConfig.from_paper_code().build()
    assert len(kernel.base_periods()) == 4
    assert kernel.weight.linear1.out_features == 4


def test_weights_survive_a_round_trip(kernel: Nonstationary, times: Tensor) -> None:
    copy = CONFIG.build()
    copy.load_state_dict(kernel.state_dict())
    assert torch.equal(copy(times, times.flip(0)), kernel(times, times.flip(0)))


def test_the_config_survives_a_round_trip_through_json() -> None:
    adapter: TypeAdapter[TimeEncodingConfig] = TypeAdapter(TimeEncodingConfig)
    assert adapter.validate_json(CONFIG.model_dump_json()) == CONFIG


def double(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def by_definition(kernel: Nonstationary, t: float, u: float) -> float:
    """The kernel of two instants, one component at a time."""
    at_t = [part.tolist() for part in kernel.components(double(t))]
    at_u = [part.tolist() for part in kernel.components(double(u))]
    total = 0.0
    for (w, mu, length), (w2, mu2, length2) in zip(
        zip(*at_t, strict=True), zip(*at_u, strict=True), strict=True
    ):
        spread = length**2 + length2**2
        gibbs = math.sqrt(2 * length * length2 / spread) * math.exp(-((t - u) ** 2) / spread)
        total += w * w2 * gibbs * math.cos(2 * math.pi * (mu * t - mu2 * u))
    return total
