"""The Markov chain's ranking."""

from model.encoders.markov import MarkovConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, fit_counts, ranking


class TestMarkov(CountingEncoderContract):
    config = MarkovConfig(successors=5)

    def test_frequent_successors_come_first_then_popular_items(
        self, encoder: SequenceEncoder
    ) -> None:
        assert ranking(encoder, 1)[:4] == [2, 1, 4, 3]
        assert ranking(encoder, 2)[:4] == [1, 3, 2, 4]

    def test_only_the_last_item_matters(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 4, 3, 4, 1) == ranking(encoder, 1)

    def test_events_of_different_users_are_not_paired(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 3)[:4] == [1, 2, 4, 3]


def test_the_most_frequent_successors_are_stored() -> None:
    encoder = MarkovConfig(successors=1).build(items=20).eval()
    fit_counts(encoder)
    assert ranking(encoder, 2)[:3] == [1, 2, 4]
    assert ranking(encoder, 1)[0] == 2
