"""RNN+attention against torch's recurrence and its attention in a loop."""

import torch

from model.encoders.rnn_attention import RNNAttention, RNNAttentionConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import draw_queries, laid_out
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TestRNNAttention(SequenceEncoderContract):
    config = RNNAttentionConfig(dim=16, hidden=12, max_history=40)
    reads_time = False

    def test_the_formulas_one_pair_at_a_time_in_double_precision(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, RNNAttention)
        batch = laid_out(draw_queries(11)[0])
        items = vectors(encoder, batch)
        said = encoder(batch, items)
        users = encoder.states(batch, items).users[0]
        slow = encoder.double()
        hidden = slow.recurrence(items[0].double())[0]
        for place, user in enumerate(users):
            asking = slow.attention.asking.weight @ hidden[place]
            scores = torch.stack(
                [
                    slow.attention.score @ torch.tanh(asking + slow.attention.past.weight @ state)
                    for state in hidden[: place + 1]
                ]
            )
            weights = scores.softmax(0)
            taken = sum(weight * state for weight, state in zip(weights, hidden, strict=False))
            assert isinstance(taken, torch.Tensor)
            expected = slow.read_out.weight @ torch.cat((hidden[place], taken))
            assert_same(user, expected.float())
        assert said.attention is not None
        assert_same(said.attention[0, 0], weights.float())

    def test_more_than_one_event_counts(self, encoder: SequenceEncoder) -> None:
        attention = encode(encoder, *draw_queries(7)).attention
        assert attention is not None
        assert attention.shape == (1, 1, 7)
        assert (attention > 1e-3).all()
        assert attention.std() > 1e-3
