from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, ranking


class TestPersonalFrequency(CountingEncoderContract):
    config = PersonalFrequencyConfig()

    def test_what_was_met_most_often_leads(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 7, 7, 9)[:2] == [7, 9]
        assert ranking(encoder, 9, 7, 7, 3, 9, 9)[:3] == [9, 7, 3]

    def test_of_equals_the_latest_met_leads(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 7, 9)[:2] == [9, 7]
        assert ranking(encoder, 9, 9, 7, 7, 9, 7)[:2] == [7, 9]

    def test_what_was_never_met_follows_by_popularity(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 7)[:5] == [7, 1, 2, 4, 3]
