"""Self-modulation against its formulas."""

import math

import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.interfaces import Intensities
from model.layers.item_groups import ItemGroups
from model.layers.self_modulation import (
    ModulationConfig,
    ModulationInputs,
    ModulationOutput,
    SelfModulation,
)

DIM, HEADS, GROUPS, LENGTH = 6, 2, 3, 4
YEAR = 365.0
MEMBERSHIP = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]]).unsqueeze(0)
"""One event of one group, one of two, one of none."""


def build(**changed: object) -> SelfModulation:
    modulation = ModulationConfig.model_validate({"groups": GROUPS} | changed).build(
        dim=DIM, heads=HEADS
    )
    with torch.no_grad():
        for parameter in modulation.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return modulation


def days(*intervals: float) -> Tensor:
    return torch.tensor([intervals], dtype=torch.float64)


def inputs(intervals: Tensor, membership: Tensor = MEMBERSHIP) -> ModulationInputs:
    return ModulationInputs(membership, intervals, torch.ones_like(intervals, dtype=torch.bool))


def causal_weights(length: int = LENGTH) -> Tensor:
    visible = torch.ones(length, length, dtype=torch.bool).tril()
    return torch.randn(1, HEADS, length, length).masked_fill(~visible, -torch.inf).softmax(-1)


def modulate(
    modulation: SelfModulation, weights: Tensor, states: Tensor, queries: ModulationInputs
) -> ModulationOutput:
    modulated: ModulationOutput = modulation(weights, modulation.project_values(states), queries)
    return modulated


def reference_intensity(
    modulation: SelfModulation, weights: Tensor, states: Tensor, interval: float
) -> list[float]:
    """Compute lambda_k of one query and head in scalars, from weights and states per event."""
    table = {name: tensor.double() for name, tensor in modulation.state_dict().items()}
    width = DIM // HEADS
    found = []
    for group in range(GROUPS):
        rows = slice(group * width, (group + 1) * width)
        context = sum(
            weight * state for weight, state in zip(weights.double(), states.double(), strict=True)
        )
        drive = table["base_rate"][group].item() if "base_rate" in table else 0.0
        preactivation = table["endogenous.weight"][rows] @ context + table["endogenous.bias"][rows]
        scaled = interval if modulation.interval == "days" else math.log1p(interval)
        preactivation = preactivation + table["exogenous"][group] * scaled
        for index in range(width):
            dynamics = 1 / (1 + math.exp(-preactivation[index].item()))
            drive += table["direction"][group, index].item() * dynamics
        scale = math.exp(table["log_scale"][group].item())
        found.append(scale * math.log1p(math.exp(drive / scale)))
    return found


@pytest.mark.parametrize("interval", ["log", "days"])
@pytest.mark.parametrize("base_rate", [False, True])
def test_intensities_and_weights_follow_the_formulas(interval: str, base_rate: bool) -> None:
    modulation = build(interval=interval, base_rate=base_rate)
    weights, states = causal_weights(), torch.randn(1, LENGTH, DIM)
    intervals = [0.0, 0.25, 3.0, 20.0]
    found = modulate(modulation, weights, states, inputs(days(*intervals)))
    values = modulation.value_proj(states)[0].view(LENGTH, HEADS, -1)
    for head in range(HEADS):
        for query, interval_days in enumerate(intervals):
            expected = reference_intensity(
                modulation, weights[0, head, query], values[:, head], interval_days
            )
            assert found.intensity[0, head, query].tolist() == pytest.approx(expected, abs=1e-5)
            for event, groups in enumerate(([0], [1, 2], None, [2])):
                factor = 1.0 if groups is None else sum(expected[group] for group in groups)
                unmodulated = weights[0, head, query, event].item()
                assert found.weights[0, head, query, event].item() == pytest.approx(
                    unmodulated * factor, abs=1e-5
                )


def test_masked_events_keep_a_weight_of_zero() -> None:
    weights = causal_weights()
    found = modulate(build(), weights, torch.randn(1, LENGTH, DIM), inputs(days(1, 2, 3, 4)))
    assert (found.weights[weights == 0] == 0).all()


def test_items_without_a_group_keep_their_attention_weights() -> None:
    weights = causal_weights()
    ungrouped = inputs(days(1, 2, 3, 4), torch.zeros_like(MEMBERSHIP))
    found = modulate(build(), weights, torch.randn(1, LENGTH, DIM), ungrouped)
    assert torch.equal(found.weights, weights)


