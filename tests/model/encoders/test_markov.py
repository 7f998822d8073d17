from model.encoders.markov import MarkovConfig
from model.interfaces import SequenceEncoder
from tests.contracts.counting_encoder import CountingEncoderContract, counted, ranking


class TestMarkov(CountingEncoderContract):
    config = MarkovConfig(successors=5)

    def test_what_came_next_most_often_leads_and_popularity_follows(
        self, encoder: SequenceEncoder
    ) -> None:
        assert ranking(encoder, 1)[:4] == [2, 1, 4, 3]
        assert ranking(encoder, 2)[:4] == [1, 3, 2, 4]

    def test_only_the_last_item_matters(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 4, 3, 4, 1) == ranking(encoder, 1)

    def test_neighbours_of_two_users_are_no_pair(self, encoder: SequenceEncoder) -> None:
        assert ranking(encoder, 3)[:4] == [1, 2, 4, 3]


def test_of_more_successors_than_fit_the_most_frequent_are_kept() -> None:
    encoder = MarkovConfig(successors=1).build(items=20).eval()
    counted(encoder)
    assert ranking(encoder, 2)[:3] == [1, 2, 4]
    assert ranking(encoder, 1)[0] == 2
