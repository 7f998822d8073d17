"""Additive attention against its formula, its gradient, and what it may look at."""

import torch

from model.layers.additive_attention import QUERIES_AT_ONCE, AdditiveAttention, AdditiveScores


def test_scores_and_their_gradients_are_those_of_the_formula() -> None:
    inputs = [torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3, 4), (2, 5, 4), (4,))]
    asking, past, score = (tensor.requires_grad_() for tensor in inputs)
    expected = torch.tanh(asking[:, :, None] + past[:, None]) @ score
    torch.testing.assert_close(AdditiveScores.apply(asking, past, score), expected)
    assert torch.autograd.gradcheck(AdditiveScores.apply, (asking, past, score))


def test_every_position_looks_back_at_the_states_up_to_its_own() -> None:
    attention, length = AdditiveAttention(hidden=6), 2 * QUERIES_AT_ONCE + 3
    states = torch.randn(2, length, 6)
    together = attention(states)
    for place in range(length):
        prefix = states[:, : place + 1]
        everything = torch.ones(2, 1, place + 1, dtype=torch.bool)
        alone, weights = attention.read(prefix[:, -1:], prefix, everything)
        torch.testing.assert_close(together[:, place], alone[:, 0])
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1))


def test_what_may_not_be_seen_weighs_nothing() -> None:
    attention, states = AdditiveAttention(hidden=6), torch.randn(1, 4, 6)
    visible = torch.tensor([[[True, False, True, False]]])
    taken, weights = attention.read(states[:, :1], states, visible)
    assert (weights[~visible] == 0).all()
    torch.testing.assert_close(
        taken, attention.read(states[:, :1], states[:, ::2], visible[..., ::2])[0]
    )
