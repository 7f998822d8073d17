"""RNN+attention: torch's GRU and attention one pair at a time."""

import torch

from model.encoders.rnn_attention import RNNAttention, RNNAttentionConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TestRNNAttention(SequenceEncoderContract):
    config = RNNAttentionConfig(dim=16, hidden=12, max_history=40)
    uses_time = False

    def test_outputs_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, RNNAttention)
        batch = collate_queries(draw_queries(11)[0])
        items = vectors(encoder, batch)
        output = encoder(batch, items)
        users = encoder.encode_positions(batch, items).users[0]
        reference = encoder.double()
        hidden = reference.recurrence(items[0].double())[0]
        for position, user in enumerate(users):
            query = reference.attention.query_proj.weight @ hidden[position]
            scores = torch.stack(
                [
                    reference.attention.score_weight
                    @ torch.tanh(query + reference.attention.key_proj.weight @ state)
                    for state in hidden[: position + 1]
                ]
            )
            weights = scores.softmax(0)
            context = sum(weight * state for weight, state in zip(weights, hidden, strict=False))
            assert isinstance(context, torch.Tensor)
            expected = reference.out_proj.weight @ torch.cat((hidden[position], context))
            assert_same(user, expected.float())
        assert output.attention is not None
        assert_same(output.attention[0, 0], weights.float())

    def test_every_event_has_some_weight(self, encoder: SequenceEncoder) -> None:
        attention = encode(encoder, *draw_queries(7)).attention
        assert attention is not None
        assert attention.shape == (1, 1, 7)
        assert (attention > 1e-3).all()
        assert attention.std() > 1e-3
