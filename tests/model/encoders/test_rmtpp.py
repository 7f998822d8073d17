"""RMTPP against its recurrence in a loop, and what it says of the next event's time."""

import math

import torch

from model.encoders.rmtpp import RMTPP, RMTPPConfig
from model.history import Event, Query
from model.interfaces import NextTime, SequenceEncoder
from model.layers.next_time import Gompertz
from tests.contracts.histories import START, YEAR, asked_at, draw_queries, laid_out, prefix
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TestRMTPP(SequenceEncoderContract):
    config = RMTPPConfig(dim=16, hidden=12, max_history=40)
    reads_time = False
    actions = 2

    def test_the_state_follows_the_recurrence(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, RMTPP)
        assert encoder.actions is not None
        batch = laid_out(draw_queries(9)[0])
        items = vectors(encoder, batch)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        state = torch.zeros(12, dtype=torch.float64)
        before = batch.times[0, 0]
        users, log_rates = [], []
        for event, action, time in zip(items[0], batch.actions[0], batch.times[0], strict=True):
            interval = math.log1p(time - before)
            before = time
            marker = event.double() + weights["actions.weight"][action]
            read = torch.cat((marker, torch.tensor([interval], dtype=torch.float64)))
            state = torch.relu(
                weights["recurrence.weight_ih_l0"] @ read
                + weights["recurrence.bias_ih_l0"]
                + weights["recurrence.weight_hh_l0"] @ state
                + weights["recurrence.bias_hh_l0"]
            )
            users.append(weights["read_out.weight"] @ state + weights["read_out.bias"])
            log_rates.append(weights["log_rate.weight"] @ state + weights["log_rate.bias"])
        states = encoder.states(batch, items)
        assert_same(states.users[0], torch.stack(users).float())
        assert isinstance(states.next_time, Gompertz)
        # The bound of one event a second is far off.
        assert_same(states.next_time.log_rate[0].float(), torch.cat(log_rates).float())

    def test_when_the_next_event_comes_is_said_alike_at_a_position_and_of_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, RMTPP)
        query = draw_queries(8)[0]
        batch = laid_out(query)
        said = encoder.states(batch, vectors(encoder, batch)).next_time
        assert isinstance(said, NextTime)
        medians = said.quantile(0.5)
        for count in range(1, 9):
            alone = encode(encoder, prefix(query, count)).next_time
            assert isinstance(alone, NextTime)
            torch.testing.assert_close(
                alone.quantile(0.5), medians[:, count - 1], rtol=1e-5, atol=0
            )

    def test_when_the_next_event_comes_does_not_depend_on_when_one_asks(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(6)[0]
        now, later = (
            encode(encoder, asked).next_time
            for asked in (query, asked_at(query, query.query_time + YEAR))
        )
        assert now is not None
        assert later is not None
        assert torch.equal(now.quantile(0.5), later.quantile(0.5))

    def test_equal_times_leave_the_density_finite(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, RMTPP)
        with torch.no_grad():
            encoder.log_rate.bias.fill_(1e6)
        said = encode(encoder, Query((Event("i1", START), Event("i2", START)), START)).next_time
        assert said is not None
        at_once = said.log_density(torch.zeros(1, dtype=torch.float64))
        assert at_once.item() <= math.log(86_400) + 1e-6
