"""GRU4Rec against its gates in a loop."""

import torch

from model.encoders.gru4rec import GRU4Rec, GRU4RecConfig
from model.interfaces import SequenceEncoder
from tests.contracts.histories import draw_queries, laid_out
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TestGRU4Rec(SequenceEncoderContract):
    config = GRU4RecConfig(dim=16, hidden=12, max_history=40)
    reads_time = False

    def test_the_gates_of_the_paper_one_event_at_a_time(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, GRU4Rec)
        batch = laid_out(draw_queries(9)[0])
        items = vectors(encoder, batch)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        state = torch.zeros(12, dtype=torch.float64)
        users = []
        for event in items[0].double():
            reset, update, candidate = (
                weights["recurrence.weight_ih_l0"] @ event + weights["recurrence.bias_ih_l0"]
            ).chunk(3)
            to_reset, to_update, to_candidate = (
                weights["recurrence.weight_hh_l0"] @ state + weights["recurrence.bias_hh_l0"]
            ).chunk(3)
            z = torch.sigmoid(update + to_update)
            proposed = torch.tanh(candidate + torch.sigmoid(reset + to_reset) * to_candidate)
            state = (1 - z) * proposed + z * state
            users.append(weights["read_out.weight"] @ state + weights["read_out.bias"])
        assert_same(encoder.states(batch, items).users[0], torch.stack(users).float())


class TestStacked(SequenceEncoderContract):
    config = GRU4RecConfig(dim=16, hidden=12, layers=2, max_history=40)
    reads_time = False

    def test_the_order_of_the_items_is_read(self, encoder: SequenceEncoder) -> None:
        batch = laid_out(draw_queries(4)[0])
        items = vectors(encoder, batch)
        turned = encoder(batch, items.flip(1)).user
        assert (encoder(batch, items).user - turned).abs().max() > 1e-3
        assert torch.equal(encode(encoder, draw_queries(4)[0]).user, encoder(batch, items).user)
