"""The logits of the repeat pointer."""

import pytest
import torch
from torch import Tensor

from model.layers.fourier_basis import basis
from model.layers.repeat_pointer import RepeatPointer
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig

EVENTS = torch.tensor([[0.0, 2.0, 9.0]], dtype=torch.float64)


def repeat_scores(pointer: RepeatPointer, users: Tensor, contents: Tensor, times: Tensor) -> Tensor:
    encoding = BochnerNonparametricConfig(frequencies=5).build()
    frequencies, projection = encoding.frequencies(), encoding.basis_projection()
    keys = pointer.project_keys(contents, basis(EVENTS, frequencies), projection)
    scores: Tensor = pointer(users, keys, basis(times, frequencies), projection)
    return scores.detach()


def test_scores_depend_on_the_events_content_and_age() -> None:
    pointer = RepeatPointer(dim=6, time_dim=10)
    users, contents = torch.randn(1, 2, 6), torch.randn(1, 3, 6)
    times = torch.tensor([[9.5, 40.0]], dtype=torch.float64)
    found = repeat_scores(pointer, users, contents, times)
    encoding = BochnerNonparametricConfig(frequencies=5).build()
    query_key = pointer.query_key
    for query in range(2):
        for event in range(3):
            age = encoding(times[0, query] - EVENTS[0, event])
            key = query_key.key_proj(contents[0, event]) + query_key.time_key_proj(age)
            expected = (query_key.query_proj(users[0, query]) @ key) / 6**0.5 + pointer.bias
            assert found[0, query, event].item() == pytest.approx(expected.item(), abs=1e-5)


def test_the_score_of_an_event_changes_with_its_age() -> None:
    pointer = RepeatPointer(dim=6, time_dim=10)
    users = torch.ones(1, 1, 6).expand(1, 2, 6)
    times = torch.tensor([[10.0, 30.25]], dtype=torch.float64)
    found = repeat_scores(pointer, users, torch.ones(1, 3, 6), times)
    assert (found[0, 0] - found[0, 1]).abs().min() > 1e-4


def test_the_bias_shifts_all_events_equally() -> None:
    pointer = RepeatPointer(dim=6, time_dim=10)
    arguments = (torch.randn(1, 1, 6), torch.randn(1, 3, 6), EVENTS[:, -1:] + 1)
    before = repeat_scores(pointer, *arguments)
    with torch.no_grad():
        pointer.bias.fill_(2.5)
    torch.testing.assert_close(repeat_scores(pointer, *arguments), before + 2.5)
