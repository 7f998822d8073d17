"""Ranking by decayed personal shares and recent popularity."""

import math

import torch

from model.encoders.counting import CountingConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, ranking
from tests.contracts.histories import DAY, START
from tests.contracts.sequence_encoder import encode


class TestCounting(CountingEncoderContract):
    config = CountingConfig(half_life_days=1.0, weight=0.05, window_days=7.0)

    def test_own_items_come_first_and_recent_ones_before_older(
        self, encoder: SequenceEncoder
    ) -> None:
        assert ranking(encoder, 7, 9)[:2] == [9, 7]
        assert ranking(encoder, 9, 7, 7, 3)[:3] == [3, 7, 9]

    def test_other_items_follow_by_recent_then_by_total_popularity(
        self, encoder: SequenceEncoder
    ) -> None:
        assert ranking(encoder, 7)[:5] == [7, 4, 1, 2, 3]

    def test_attention_halves_with_every_half_life(self, encoder: SequenceEncoder) -> None:
        events = tuple(Event(f"i{n}", START + n * DAY) for n in range(3))
        attention = encode(encoder, Query(events, START + 30 * DAY)).attention
        assert attention is not None
        torch.testing.assert_close(attention[0, 0], torch.tensor([1.0, 2.0, 4.0]) / 7)

    def test_without_decay_every_event_weighs_the_same(self) -> None:
        encoder = CountingConfig(half_life_days=None).build(items=9)
        events = tuple(Event(f"i{n}", START + n * DAY) for n in range(4))
        encoded = encode(encoder, Query(events, START + 30 * DAY))
        assert encoded.repeat_scores is not None
        torch.testing.assert_close(encoded.repeat_scores[0], torch.full((4,), -math.log(4)))
