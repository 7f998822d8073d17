"""Time-aware attention: masks, weights and the query perceptron."""

import math

import pytest
import torch

from model.layers.fourier_basis import Rotation, basis, scaled_basis
from model.layers.time_aware_attention import AttentionMask, QueryMLP, TimeAwareAttention

DIM, HEADS, LENGTH = 8, 2, 5
NO_ROTATION = Rotation(None)
VISIBLE = torch.tensor([[[True, False, True, True, False]]])
BIAS = torch.linspace(-2, 2, HEADS * LENGTH * LENGTH).view(1, HEADS, LENGTH, LENGTH)
MASKS = {
    "none": AttentionMask(),
    "visible": AttentionMask(visible=VISIBLE),
    "causal": AttentionMask(is_causal=True),
    "biased": AttentionMask(bias=BIAS),
    "visible_biased": AttentionMask(visible=VISIBLE, bias=BIAS),
    "causal_biased": AttentionMask(is_causal=True, bias=BIAS),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("frequencies", [0, 3])
def test_weights_then_values_equal_the_fused_call(mask: AttentionMask, frequencies: int) -> None:
    spread = torch.linspace(0.1, 3, frequencies, dtype=torch.float64)
    projection = scaled_basis(spread)
    attention = TimeAwareAttention(dim=DIM, heads=HEADS, time_dim=2 * frequencies)
    states, times = torch.randn(2, LENGTH, DIM), torch.rand(2, LENGTH, dtype=torch.float64)
    rotation = attention.query_key.build_rotation(basis(times + 2, spread))
    key_values = attention.project_kv(states, basis(times, spread), projection)
    mask = AttentionMask(*(part if isinstance(part, bool) else _twice(part) for part in mask))
    weights = attention.attention_weights(states, key_values, rotation, projection, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, LENGTH))
    torch.testing.assert_close(
        attention.apply_weights(weights, key_values, rotation, projection),
        attention.attend(states, key_values, rotation, projection, mask),
    )


def test_a_bias_multiplies_weights_by_its_exponential() -> None:
    none = torch.empty(0, dtype=torch.float64)
    attention = TimeAwareAttention(dim=DIM, heads=HEADS, time_dim=0)
    states = torch.randn(1, LENGTH, DIM)
    no_basis = basis(torch.zeros(1, LENGTH, dtype=torch.float64), none)
    projection = scaled_basis(none)
    key_values = attention.project_kv(states, no_basis, projection)
    plain = attention.attention_weights(
        states, key_values, NO_ROTATION, projection, AttentionMask(is_causal=True)
    )
    biased = attention.attention_weights(
        states, key_values, NO_ROTATION, projection, AttentionMask(is_causal=True, bias=BIAS)
    )
    expected = plain * BIAS.exp()
    torch.testing.assert_close(biased, expected / expected.sum(-1, keepdim=True))


def test_the_query_mlp_follows_its_formula() -> None:
    perceptron = QueryMLP(dim=3)
    inputs = torch.randn(6)
    first, second = perceptron.linear1, perceptron.linear2
    expected = second.bias
    for number in range(3):
        hidden = first.weight[number] @ inputs + first.bias[number]
        if hidden > 0:
            expected = expected + hidden * second.weight[:, number]
    torch.testing.assert_close(perceptron(inputs), expected)


def _twice(part: torch.Tensor | None) -> torch.Tensor | None:
    return None if part is None else part.expand(2, *part.shape[1:])


def test_damping_over_decades_equals_its_exponential() -> None:
    none = torch.empty(0, dtype=torch.float64)
    projection = scaled_basis(none)
    plain = TimeAwareAttention(dim=DIM, heads=HEADS, time_dim=0)
    damped = TimeAwareAttention(dim=DIM, heads=HEADS, time_dim=0, damping=True)
    damped.load_state_dict(plain.state_dict(), strict=False)
    assert damped.damping is not None
    half_lives = torch.tensor([1.0, 3650.0], dtype=torch.float64)
    with torch.no_grad():
        damped.damping.log_rates.copy_((math.log(2) / half_lives).log())
    days = torch.tensor([[0.0, 5_000.0, 14_000.0, 14_599.0, 14_600.0]], dtype=torch.float64)
    states = torch.randn(1, LENGTH, DIM)
    no_basis = basis(days, none)
    weights, expected = (
        attention.attention_weights(
            states,
            attention.project_kv(states, no_basis, projection, days),
            NO_ROTATION,
            projection,
        )
        for attention in (damped, plain)
    )
    decay = torch.exp2((days - days.max()) / half_lives[:, None]).unsqueeze(1)
    expected = expected.double() * decay
    torch.testing.assert_close(
        weights.double(), expected / expected.sum(-1, keepdim=True), rtol=2e-3, atol=1e-7
    )
