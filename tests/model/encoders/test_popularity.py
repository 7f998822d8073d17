"""Ranking by popularity."""

from model.encoders.popularity import PopularityConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, ranking


class TestPopularityOfAllTime(CountingEncoderContract):
    config = PopularityConfig()

    def test_items_are_ranked_by_their_events_for_any_history(
        self, encoder: SequenceEncoder
    ) -> None:
        assert ranking(encoder, 3)[:4] == [1, 2, 4, 3]
        assert ranking(encoder, 4, 4, 4)[:4] == [1, 2, 4, 3]


class TestPopularityOfTheLastWeek(CountingEncoderContract):
    config = PopularityConfig(window="last_week")

    def test_only_the_last_week_counts(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 3)[0] == 4
