"""SHAN against its formulas."""

import math

import pytest
import torch
from torch import Tensor

from model.encoders.shan import SHAN, SHANConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, vectors


class SHANContract(SequenceEncoderContract):
    config: SHANConfig  # type: ignore[misc]
    uses_time = False

    def test_both_levels_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(*draw_queries(9, 4))
        items = vectors(encoder, batch)
        users, attention = (
            encoder.encode_positions(batch, items).users,
            encoder(batch, items).attention,
        )
        assert attention is not None
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        for sample, length in enumerate((9, 4)):
            for position in range(length):
                events = list(items[sample, : position + 1].double())
                user, weights_of_events = self.reference_outputs(weights, events)
                assert_same(users[sample, position].double(), user)
            assert_same(
                attention[sample, 0, :length].double(), torch.tensor(weights_of_events).double()
            )

    def reference_outputs(
        self, weights: dict[str, Tensor], events: list[Tensor]
    ) -> tuple[Tensor, list[float]]:
        older, recent = events[: -self.config.recent], events[-self.config.recent :]
        if not older:
            weights_of_events = softmax_weights(weights, "hybrid", recent)
            return weighted_sum(weights_of_events, recent), weights_of_events
        long_term = softmax_weights(weights, "long_term", older)
        summary = weighted_sum(long_term, older)
        summary_weight, *recent_weights = softmax_weights(weights, "hybrid", [summary, *recent])
        user = summary_weight * summary + weighted_sum(recent_weights, recent)
        return user, [summary_weight * weight for weight in long_term] + recent_weights


def softmax_weights(weights: dict[str, Tensor], level: str, vectors: list[Tensor]) -> list[float]:
    """softmax of u . relu(W x + b)."""
    hidden = [
        (weights[f"{level}.weight"] @ vector + weights[f"{level}.bias"]).clamp(min=0)
        for vector in vectors
    ]
    exponentials = [math.exp(float(weights["attention_query"] @ state)) for state in hidden]
    return [value / sum(exponentials) for value in exponentials]


def weighted_sum(weights_of_events: list[float], vectors: list[Tensor]) -> Tensor:
    return torch.stack(
        [weight * vector for weight, vector in zip(weights_of_events, vectors, strict=True)]
    ).sum(0)


class TestSHAN(SHANContract):
    config = SHANConfig(dim=16, max_history=40)

    def test_the_order_matters_only_for_which_events_are_recent(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SHAN)
        batch = collate_queries(draw_queries(9)[0])
        items = vectors(encoder, batch)
        user = encoder(batch, items).user
        within = items[:, [3, 1, 2, 0, 8, 5, 7, 6, 4]]
        across = items[:, [4, 1, 2, 3, 0, 5, 6, 7, 8]]
        assert_same(encoder(batch, within).user, user)
        assert (encoder(batch, across).user - user).abs().max() > 1e-3


class TestLastEventAgainstAllBefore(SHANContract):
    config = SHANConfig(dim=16, recent=1, max_history=40)


@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_short_history_has_no_long_term_vector(length: int) -> None:
    torch.manual_seed(0)
    encoder = SHANConfig(dim=16).build().eval()
    batch = collate_queries(draw_queries(length)[0])
    items = vectors(encoder, batch)
    before = encoder(batch, items).user
    torch.nn.init.normal_(encoder.long_term.weight)
    assert torch.equal(encoder(batch, items).user, before)
