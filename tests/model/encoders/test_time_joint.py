"""TimeJoint against its recurrence in a loop, and what it says of the next event's time."""

import math

import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders.time_joint import TimeJoint, TimeJointConfig
from model.interfaces import SequenceEncoder
from model.layers.next_time import LogNormal
from tests.contracts.histories import draw_queries, laid_out, prefix
from tests.contracts.sequence_encoder import SequenceEncoderContract, assert_same, encode, vectors


class TimeJointContract(SequenceEncoderContract):
    reads_time = True
    actions = 2

    def test_the_state_follows_the_recurrence(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TimeJoint)
        batch = laid_out(draw_queries(9)[0]).withhold(torch.arange(9).expand(1, -1) % 4 == 2)
        items = vectors(encoder, batch)
        said = encoder.states(batch, items)
        users, means = by_definition(encoder, batch, items)
        assert_same(said.users[0], users)
        assert isinstance(said.next_time, LogNormal)
        assert_same(said.next_time.mean[0].float(), means)

    def test_when_the_next_event_comes_is_said_without_its_time(
        self, encoder: SequenceEncoder
    ) -> None:
        batch = laid_out(draw_queries(7)[0])
        said = means(encoder, batch)
        for place in range(7):
            other = batch.query_times.clone()
            other[0, place] += 123.4
            assert_same(
                means(encoder, batch._replace(query_times=other))[: place + 1], said[: place + 1]
            )
            withheld = batch.withhold(torch.arange(7).expand(1, -1) == place)
            assert_same(means(encoder, withheld)[: place + 1], said[: place + 1])

    def test_when_the_next_event_comes_is_said_alike_at_a_position_and_of_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(8)[0]
        said = means(encoder, laid_out(query))
        for count in range(1, 9):
            alone = encode(encoder, prefix(query, count)).next_time
            assert isinstance(alone, LogNormal)
            assert_same(alone.mean[0].float(), said[count - 1])

    def test_a_sweep_says_the_same_of_when_at_every_instant(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TimeJoint)
        for query in draw_queries(5, 1):
            batch = laid_out(query)
            instants = batch.times[0, -1] + torch.tensor([0.0, 3.0, 400.0], dtype=torch.float64)
            swept = encoder.sweep(batch, vectors(encoder, batch), instants).next_time
            single = encode(encoder, query).next_time
            assert isinstance(swept, LogNormal)
            assert isinstance(single, LogNormal)
            assert_same(swept.mean.float(), single.mean.float().expand(3))


class TestJoint(TimeJointContract):
    config = TimeJointConfig(dim=16, hidden=12, projections=5, max_history=40)


class TestMask(TimeJointContract):
    config = TimeJointConfig(form="mask", dim=16, hidden=12, projections=5, max_history=40)


@pytest.mark.parametrize("form", ["joint", "mask"])
def test_a_duration_withheld_differs_from_one_of_nothing(form: str) -> None:
    encoder = TimeJointConfig.model_validate({"form": form, "dim": 8}).build().eval()
    batch = laid_out(draw_queries(4)[0])
    at_once = batch._replace(query_times=batch.times)
    not_told = batch.withhold(torch.ones(1, 4, dtype=torch.bool))
    items = vectors(encoder, batch)
    assert not torch.equal(encoder(at_once, items).user, encoder(not_told, items).user)


def means(encoder: SequenceEncoder, batch: SequenceBatch) -> Tensor:
    assert isinstance(encoder, TimeJoint)
    said = encoder.states(batch, vectors(encoder, batch)).next_time
    assert isinstance(said, LogNormal)
    return said.mean[0].float()


def by_definition(encoder: TimeJoint, batch: SequenceBatch, items: Tensor) -> tuple[Tensor, Tensor]:
    """User vectors and mean log-durations of one history, gate by gate in double precision."""
    weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}

    def linear(name: str, x: Tensor) -> Tensor:
        product = weights[f"{name}.weight"] @ x
        return product + weights[f"{name}.bias"] if f"{name}.bias" in weights else product

    state = memory = torch.zeros(encoder.recurrence.hidden_size, dtype=torch.float64)
    users, means = [], []
    for place in range(items.shape[1]):
        event = items[0, place].double() + weights["actions.weight"][batch.actions[0, place]]
        means.append(linear("next_duration", torch.cat((state, event))))
        duration = float(batch.query_times[0, place] - batch.times[0, place])
        d = torch.tensor([math.log1p(duration)], dtype=torch.float64)
        told = bool(batch.query_given[0, place])
        if "duration.mask.weight" in weights:
            mask = linear("duration.mask", linear("duration.context", d).relu())
            x = event * torch.sigmoid(mask if told else weights["duration.withheld"])
        else:
            mixture = torch.softmax(linear("duration.projection", d), dim=0)
            g = linear("duration.embeddings", mixture)
            x = (event + (g if told else weights["duration.withheld"])) / 2
        gates = (
            weights["recurrence.weight_ih_l0"] @ x
            + weights["recurrence.bias_ih_l0"]
            + weights["recurrence.weight_hh_l0"] @ state
            + weights["recurrence.bias_hh_l0"]
        )
        into, forget, candidate, out = gates.chunk(4)
        memory = forget.sigmoid() * memory + into.sigmoid() * candidate.tanh()
        state = out.sigmoid() * memory.tanh()
        users.append(linear("read_out", state))
    return torch.stack(users).float(), torch.cat(means).float()
