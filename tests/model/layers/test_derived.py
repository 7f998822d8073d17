"""Tensors derived from parameters: kept in a frozen module, and forgotten when these change."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from model.encoders.self_attention import SelfAttentionConfig
from model.layers.composed_maps import TimeProjection
from model.layers.derived import DerivingModule, freeze
from model.layers.fourier_basis import BasisProjection
from tests.contracts.histories import draw_queries
from tests.contracts.operations import CountOperations
from tests.contracts.sequence_encoder import encode


class Doubled(DerivingModule):
    """Derives twice its parameter, and counts how often."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.computed = 0

    def forward(self) -> Tensor:
        return self.derive("doubled", self._double)

    def _double(self) -> Tensor:
        self.computed += 1
        return 2 * self.weight


CHANGES: dict[str, Callable[[Doubled], object]] = {
    "training": lambda module: module.train(),
    "moving": lambda module: module.to(torch.float64),
    "loading": lambda module: module.load_state_dict({"weight": torch.full((1,), 3.0)}),
}


def test_a_module_that_may_change_derives_at_every_pass() -> None:
    module = Doubled().eval()
    module()
    with torch.no_grad():
        module.weight.fill_(5)
    assert module().item() == 10
    assert module.computed == 2


def test_a_frozen_module_derives_once() -> None:
    module = Doubled().eval()
    freeze(module)
    with torch.inference_mode():
        module()
    assert not module().is_inference()
    assert module.computed == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_forgets_what_was_derived(change: Callable[[Doubled], object]) -> None:
    module = Doubled().eval()
    freeze(module)
    module()
    change(module)
    assert module().item() == 2 * module.weight.item()
    assert module.computed == 2


def test_a_module_that_trains_is_not_frozen() -> None:
    with pytest.raises(ValueError, match="eval"):
        freeze(Doubled())


def test_frozen_attention_composes_its_maps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    encoder = SelfAttentionConfig(damping=True, query="mlp").build().eval()
    queries = draw_queries(3, 5)
    expected = encode(encoder, *queries)
    composed = 0
    compose = TimeProjection.compose

    def count(self: TimeProjection, projection: BasisProjection) -> Tensor:
        nonlocal composed
        composed += 1
        return compose(self, projection)

    monkeypatch.setattr(TimeProjection, "compose", count)
    freeze(encoder)
    encode(encoder, *queries)
    first = composed
    again = encode(encoder, *queries)
    assert first > 0
    assert composed == first
    torch.testing.assert_close(again.user, expected.user)


def test_a_frozen_history_takes_few_operations() -> None:
    # 314 before maps were composed and kept, and masks left out for a single history; now 174.
    encoder = SelfAttentionConfig().build().eval()
    freeze(encoder)
    (query,) = draw_queries(9)
    encode(encoder, query)
    with CountOperations() as operations:
        encode(encoder, query)
    assert operations.number <= 180
