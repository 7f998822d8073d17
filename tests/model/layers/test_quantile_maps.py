"""Learned maps from uniform draws to samples."""

import math

import pytest
import torch
from torch import Tensor, nn

from model.layers.quantile_maps import AutoregressiveFlow, CouplingFlow, MonotoneMLP, ResidualMLP

DRAWS = torch.linspace(-0.95, 0.95, 20, dtype=torch.float64)


def maps() -> list[nn.Module]:
    return [MonotoneMLP(32), ResidualMLP(20), AutoregressiveFlow(), CouplingFlow(20, 8)]


def perturb(of: nn.Module, by: float) -> nn.Module:
    with torch.no_grad():
        for parameter in of.parameters():
            parameter.add_(by * torch.randn_like(parameter))
    return of


@pytest.mark.parametrize("of", maps(), ids=lambda of: type(of).__name__)
def test_a_map_starts_near_the_identity(of: nn.Module) -> None:
    torch.testing.assert_close(of(DRAWS), DRAWS, rtol=0, atol=0.1)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_an_inverse_cdf_increases_for_any_parameters(scale: float) -> None:
    for of in (MonotoneMLP(6), AutoregressiveFlow()):
        for _ in range(10):
            samples = perturb(of, scale)(torch.linspace(-1, 1, 50, dtype=torch.float64))
            assert (samples.diff() >= 0).all()
            assert samples[-1] > samples[0]


def test_an_inverse_cdf_maps_each_draw_separately() -> None:
    for of in (perturb(MonotoneMLP(6), 1.0), perturb(AutoregressiveFlow(), 1.0)):
        together = of(DRAWS)
        assert together.tolist() == pytest.approx([of(draw.view(1)).item() for draw in DRAWS])


def test_an_inverse_cdf_can_learn_a_distribution() -> None:
    # Quantiles of the exponential distribution at the draws' ranks.
    expected = -((1 - DRAWS) / 2).log()
    of = MonotoneMLP(16)
    optimizer = torch.optim.Adam(of.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        (of(DRAWS) - expected).square().mean().backward()
        optimizer.step()
    torch.testing.assert_close(of(DRAWS).detach(), expected, rtol=0, atol=0.1)


def test_an_autoregressive_flow_of_one_dimension_is_affine() -> None:
    samples = perturb(AutoregressiveFlow(), 1.0)(DRAWS)
    slopes = samples.diff() / DRAWS.diff()
    assert slopes.tolist() == pytest.approx([slopes[0].item()] * 19)
    assert slopes[0] > 0


def test_a_residual_mlp_follows_its_formula() -> None:
    of = perturb(ResidualMLP(3), 0.5)
    first, second, third = ((layer.weight, layer.bias) for layer in of.children())
    x = DRAWS[:3]

    def dense(layer: tuple[Tensor, Tensor], values: list[float]) -> list[float]:
        weight, bias = (part.tolist() for part in layer)
        return [
            sum(w * v for w, v in zip(row, values, strict=True)) + b
            for row, b in zip(weight, bias, strict=True)
        ]

    h = dense(second, [math.tanh(value) for value in dense(first, x.tolist())])
    expected = dense(third, [a + b for a, b in zip(h, x.tolist(), strict=True)])
    assert of(x).tolist() == pytest.approx(expected)


def test_a_coupling_flow_couples_both_halves() -> None:
    of = perturb(CouplingFlow(4, 5), 0.5)
    jacobian = torch.autograd.functional.jacobian(of, DRAWS[:4])
    # Even samples depend on the odd draws, then odd samples on the even samples.
    odd, even = [1, 3], [0, 2]
    assert jacobian[even][:, odd].all()
    assert jacobian[odd][:, even].all()
    assert (jacobian[0, 2], jacobian[2, 0]) == (0, 0)
    assert torch.linalg.det(jacobian) > 0


def test_a_coupling_flow_of_one_draw_is_rejected() -> None:
    with pytest.raises(ValueError, match="count=1"):
        CouplingFlow(1, 8)
