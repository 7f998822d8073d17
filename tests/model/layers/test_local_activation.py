"""DIN's activation unit against its formula."""

import torch
from torch import Tensor, nn

from model.layers.local_activation import LocalActivation

DIM, LENGTH, CANDIDATES, QUERIES = 6, 5, 3, 2


def prelu(learned: nn.PReLU, values: Tensor) -> Tensor:
    return torch.where(values > 0, values, learned.weight * values)


def test_it_equals_a_perceptron_of_the_concatenated_input() -> None:
    unit = LocalActivation(dim=DIM, hidden=(7, 4), bias=True).double()
    candidates = torch.randn(QUERIES, CANDIDATES, DIM, dtype=torch.float64)
    events = torch.randn(QUERIES, LENGTH, DIM, dtype=torch.float64)
    found = unit(candidates, events, unit.project_events(events))
    assert found.shape == (QUERIES, CANDIDATES, LENGTH)
    for query in range(QUERIES):
        for candidate in range(CANDIDATES):
            for position in range(LENGTH):
                q, k = candidates[query, candidate], events[query, position]
                first = prelu(unit.activation1, unit.linear1(torch.cat((q, k, q - k, q * k))))
                expected = unit.out_proj(prelu(unit.activation2, unit.linear2(first)))
                torch.testing.assert_close(
                    found[query, candidate, position], expected.squeeze(), rtol=0, atol=1e-12
                )


def test_gradients_equal_those_of_the_concatenated_input() -> None:
    unit = LocalActivation(dim=DIM, hidden=(7, 4), bias=False).double()
    candidates = torch.randn(1, CANDIDATES, DIM, dtype=torch.float64, requires_grad=True)
    events = torch.randn(1, LENGTH, DIM, dtype=torch.float64, requires_grad=True)
    found = unit(candidates, events, unit.project_events(events))
    q, k = torch.broadcast_tensors(candidates.unsqueeze(2), events.unsqueeze(1))
    first = prelu(unit.activation1, unit.linear1(torch.cat((q, k, q - k, q * k), dim=-1)))
    expected = unit.out_proj(prelu(unit.activation2, unit.linear2(first))).squeeze(-1)
    direction = torch.randn_like(found)
    inputs = [candidates, events, *unit.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((found * direction).sum(), inputs),
        torch.autograd.grad((expected * direction).sum(), inputs),
    )


def test_the_output_bias_is_optional() -> None:
    assert LocalActivation(dim=DIM, hidden=(7, 4), bias=True).out_proj.bias is not None
    assert LocalActivation(dim=DIM, hidden=(7, 4), bias=False).out_proj.bias is None
