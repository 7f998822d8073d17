"""Division by a running root mean square."""

import pytest
import torch

from model.layers.running_scale import RunningScale


def test_training_vectors_come_out_at_order_one() -> None:
    scale = RunningScale().train()
    for _ in range(50):
        out = scale(0.02 * torch.randn(40, 8))
    assert out.square().mean().sqrt().item() == pytest.approx(1, abs=0.15)
    assert scale.mean_square.sqrt().item() == pytest.approx(0.02, rel=0.05)


def test_relative_lengths_remain() -> None:
    scale = RunningScale().train()
    vectors = torch.randn(6, 8)
    out = scale(vectors)
    ratios = out.norm(dim=-1) / vectors.norm(dim=-1)
    assert torch.allclose(ratios, ratios[0].expand(6))


def test_evaluation_and_division_change_nothing() -> None:
    scale = RunningScale().train()
    scale(torch.randn(9, 4))
    state = {name: tensor.clone() for name, tensor in scale.state_dict().items()}
    scale.divide(torch.randn(9, 4))
    scale.eval()
    one, other = torch.randn(4), torch.randn(4)
    together = scale(torch.stack((one, other)))
    assert torch.equal(together[0], scale(one))
    assert all(torch.equal(tensor, state[name]) for name, tensor in scale.state_dict().items())


def test_vectors_of_zero_stay_finite() -> None:
    scale = RunningScale().train()
    assert torch.equal(scale(torch.zeros(3, 4)), torch.zeros(3, 4))
