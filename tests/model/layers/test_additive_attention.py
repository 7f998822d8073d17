"""Additive attention: formula, gradient and mask."""

import torch

from model.layers.additive_attention import QUERY_CHUNK, AdditiveAttention, AdditiveScores


def test_scores_and_their_gradients_are_those_of_the_formula() -> None:
    inputs = [torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3, 4), (2, 5, 4), (4,))]
    queries, keys, weight = (tensor.requires_grad_() for tensor in inputs)
    expected = torch.tanh(queries[:, :, None] + keys[:, None]) @ weight
    torch.testing.assert_close(AdditiveScores.apply(queries, keys, weight), expected)
    assert torch.autograd.gradcheck(AdditiveScores.apply, (queries, keys, weight))


def test_every_position_attends_to_the_states_up_to_its_own() -> None:
    attention, length = AdditiveAttention(hidden=6), 2 * QUERY_CHUNK + 3
    states = torch.randn(2, length, 6)
    together = attention(states)
    for position in range(length):
        prefix = states[:, : position + 1]
        all_visible = torch.ones(2, 1, position + 1, dtype=torch.bool)
        alone, weights = attention.attend(prefix[:, -1:], prefix, all_visible)
        torch.testing.assert_close(together[:, position], alone[:, 0])
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1))


def test_masked_states_have_a_weight_of_zero() -> None:
    attention, states = AdditiveAttention(hidden=6), torch.randn(1, 4, 6)
    visible = torch.tensor([[[True, False, True, False]]])
    context, weights = attention.attend(states[:, :1], states, visible)
    assert (weights[~visible] == 0).all()
    torch.testing.assert_close(
        context, attention.attend(states[:, :1], states[:, ::2], visible[..., ::2])[0]
    )
