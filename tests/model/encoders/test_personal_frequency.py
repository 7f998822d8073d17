"""Ranking by the user's own frequencies."""

from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, ranking


class TestPersonalFrequency(CountingEncoderContract):
    config = PersonalFrequencyConfig()

    def test_the_most_frequent_items_come_first(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 7, 7, 9)[:2] == [7, 9]
        assert ranking(encoder, 9, 7, 7, 3, 9, 9)[:3] == [9, 7, 3]

    def test_ties_are_broken_by_the_most_recent_event(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 7, 9)[:2] == [9, 7]
        assert ranking(encoder, 9, 9, 7, 7, 9, 7)[:2] == [7, 9]

    def test_other_items_follow_by_popularity(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 7)[:5] == [7, 1, 2, 4, 3]
