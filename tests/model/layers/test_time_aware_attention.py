import pytest
import torch

from model.layers.fourier_basis import phasors, scaled_basis
from model.layers.query_mlp import QueryMLP
from model.layers.time_aware_attention import Sight, TimeAwareAttention

DIM, HEADS, LENGTH = 8, 2, 5
SEEN = torch.tensor([[[True, False, True, True, False]]])
BIAS = torch.linspace(-2, 2, HEADS * LENGTH * LENGTH).view(1, HEADS, LENGTH, LENGTH)
SIGHTS = {
    "everything": Sight(),
    "visible": Sight(visible=SEEN),
    "causal": Sight(is_causal=True),
    "biased": Sight(bias=BIAS),
    "visible_biased": Sight(visible=SEEN, bias=BIAS),
    "causal_biased": Sight(is_causal=True, bias=BIAS),
}


@pytest.mark.parametrize("sight", SIGHTS.values(), ids=SIGHTS)
@pytest.mark.parametrize("frequencies", [0, 3])
def test_weighing_and_then_reading_is_what_the_fused_call_answers(
    sight: Sight, frequencies: int
) -> None:
    spread = torch.linspace(0.1, 3, frequencies, dtype=torch.float64)
    read_out = scaled_basis(spread)
    attention = TimeAwareAttention(dim=DIM, heads=HEADS, time_dim=2 * frequencies)
    states, times = torch.randn(2, LENGTH, DIM), torch.rand(2, LENGTH, dtype=torch.float64)
    asked = phasors(times + 2, spread)
    memory = attention.remember(states, phasors(times, spread), read_out)
    sight = Sight(*(part if isinstance(part, bool) else _twice(part) for part in sight))
    weights = attention.weigh(states, memory, asked, read_out, sight)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, LENGTH))
    torch.testing.assert_close(
        attention.read_weighed(weights, memory, asked, read_out),
        attention.read(states, memory, asked, read_out, sight),
    )


def test_a_bias_multiplies_weights_by_its_exponential() -> None:
    none = torch.empty(0, dtype=torch.float64)
    attention = TimeAwareAttention(dim=DIM, heads=HEADS, time_dim=0)
    states = torch.randn(1, LENGTH, DIM)
    nowhen, read_out = (
        phasors(torch.zeros(1, LENGTH, dtype=torch.float64), none),
        scaled_basis(none),
    )
    memory = attention.remember(states, nowhen, read_out)
    plain = attention.weigh(states, memory, nowhen, read_out, Sight(is_causal=True))
    biased = attention.weigh(states, memory, nowhen, read_out, Sight(is_causal=True, bias=BIAS))
    expected = plain * BIAS.exp()
    torch.testing.assert_close(biased, expected / expected.sum(-1, keepdim=True))


def test_a_perceptron_of_state_and_interval_makes_queries() -> None:
    perceptron = QueryMLP(dim=3)
    known = torch.randn(6)
    inner, outer = perceptron.inner, perceptron.outer
    expected = outer.bias
    for number in range(3):
        risen = inner.weight[number] @ known + inner.bias[number]
        if risen > 0:
            expected = expected + risen * outer.weight[:, number]
    torch.testing.assert_close(perceptron(known), expected)


def _twice(part: torch.Tensor | None) -> torch.Tensor | None:
    return None if part is None else part.expand(2, *part.shape[1:])
