import math

import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.interfaces import Intensities
from model.layers.item_groups import ItemGroups
from model.layers.self_modulating import (
    Modulated,
    ModulationConfig,
    ModulationView,
    SelfModulation,
)

DIM, HEADS, GROUPS, LENGTH = 6, 2, 3, 4
YEAR = 365.0
MARKS = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0], [0, 0, 1]]).unsqueeze(0)
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


def view(intervals: Tensor, marks: Tensor = MARKS) -> ModulationView:
    return ModulationView(marks, intervals, torch.ones_like(intervals, dtype=torch.bool))


def causal_weights(length: int = LENGTH) -> Tensor:
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    return torch.randn(1, HEADS, length, length).masked_fill(~seen, -torch.inf).softmax(-1)


def modulate(
    modulation: SelfModulation, weights: Tensor, states: Tensor, asked: ModulationView
) -> Modulated:
    modulated: Modulated = modulation(weights, modulation.remember(states), asked)
    return modulated


def slow_intensity(
    modulation: SelfModulation, weights: Tensor, states: Tensor, interval: float
) -> list[float]:
    """lambda_k of one head's query, number by number; `weights` over events, `states` per event."""
    table = {name: tensor.double() for name, tensor in modulation.state_dict().items()}
    width = DIM // HEADS
    found = []
    for group in range(GROUPS):
        rows = slice(group * width, (group + 1) * width)
        history = sum(
            weight * state for weight, state in zip(weights.double(), states.double(), strict=True)
        )
        drive = table["base_rate"][group].item() if "base_rate" in table else 0.0
        within = table["endogenous.weight"][rows] @ history + table["endogenous.bias"][rows]
        read = interval if modulation.interval == "days" else math.log1p(interval)
        within = within + table["exogenous"][group] * read
        for place in range(width):
            dynamics = 1 / (1 + math.exp(-within[place].item()))
            drive += table["direction"][group, place].item() * dynamics
        scale = math.exp(table["log_scale"][group].item())
        found.append(scale * math.log1p(math.exp(drive / scale)))
    return found


@pytest.mark.parametrize("interval", ["log", "days"])
@pytest.mark.parametrize("base_rate", [False, True])
def test_the_formulas_number_by_number(interval: str, base_rate: bool) -> None:
    modulation = build(interval=interval, base_rate=base_rate)
    weights, states = causal_weights(), torch.randn(1, LENGTH, DIM)
    waits = [0.0, 0.25, 3.0, 20.0]
    found = modulate(modulation, weights, states, view(days(*waits)))
    values = modulation.value(states)[0].view(LENGTH, HEADS, -1)
    for head in range(HEADS):
        for query, wait in enumerate(waits):
            expected = slow_intensity(modulation, weights[0, head, query], values[:, head], wait)
            assert found.intensity[0, head, query].tolist() == pytest.approx(expected, abs=1e-5)
            for event, groups in enumerate(([0], [1, 2], None, [2])):
                times = 1.0 if groups is None else sum(expected[group] for group in groups)
                plain = weights[0, head, query, event].item()
                assert found.weights[0, head, query, event].item() == pytest.approx(
                    plain * times, abs=1e-5
                )


def test_what_is_not_attended_to_stays_so() -> None:
    weights = causal_weights()
    found = modulate(build(), weights, torch.randn(1, LENGTH, DIM), view(days(1, 2, 3, 4)))
    assert (found.weights[weights == 0] == 0).all()


def test_a_history_of_items_without_a_group_is_read_as_by_plain_attention() -> None:
    weights = causal_weights()
    unmarked = view(days(1, 2, 3, 4), torch.zeros_like(MARKS))
    found = modulate(build(), weights, torch.randn(1, LENGTH, DIM), unmarked)
    assert torch.equal(found.weights, weights)


def test_the_last_query_alone_is_modulated_as_among_all() -> None:
    modulation, states, weights = build(), torch.randn(1, LENGTH, DIM), causal_weights()
    whole = view(days(0, 2, 0.5, 40))
    among_all = modulate(modulation, weights, states, whole)
    alone = modulate(modulation, weights[:, :, -1:], states, whole.at(torch.tensor([LENGTH - 1])))
    torch.testing.assert_close(alone.weights, among_all.weights[:, :, -1:])
    torch.testing.assert_close(alone.intensity, among_all.intensity[:, :, -1:])


