import torch

from model.layers.local_activation import LocalActivation

DIM, LENGTH, CANDIDATES, QUESTIONS = 6, 5, 3, 2


def test_it_is_a_network_over_the_candidate_the_event_and_how_they_differ() -> None:
    unit = LocalActivation(dim=DIM, hidden=(7, 4), bias=True).double()
    candidates = torch.randn(QUESTIONS, CANDIDATES, DIM, dtype=torch.float64)
    events = torch.randn(QUESTIONS, LENGTH, DIM, dtype=torch.float64)
    found = unit(candidates, events, unit.remember(events))
    assert found.shape == (QUESTIONS, CANDIDATES, LENGTH)
    for question in range(QUESTIONS):
        for candidate in range(CANDIDATES):
            for place in range(LENGTH):
                q, k = candidates[question, candidate], events[question, place]
                first = torch.sigmoid(unit.first(torch.cat((q, k, q - k, q * k))))
                expected = unit.last(torch.sigmoid(unit.second(first)))
                torch.testing.assert_close(
                    found[question, candidate, place], expected.squeeze(), rtol=0, atol=1e-12
                )


def test_gradients_are_those_of_the_whole_input() -> None:
    unit = LocalActivation(dim=DIM, hidden=(7, 4), bias=False).double()
    candidates = torch.randn(1, CANDIDATES, DIM, dtype=torch.float64, requires_grad=True)
    events = torch.randn(1, LENGTH, DIM, dtype=torch.float64, requires_grad=True)
    found = unit(candidates, events, unit.remember(events))
    q, k = torch.broadcast_tensors(candidates.unsqueeze(2), events.unsqueeze(1))
    first = torch.sigmoid(unit.first(torch.cat((q, k, q - k, q * k), dim=-1)))
    expected = unit.last(torch.sigmoid(unit.second(first))).squeeze(-1)
    direction = torch.randn_like(found)
    wanted = [candidates, events, *unit.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((found * direction).sum(), wanted),
        torch.autograd.grad((expected * direction).sum(), wanted),
    )


def test_only_a_bias_that_counts_is_learned() -> None:
    assert LocalActivation(dim=DIM, hidden=(7, 4), bias=True).last.bias is not None
    assert LocalActivation(dim=DIM, hidden=(7, 4), bias=False).last.bias is None
