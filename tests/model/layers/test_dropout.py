import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from model.layers.dropout import Dropout

PROBABILITIES = [0.05, 0.2, 0.5, 0.9]


def drop(probability: float, *shape: int, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    dropped: Tensor = Dropout(probability).train()(torch.ones(shape))
    return dropped


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_the_given_share_is_dropped_and_the_mean_is_kept(probability: float) -> None:
    dropped = drop(probability, 500, 500)
    deviation = (probability * (1 - probability) / dropped.numel()) ** 0.5
    assert float((dropped == 0).double().mean()) == pytest.approx(probability, abs=5 * deviation)
    kept = dropped[dropped > 0].unique()
    assert len(kept) == 1
    assert kept.item() == pytest.approx(1 / (1 - probability), rel=1e-3)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (7, 2, 3)])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    assert drop(0.5, *shape).shape == shape


def test_a_seed_determines_what_is_dropped() -> None:
    assert torch.equal(drop(0.5, 100, seed=1), drop(0.5, 100, seed=1))
    assert not torch.equal(drop(0.5, 100, seed=1), drop(0.5, 100, seed=2))


def test_two_calls_drop_different_elements() -> None:
    torch.manual_seed(0)
    dropout, ones = Dropout(0.5).train(), torch.ones(100)
    assert not torch.equal(dropout(ones), dropout(ones))


def test_neighbouring_elements_are_dropped_independently() -> None:
    is_dropped = (drop(0.5, 1_000_000) == 0).double() - 0.5
    for distance in range(1, 9):
        correlation = 4 * (is_dropped[distance:] * is_dropped[:-distance]).mean()
        assert abs(float(correlation)) < 0.005


@pytest.mark.parametrize("dropout", [Dropout(0.5).eval(), Dropout(0.0).train()])
def test_nothing_is_dropped_in_evaluation_or_at_probability_zero(dropout: Dropout) -> None:
    states = torch.randn(10)
    assert torch.equal(dropout(states), states)


def test_gradients_pass_through_what_is_kept() -> None:
    torch.manual_seed(0)
    states = torch.ones(100, requires_grad=True)
    dropped = Dropout(0.5).train()(states)
    (gradient,) = torch.autograd.grad(dropped.sum(), states)
    assert torch.equal(gradient, dropped.detach())


class DrawnElements(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts elements that PyTorch draws."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in {"bernoulli_", "native_dropout", "rand", "randint"}:
            self.count += made.numel()
        return made


def test_pytorch_draws_a_seed_and_not_every_element() -> None:
    with DrawnElements() as drawn:  # type: ignore[no-untyped-call]
        drop(0.5, 1_000)
    assert drawn.count == 1
