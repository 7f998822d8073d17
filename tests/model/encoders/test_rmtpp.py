"""RMTPP against its equations, and its distribution of the next event's time."""

import math

import torch

from model.encoders.rmtpp import RMTPP, RMTPPConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.layers.interval_distribution import Gompertz, IntervalDistribution, ZeroInflated
from tests.contracts.histories import (
    START,
    YEAR,
    at_query_time,
    collate_queries,
    draw_queries,
    prefix,
)
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TestRMTPP(SequenceEncoderContract):
    config = RMTPPConfig(dim=16, hidden=12, max_history=40)
    uses_time = False
    actions = 2

    def test_outputs_follow_the_equations(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, RMTPP)
        assert encoder.actions is not None
        batch = collate_queries(draw_queries(9)[0])
        items = vectors(encoder, batch)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        state = torch.zeros(12, dtype=torch.float64)
        before = batch.times[0, 0]
        users, log_rates, zero_logits = [], [], []
        for event, action, time in zip(items[0], batch.actions[0], batch.times[0], strict=True):
            interval = math.log1p(time - before)
            before = time
            marker = event.double() + weights["actions.weight"][action]
            inputs = torch.cat((marker, torch.tensor([interval], dtype=torch.float64)))
            state = torch.relu(
                weights["recurrence.weight_ih_l0"] @ inputs
                + weights["recurrence.bias_ih_l0"]
                + weights["recurrence.weight_hh_l0"] @ state
                + weights["recurrence.bias_hh_l0"]
            )
            users.append(weights["out_proj.weight"] @ state + weights["out_proj.bias"])
            log_rates.append(weights["log_rate.weight"] @ state + weights["log_rate.bias"])
            zero_logits.append(
                weights["zero_interval.weight"] @ state + weights["zero_interval.bias"]
            )
        states = encoder.encode_positions(batch, items)
        assert_same(states.users[0], torch.stack(users).float())
        assert isinstance(states.next_time, ZeroInflated)
        assert_same(states.next_time.zero_logit[0].float(), torch.cat(zero_logits).float())
        assert isinstance(states.next_time.positive, Gompertz)
        # The bound of one event per second has no effect here.
        assert_same(states.next_time.positive.log_rate[0].float(), torch.cat(log_rates).float())

    def test_next_times_at_a_position_equal_those_of_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, RMTPP)
        query = draw_queries(8)[0]
        batch = collate_queries(query)
        next_time = encoder.encode_positions(batch, vectors(encoder, batch)).next_time
        assert isinstance(next_time, IntervalDistribution)
        medians = next_time.quantile(0.5)
        for count in range(1, 9):
            alone = encode(encoder, prefix(query, count)).next_time
            assert isinstance(alone, IntervalDistribution)
            torch.testing.assert_close(
                alone.quantile(0.5), medians[:, count - 1], rtol=1e-5, atol=0
            )

    def test_next_times_do_not_depend_on_the_query_time(self, encoder: SequenceEncoder) -> None:
        query = draw_queries(6)[0]
        now, later = (
            encode(encoder, each).next_time
            for each in (query, at_query_time(query, query.query_time + YEAR))
        )
        assert now is not None
        assert later is not None
        assert torch.equal(now.quantile(0.5), later.quantile(0.5))

    def test_equal_times_have_a_finite_density(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, RMTPP)
        with torch.no_grad():
            encoder.log_rate.bias.fill_(1e6)
        next_time = encode(
            encoder, Query((Event("i1", START), Event("i2", START)), START)
        ).next_time
        assert next_time is not None
        at_zero = next_time.log_density(torch.zeros(1, dtype=torch.float64))
        assert at_zero.item() <= math.log(86_400) + 1e-6
        # A probability, however high the hazard.
        assert at_zero.item() <= 0
        soon = next_time.later.log_density(torch.zeros(1, dtype=torch.float64))
        assert soon.item() <= math.log(86_400) + 1e-6