def test_candidates_with_weights_of_their_own_are_queries_like_any_other() -> None:
    modulation = ModulationConfig(groups=GROUPS).build(dim=DIM, heads=1)
    weights, states = torch.rand(1, 1, 5, LENGTH), torch.randn(1, LENGTH, DIM)
    together = modulate(modulation, weights, states, view(days(2).expand(1, 5)))
    for candidate in range(5):
        alone = modulate(modulation, weights[:, :, candidate, None], states, view(days(2)))
        torch.testing.assert_close(alone.weights, together.weights[:, :, candidate, None])


def test_intensities_vary_with_the_interval_while_the_history_stands_still() -> None:
    modulation, states, weights = build(), torch.randn(1, LENGTH, DIM), causal_weights()
    found = modulate(modulation, weights, states, view(days(0, 2, 0.5, 40)))
    assert isinstance(found.intensities, Intensities)
    torch.testing.assert_close(found.intensities.at(days(0, 2, 0.5, 40)), found.intensity)
    other = modulate(modulation, weights, states, view(days(7, 7, 7, 7)))
    torch.testing.assert_close(found.intensities.at(days(7, 7, 7, 7)), other.intensity)


def test_not_told_is_another_answer_than_asked_at_once() -> None:
    modulation, states, weights = build(), torch.randn(1, LENGTH, DIM), causal_weights()
    at_once = view(days(0, 0, 0, 0))
    not_told = at_once._replace(given=~at_once.given)
    told = modulate(modulation, weights, states, at_once)
    untold = modulate(modulation, weights, states, not_told)
    assert (told.intensity - untold.intensity).abs().min() > 1e-4
    torch.testing.assert_close(
        untold.intensities.at(days(3, 3, 3, 3)), told.intensities.at(days(3, 3, 3, 3))
    )


@pytest.mark.parametrize("interval", ["log", "days"])
@pytest.mark.parametrize("push", [-300.0, 0.0, 300.0])
def test_intensities_have_logarithms_and_gradients_from_at_once_to_thirty_years(
    interval: str, push: float
) -> None:
    modulation = build(interval=interval, base_rate=True)
    assert modulation.base_rate is not None
    with torch.no_grad():
        modulation.base_rate.fill_(push)
    states = torch.randn(1, LENGTH, DIM, requires_grad=True)
    waits = days(0, 30 * YEAR, 1e-9, 5).requires_grad_()
    found = modulate(modulation, causal_weights(), states, view(waits))
    said = found.intensities.at(waits)
    assert (said > 0).all()
    (said.log().sum() + found.weights.sum()).backward()  # type: ignore[no-untyped-call]
    for tensor in (states, waits, *modulation.parameters()):
        if tensor is not modulation.withheld:
            assert tensor.grad is not None
            assert tensor.grad.isfinite().all()


def test_a_view_of_a_batch_has_the_marks_of_its_items_and_the_intervals_to_their_queries() -> None:
    catalogue = ItemGroups(items=3, groups=3)
    catalogue.tell(torch.eye(4)[:, 1:])
    batch = SequenceBatch(
        rows=torch.tensor([[1, 3], [2, 0]]),
        actions=torch.zeros(2, 2, dtype=torch.int64),
        times=torch.tensor([[0.0, 2], [0, 77]], dtype=torch.float64),
        query_times=torch.tensor([[2.0, 9], [1.5, 0]], dtype=torch.float64),
        query_given=torch.tensor([[True, False], [True, True]]),
        lengths=torch.tensor([2, 1]),
    )
    whole = ModulationView.of(batch, catalogue)
    assert whole.marks[0].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert whole.marks[1, 1].tolist() == [0, 0, 0]
    last = whole.at(batch.lengths - 1)
    assert last.intervals.tolist() == [[7], [1.5]]
    assert last.given.tolist() == [[False], [True]]


def test_heads_that_do_not_divide_the_width_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="dim=6, heads=4"):
        ModulationConfig().build(dim=6, heads=4)
