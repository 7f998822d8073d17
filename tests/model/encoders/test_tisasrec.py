"""TiSASRec against its formulas."""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders.tisasrec import TiSASRec, TiSASRecConfig, compute_personal_relations
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from tests.contracts.histories import DAY, START, at_query_time, collate_queries, draw_queries
from tests.contracts.sequence_encoder import (
    SequenceEncoderContract,
    assert_same,
    encode,
    vectors,
)

Weights = dict[str, Tensor]


class TiSASRecContract(SequenceEncoderContract):
    config: TiSASRecConfig  # type: ignore[misc]

    def test_outputs_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TiSASRec)
        batch = collate_queries(*draw_queries(12, 1, 7, seed=5))
        batch = batch.withhold_query_times(torch.arange(12).expand(3, -1) % 5 == 2)
        items = vectors(encoder, batch) / 4
        with torch.no_grad():
            states, encoded = encoder.encode_positions(batch, items), encoder(batch, items)
        assert encoded.attention is not None
        for sample, length in enumerate(batch.lengths.tolist()):
            users, attention = self.encode_reference(encoder, batch, items, sample)
            assert_same(states.users[sample, :length].double(), users)
            assert_same(encoded.user[sample].double(), users[-1])
            assert_same(encoded.attention[sample, :, :length].double(), attention[-1])

    def encode_reference(
        self, encoder: TiSASRec, batch: SequenceBatch, items: Tensor, sample: int
    ) -> tuple[Tensor, Tensor]:
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        length = int(batch.lengths[sample])
        states = list(items[sample, :length].double() * encoder.dim**0.5)
        related = [
            [self.relation(batch, sample, q, i) for i in range(q + 1)] for q in range(length)
        ]
        attention = torch.empty(0)
        for number in range(self.config.layers):
            prefix = f"blocks.{number}."
            below = {
                name.removeprefix(prefix): tensor
                for name, tensor in weights.items()
                if name.startswith(prefix)
            }
            states, attention = self.reference_block(weights, below, states, related)
        return torch.stack([norm(weights, "norm", state) for state in states]), attention

    def relation(self, batch: SequenceBatch, sample: int, q: int, i: int) -> int:
        times = batch.times[sample, : q + 1].tolist()
        if self.config.relation == "to_query":
            if q == i and not batch.query_given[sample, q]:
                return self.config.time_span + 1
            lag = float(batch.query_times[sample, q]) - times[i]
            return min(math.floor(lag / self.config.time_scale), self.config.time_span)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        unit = min((gap for gap in gaps if gap > 0), default=math.inf)
        return min(round(times[q] / unit) - round(times[i] / unit), self.config.time_span)

    def reference_block(
        self, shared: Weights, weights: Weights, states: list[Tensor], related: list[list[int]]
    ) -> tuple[list[Tensor], Tensor]:
        heads = self.config.heads
        width = self.config.dim // heads
        attention = torch.zeros(len(states), heads, len(states), dtype=torch.float64)
        out = []
        for q in range(len(states)):
            query = norm(weights, "attention_norm", states[q])
            projected = linear(weights, "attention.query_proj", query)
            output = torch.zeros_like(query)
            for head in range(heads):
                part = slice(head * width, (head + 1) * width)
                exponentials = []
                for i in range(q + 1):
                    key = linear(weights, "attention.key_proj", states[i])
                    key = key + shared["position_keys.weight"][i]
                    key = key + shared["relation_keys.weight"][related[q][i]]
                    exponentials.append(
                        math.exp(float(projected[part] @ key[part]) / math.sqrt(width))
                    )
                for i in range(q + 1):
                    value = linear(weights, "attention.value_proj", states[i])
                    value = value + shared["position_values.weight"][i]
                    value = value + shared["relation_values.weight"][related[q][i]]
                    attention[q, head, i] = exponentials[i] / sum(exponentials)
                    output[part] += attention[q, head, i] * value[part]
            normed = norm(weights, "feed_forward_norm", query + output)
            inner = linear(weights, "linear1", normed).clamp(min=0)
            out.append(normed + linear(weights, "linear2", inner))
        return out, attention


def linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    return weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]


def norm(weights: Weights, name: str, vector: Tensor) -> Tensor:
    centred = vector - vector.mean()
    scaled = centred / (centred.square().mean() + 1e-8).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


class TestPersonal(TiSASRecContract):
    config = TiSASRecConfig(dim=16, heads=2, max_history=40)
    uses_time = False

    def test_intervals_between_events_change_the_output(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TiSASRec)
        users = [encode(encoder, history(0, 1, 2, gap)).user for gap in (3.0, 4.0, 1000.0)]
        assert (users[0] - users[1]).abs().max() > 1e-3
        assert (users[1] - users[2]).abs().max() > 1e-3

    def test_only_the_proportions_of_intervals_matter(self, encoder: SequenceEncoder) -> None:
        days, hours = (history(*(gap * unit for gap in (0, 1, 3, 7))) for unit in (1, 1 / 24))
        assert torch.equal(encode(encoder, days).user, encode(encoder, hours).user)


class TestToQuery(TiSASRecContract):
    config = TiSASRecConfig(dim=16, heads=2, relation="to_query", time_scale=10, max_history=40)
    uses_time = True

    def test_a_withheld_query_time_differs_from_an_interval_of_zero(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(6)[0]
        last = query.history[-1].at
        given = encode(encoder, at_query_time(query, last))
        withheld = encode(encoder, at_query_time(query, last, withheld=True))
        assert (given.user - withheld.user).abs().max() > 1e-3

    def test_intervals_are_rounded_down_to_whole_units(self, encoder: SequenceEncoder) -> None:
        users = [encode(encoder, history(0, 25, query=query)).user for query in (30, 34, 36)]
        assert torch.equal(users[0], users[1])
        assert (users[1] - users[2]).abs().max() > 1e-3

    def test_intervals_are_clipped_to_the_span(self, encoder: SequenceEncoder) -> None:
        users = [encode(encoder, history(0, 25, query=query)).user for query in (2590, 9000)]
        assert torch.equal(users[0], users[1])


class TestOneBlock(TiSASRecContract):
    config = TiSASRecConfig(dim=16, layers=1, relation="to_query", time_span=3, max_history=40)
    uses_time = True


def history(*days: float, query: float = 1e4) -> Query:
    events = tuple(Event(f"i{n}", START + round(day * DAY)) for n, day in enumerate(days))
    return Query(events, START + round(query * DAY))


def test_personal_relations_use_the_smallest_interval_as_unit() -> None:
    relations = compute_personal_relations(
        torch.tensor([[0.0, 0.0, 6.0, 6.0, 9.0, 10.0]]).double()
    )[0]
    expected = {
        1: [0, 0],  # all of one time: no unit yet
        2: [1, 1, 0],  # in units of 6 days
        3: [1, 1, 0, 0],
        4: [3, 3, 1, 1, 0],  # of 3
        5: [10, 10, 4, 4, 1, 0],  # of 1
    }
    for position, counts in expected.items():
        assert relations[position, : position + 1].tolist() == counts


def test_a_later_interval_never_changes_an_earlier_relation() -> None:
    times = torch.tensor([[0.0, 5.0, 7.0, 7.001]]).double()
    assert torch.equal(
        compute_personal_relations(times)[:, :3, :3], compute_personal_relations(times[:, :3])
    )


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="dim=64, heads=3"):
        TiSASRecConfig(heads=3).build()
