"""TimeJoint against its equations, and its distribution of the next event's time."""

import math

import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders.time_joint import TimeJoint, TimeJointConfig
from model.interfaces import SequenceEncoder
from model.layers.interval_distribution import IntervalDistribution, LogNormal, ZeroInflated
from tests.contracts.histories import collate_queries, draw_queries, prefix
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TimeJointContract(SequenceEncoderContract):
    uses_time = True
    actions = 2

    def test_outputs_follow_the_equations(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TimeJoint)
        batch = collate_queries(draw_queries(9)[0])
        batch = batch.withhold_query_times(torch.arange(9).expand(1, -1) % 4 == 2)
        items = vectors(encoder, batch)
        output = encoder.encode_positions(batch, items)
        users, means, zero_logits = by_definition(encoder, batch, items)
        assert_same(output.users[0], users)
        assert_same(mean_of(output.next_time)[0], means)
        assert isinstance(output.next_time, ZeroInflated)
        assert_same(output.next_time.zero_logit[0].float(), zero_logits)

    def test_next_times_do_not_depend_on_the_query_time(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(draw_queries(7)[0])
        expected = means(encoder, batch)
        for position in range(7):
            other = batch.query_times.clone()
            other[0, position] += 123.4
            assert_same(
                means(encoder, batch._replace(query_times=other))[: position + 1],
                expected[: position + 1],
            )
            withheld = batch.withhold_query_times(torch.arange(7).expand(1, -1) == position)
            assert_same(means(encoder, withheld)[: position + 1], expected[: position + 1])

    def test_next_times_at_a_position_equal_those_of_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(8)[0]
        expected = means(encoder, collate_queries(query))
        for count in range(1, 9):
            alone = encode(encoder, prefix(query, count)).next_time
            assert_same(mean_of(alone)[0], expected[count - 1])

    def test_equal_times_have_a_probability(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TimeJoint)
        with torch.no_grad():
            encoder.next_duration.weight.zero_()
            encoder.next_duration.bias.zero_()
            encoder.spread.fill_(-10)
        next_time = encode(encoder, *draw_queries(4)).next_time
        assert next_time is not None
        at_zero = torch.zeros(1, dtype=torch.float64)
        assert next_time.log_density(at_zero).item() < 0 < next_time.later.log_density(at_zero)

    def test_a_sweep_has_the_same_next_time_at_every_query(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TimeJoint)
        for query in draw_queries(5, 1):
            batch = collate_queries(query)
            instants = batch.times[0, -1] + torch.tensor([0.0, 3.0, 400.0], dtype=torch.float64)
            swept = encoder.sweep(batch, vectors(encoder, batch), instants).next_time
            single = encode(encoder, query).next_time
            assert_same(mean_of(swept), mean_of(single).expand(3))


class TestJoint(TimeJointContract):
    config = TimeJointConfig(dim=16, hidden=12, projections=5, max_history=40)


class TestMask(TimeJointContract):
    config = TimeJointConfig(form="mask", dim=16, hidden=12, projections=5, max_history=40)


@pytest.mark.parametrize("form", ["joint", "mask"])
def test_a_withheld_duration_differs_from_a_duration_of_zero(form: str) -> None:
    encoder = TimeJointConfig.model_validate({"form": form, "dim": 8}).build().eval()
    batch = collate_queries(draw_queries(4)[0])
    zero = batch._replace(query_times=batch.times)
    withheld = batch.withhold_query_times(torch.ones(1, 4, dtype=torch.bool))
    items = vectors(encoder, batch)
    assert not torch.equal(encoder(zero, items).user, encoder(withheld, items).user)


def means(encoder: SequenceEncoder, batch: SequenceBatch) -> Tensor:
    assert isinstance(encoder, TimeJoint)
    return mean_of(encoder.encode_positions(batch, vectors(encoder, batch)).next_time)[0]


def mean_of(next_time: IntervalDistribution | None) -> Tensor:
    assert isinstance(next_time, ZeroInflated)
    assert isinstance(next_time.positive, LogNormal)
    return next_time.positive.mean.float()


def by_definition(
    encoder: TimeJoint, batch: SequenceBatch, items: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """User vectors, mean log-durations and log-odds of durations of 0, gate by gate in float64."""
    weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}

    def linear(name: str, x: Tensor) -> Tensor:
        product = weights[f"{name}.weight"] @ x
        return product + weights[f"{name}.bias"] if f"{name}.bias" in weights else product

    state = cells = torch.zeros(encoder.recurrence.hidden_size, dtype=torch.float64)
    users, means, zero_logits = [], [], []
    for position in range(items.shape[1]):
        event = items[0, position].double() + weights["actions.weight"][batch.actions[0, position]]
        means.append(linear("next_duration", torch.cat((state, event))))
        zero_logits.append(linear("zero_duration", torch.cat((state, event))))
        duration = float(batch.query_times[0, position] - batch.times[0, position])
        d = torch.tensor([math.log1p(duration)], dtype=torch.float64)
        given = bool(batch.query_given[0, position])
        if "duration.mask.weight" in weights:
            mask = linear("duration.mask", linear("duration.context", d).relu())
            x = event * torch.sigmoid(mask if given else weights["duration.withheld"])
        else:
            mixture = torch.softmax(linear("duration.projection", d), dim=0)
            g = linear("duration.embeddings", mixture)
            x = (event + (g if given else weights["duration.withheld"])) / 2
        gates = (
            weights["recurrence.weight_ih_l0"] @ x
            + weights["recurrence.bias_ih_l0"]
            + weights["recurrence.weight_hh_l0"] @ state
            + weights["recurrence.bias_hh_l0"]
        )
        into, forget, candidate, out = gates.chunk(4)
        cells = forget.sigmoid() * cells + into.sigmoid() * candidate.tanh()
        state = out.sigmoid() * cells.tanh()
        users.append(linear("out_proj", state))
    return torch.stack(users).float(), torch.cat(means).float(), torch.cat(zero_logits).float()
