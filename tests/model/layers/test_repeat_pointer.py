import pytest
import torch
from torch import Tensor

from model.layers.fourier_basis import phasors
from model.layers.repeat_pointer import RepeatPointer
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig

EVENTS = torch.tensor([[0.0, 2.0, 9.0]], dtype=torch.float64)


def pointed(pointer: RepeatPointer, users: Tensor, contents: Tensor, asked: Tensor) -> Tensor:
    encoding = BochnerNonparametricConfig(frequencies=5).build()
    frequencies, read_out = encoding.frequencies(), encoding.read_out()
    keys = pointer.remember(contents, phasors(EVENTS, frequencies), read_out)
    mass: Tensor = pointer(users, keys, phasors(asked, frequencies), read_out)
    return mass.detach()


def test_the_mass_of_an_event_matches_its_content_and_its_age() -> None:
    pointer = RepeatPointer(dim=6, time_dim=10)
    users, contents = torch.randn(1, 2, 6), torch.randn(1, 3, 6)
    asked = torch.tensor([[9.5, 40.0]], dtype=torch.float64)
    found = pointed(pointer, users, contents, asked)
    encoding = BochnerNonparametricConfig(frequencies=5).build()
    match = pointer.match
    for query in range(2):
        for event in range(3):
            age = encoding(asked[0, query] - EVENTS[0, event])
            key = match.key(contents[0, event]) + match.time_key(age)
            slow = (match.query(users[0, query]) @ key) / 6**0.5 + pointer.bias
            assert found[0, query, event].item() == pytest.approx(slow.item(), abs=1e-5)


def test_the_same_event_weighs_otherwise_at_another_age() -> None:
    pointer = RepeatPointer(dim=6, time_dim=10)
    users = torch.ones(1, 1, 6).expand(1, 2, 6)
    asked = torch.tensor([[10.0, 30.25]], dtype=torch.float64)
    found = pointed(pointer, users, torch.ones(1, 3, 6), asked)
    assert (found[0, 0] - found[0, 1]).abs().min() > 1e-4


def test_the_bias_moves_every_event_alike() -> None:
    pointer = RepeatPointer(dim=6, time_dim=10)
    arguments = (torch.randn(1, 1, 6), torch.randn(1, 3, 6), EVENTS[:, -1:] + 1)
    before = pointed(pointer, *arguments)
    with torch.no_grad():
        pointer.bias.fill_(2.5)
    torch.testing.assert_close(pointed(pointer, *arguments), before + 2.5)
