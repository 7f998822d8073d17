import math

import pytest
import torch
from torch import Tensor

from model.encoders.shan import SHAN, SHANConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import draw_queries, laid_out
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors


class SHANContract(SequenceEncoderContract):
    config: SHANConfig  # type: ignore[misc]
    reads_time = False

    def test_both_levels_by_their_formulas(self, encoder: SequenceEncoder) -> None:
        batch = laid_out(*draw_queries(9, 4))
        items = vectors(encoder, batch)
        users, attention = encoder.states(batch, items).users, encoder(batch, items).attention
        assert attention is not None
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        for sample, length in enumerate((9, 4)):
            for place in range(length):
                events = list(items[sample, : place + 1].double())
                user, counts = self.read_slowly(weights, events)
                assert_same(users[sample, place].double(), user)
            assert_same(attention[sample, 0, :length].double(), torch.tensor(counts).double())

    def read_slowly(
        self, weights: dict[str, Tensor], events: list[Tensor]
    ) -> tuple[Tensor, list[float]]:
        distant, recent = events[: -self.config.recent], events[-self.config.recent :]
        if not distant:
            counts = shares(weights, "hybrid", recent)
            return weighed(counts, recent), counts
        of_distant = shares(weights, "long_term", distant)
        summary = weighed(of_distant, distant)
        of_summary, *of_recent = shares(weights, "hybrid", [summary, *recent])
        user = of_summary * summary + weighed(of_recent, recent)
        return user, [of_summary * share for share in of_distant] + of_recent


def shares(weights: dict[str, Tensor], level: str, vectors: list[Tensor]) -> list[float]:
    """softmax of u . relu(W x + b)."""
    fits = [
        (weights[f"{level}.weight"] @ vector + weights[f"{level}.bias"]).clamp(min=0)
        for vector in vectors
    ]
    masses = [math.exp(float(weights["wanted"] @ fit)) for fit in fits]
    return [mass / sum(masses) for mass in masses]


def weighed(counts: list[float], vectors: list[Tensor]) -> Tensor:
    return torch.stack([share * vector for share, vector in zip(counts, vectors, strict=True)]).sum(
        0
    )


class TestSHAN(SHANContract):
    config = SHANConfig(dim=16, max_history=40)

    def test_the_order_counts_only_as_far_as_it_makes_events_recent(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SHAN)
        batch = laid_out(draw_queries(9)[0])
        items = vectors(encoder, batch)
        user = encoder(batch, items).user
        within = items[:, [3, 1, 2, 0, 8, 5, 7, 6, 4]]
        across = items[:, [4, 1, 2, 3, 0, 5, 6, 7, 8]]
        assert_same(encoder(batch, within).user, user)
        assert (encoder(batch, across).user - user).abs().max() > 1e-3


class TestLastEventAgainstAllBefore(SHANContract):
    config = SHANConfig(dim=16, recent=1, max_history=40)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_history_no_longer_than_the_recent_events_has_no_long_term(length: int) -> None:
    torch.manual_seed(0)
    encoder = SHANConfig(dim=16).build().eval()
    batch = laid_out(draw_queries(length)[0])
    items = vectors(encoder, batch)
    before = encoder(batch, items).user
    torch.nn.init.normal_(encoder.long_term.weight)
    assert torch.equal(encoder(batch, items).user, before)
