"""GRU4Rec against its equations, one event at a time."""

import torch

from model.encoders.gru4rec import GRU4Rec, GRU4RecConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import collate_queries, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TestGRU4Rec(SequenceEncoderContract):
    config = GRU4RecConfig(dim=16, hidden=12, max_history=40)
    uses_time = False

    def test_users_follow_the_equations(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, GRU4Rec)
        batch = collate_queries(draw_queries(9)[0])
        items = vectors(encoder, batch)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        state = torch.zeros(12, dtype=torch.float64)
        users = []
        for event in items[0].double():
            reset, update, candidate = (
                weights["recurrence.weight_ih_l0"] @ event + weights["recurrence.bias_ih_l0"]
            ).chunk(3)
            reset_hidden, update_hidden, candidate_hidden = (
                weights["recurrence.weight_hh_l0"] @ state + weights["recurrence.bias_hh_l0"]
            ).chunk(3)
            z = torch.sigmoid(update + update_hidden)
            proposed = torch.tanh(
                candidate + torch.sigmoid(reset + reset_hidden) * candidate_hidden
            )
            state = (1 - z) * proposed + z * state
            users.append(weights["out_proj.weight"] @ state + weights["out_proj.bias"])
        assert_same(encoder.encode_positions(batch, items).users[0], torch.stack(users).float())


class TestStacked(SequenceEncoderContract):
    config = GRU4RecConfig(dim=16, hidden=12, layers=2, max_history=40)
    uses_time = False

    def test_the_order_of_the_items_changes_the_output(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(draw_queries(4)[0])
        items = vectors(encoder, batch)
        reversed_order = encoder(batch, items.flip(1)).user
        assert (encoder(batch, items).user - reversed_order).abs().max() > 1e-3
        assert torch.equal(encode(encoder, draw_queries(4)[0]).user, encoder(batch, items).user)