def test_the_last_query_alone_equals_the_same_among_all() -> None:
    modulation, states, weights = build(), torch.randn(1, LENGTH, DIM), causal_weights()
    whole = inputs(days(0, 2, 0.5, 40))
    among_all = modulate(modulation, weights, states, whole)
    alone = modulate(
        modulation, weights[:, :, -1:], states, whole.select(torch.tensor([LENGTH - 1]))
    )
    torch.testing.assert_close(alone.weights, among_all.weights[:, :, -1:])
    torch.testing.assert_close(alone.intensity, among_all.intensity[:, :, -1:])


def test_candidates_are_modulated_as_separate_queries() -> None:
    modulation = ModulationConfig(groups=GROUPS).build(dim=DIM, heads=1)
    weights, states = torch.rand(1, 1, 5, LENGTH), torch.randn(1, LENGTH, DIM)
    together = modulate(modulation, weights, states, inputs(days(2).expand(1, 5)))
    for candidate in range(5):
        alone = modulate(modulation, weights[:, :, candidate, None], states, inputs(days(2)))
        torch.testing.assert_close(alone.weights, together.weights[:, :, candidate, None])


def test_intensities_vary_with_the_interval_at_a_fixed_context() -> None:
    modulation, states, weights = build(), torch.randn(1, LENGTH, DIM), causal_weights()
    found = modulate(modulation, weights, states, inputs(days(0, 2, 0.5, 40)))
    assert isinstance(found.intensities, Intensities)
    torch.testing.assert_close(found.intensities.evaluate(days(0, 2, 0.5, 40)), found.intensity)
    other = modulate(modulation, weights, states, inputs(days(7, 7, 7, 7)))
    torch.testing.assert_close(found.intensities.evaluate(days(7, 7, 7, 7)), other.intensity)


def test_a_withheld_interval_differs_from_an_interval_of_zero() -> None:
    modulation, states, weights = build(), torch.randn(1, LENGTH, DIM), causal_weights()
    zero = inputs(days(0, 0, 0, 0))
    withheld = zero._replace(given=~zero.given)
    at_zero = modulate(modulation, weights, states, zero)
    without = modulate(modulation, weights, states, withheld)
    assert (at_zero.intensity - without.intensity).abs().min() > 1e-4
    torch.testing.assert_close(
        without.intensities.evaluate(days(3, 3, 3, 3)),
        at_zero.intensities.evaluate(days(3, 3, 3, 3)),
    )


@pytest.mark.parametrize("interval", ["log", "days"])
@pytest.mark.parametrize("base_rate", [-300.0, 0.0, 300.0])
def test_intensities_and_gradients_are_finite_up_to_30_years(
    interval: str, base_rate: float
) -> None:
    modulation = build(interval=interval, base_rate=True)
    assert modulation.base_rate is not None
    with torch.no_grad():
        modulation.base_rate.fill_(base_rate)
    states = torch.randn(1, LENGTH, DIM, requires_grad=True)
    intervals = days(0, 30 * YEAR, 1e-9, 5).requires_grad_()
    found = modulate(modulation, causal_weights(), states, inputs(intervals))
    intensities = found.intensities.evaluate(intervals)
    assert (intensities > 0).all()
    (intensities.log().sum() + found.weights.sum()).backward()  # type: ignore[no-untyped-call]
    for tensor in (states, intervals, *modulation.parameters()):
        if tensor is not modulation.withheld:
            assert tensor.grad is not None
            assert tensor.grad.isfinite().all()


def test_inputs_of_a_batch_have_membership_and_query_intervals() -> None:
    item_groups = ItemGroups(items=3, groups=3)
    item_groups.set_membership(torch.eye(4)[:, 1:])
    batch = SequenceBatch(
        rows=torch.tensor([[1, 3], [2, 0]]),
        actions=torch.zeros(2, 2, dtype=torch.int64),
        times=torch.tensor([[0.0, 2], [0, 77]], dtype=torch.float64),
        query_times=torch.tensor([[2.0, 9], [1.5, 0]], dtype=torch.float64),
        query_given=torch.tensor([[True, False], [True, True]]),
        lengths=torch.tensor([2, 1]),
        origins=torch.tensor([0, 0]),
        count_tables=torch.tensor([0, 0]),
    )
    whole = ModulationInputs.from_batch(batch, item_groups)
    assert whole.membership[0].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert whole.membership[1, 1].tolist() == [0, 0, 0]
    last = whole.select(batch.lengths - 1)
    assert last.intervals.tolist() == [[7], [1.5]]
    assert last.given.tolist() == [[False], [True]]


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="dim=6, heads=4"):
        ModulationConfig().build(dim=6, heads=4)
