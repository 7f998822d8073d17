"""The contract of every sequence encoder: inherit, set a config, add specific tests."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from model.batch import SequenceBatch
from model.clock import days_between
from model.encoders import EncoderConfig
from model.exported_encoder import ExportedEncoder, export_encoder
from model.history import Event, Query
from model.interfaces import (
    CandidateScorer,
    CausalEncoder,
    EncoderOutput,
    PrefixSweep,
    QuerySweep,
    SequenceEncoder,
)
from model.layers.derived import freeze
from tests.contracts.histories import (
    DAY,
    ITEMS,
    START,
    YEAR,
    at_query_time,
    collate_queries,
    draw_queries,
    prefix,
    shift_times,
)

CLOSE = 2e-5
"""Tolerance of float32 sums in another order, for user vectors of length about five."""


class SequenceEncoderContract:
    config: ClassVar[EncoderConfig]
    uses_time: ClassVar[bool]
    """Whether the query time changes the output."""
    actions: ClassVar[int] = 0
    """The number of known actions."""
    uses_absolute_time: ClassVar[bool] = False
    """Whether the output also depends on when all of it happened."""

    @classmethod
    def build(cls) -> SequenceEncoder:
        """Build an encoder; override to set what the trainer sets (such as item groups)."""
        return cls.config.build(items=ITEMS, actions=cls.actions)

    @pytest.fixture
    def encoder(self) -> SequenceEncoder:
        """The encoder with all parameters perturbed."""
        torch.manual_seed(1)
        encoder = self.build().eval()
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return encoder

    def test_user_vectors_have_the_width_of_the_items(self, encoder: SequenceEncoder) -> None:
        assert encode(encoder, *draw_queries(3, 5)).user.shape == (2, encoder.dim)

    def test_the_rest_of_a_batch_does_not_change_the_output(self, encoder: SequenceEncoder) -> None:
        queries = draw_queries(1, 9, 4, 12)
        together = encode(encoder, *queries)
        for number, query in enumerate(queries):
            alone = encode(encoder, query)
            assert_same(together.user[number], alone.user[0])
            length = len(query.history)
            if together.attention is not None and alone.attention is not None:
                assert_same(together.attention[number, ..., :length], alone.attention[0])
            if together.repeat_scores is not None and alone.repeat_scores is not None:
                width = alone.repeat_scores.shape[1]  # one per event, unless `repeat_rows` is given
                assert_same(together.repeat_scores[number, :width], alone.repeat_scores[0])

    def test_the_order_within_an_instant_does_not_matter(self, encoder: SequenceEncoder) -> None:
        query = draw_queries(12, seed=3)[0]
        times = [START + DAY * (number // 4) for number in range(len(query.history))]
        crowded = [replace(one, at=at) for one, at in zip(query.history, times, strict=True)]
        expected = encode(encoder, Query.as_of(crowded, query.query_time))
        for seed in range(5):
            shuffled = np.random.default_rng(seed).permutation(len(crowded)).tolist()
            found = encode(
                encoder, Query.as_of([crowded[one] for one in shuffled], query.query_time)
            )
            for part, same in zip(found, expected, strict=True):
                if isinstance(part, Tensor) and isinstance(same, Tensor):
                    assert_same(part, same)

    def test_values_on_padding_do_not_change_the_output(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(*draw_queries(5, 2))
        items = vectors(encoder, batch)
        clean = encoder(batch, items)
        is_padding = torch.arange(5) >= batch.lengths[:, None]
        dirty = encoder(
            batch._replace(
                actions=batch.actions.masked_fill(is_padding, 1),
                times=batch.times.masked_fill(is_padding, 77.7),
                query_times=batch.query_times.masked_fill(is_padding, 1e5),
                query_given=batch.query_given & ~is_padding,
            ),
            items.masked_fill(is_padding.unsqueeze(-1), 9.0),
        )
        assert torch.equal(dirty.user, clean.user)

    def test_the_output_at_a_position_equals_that_of_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        causal = require_causal(encoder)
        query = draw_queries(12)[0]
        batch = collate_queries(query)
        states = causal.encode_positions(batch, vectors(encoder, batch))
        for count in range(1, 13):
            alone = encode(encoder, prefix(query, count))
            assert_same(states.users[0, count - 1], alone.user[0])
            if states.repeat_scores is not None and alone.repeat_scores is not None:
                assert_same(states.repeat_scores[0, count - 1, :count], alone.repeat_scores[0])

    def test_the_last_position_equals_the_encoder_output(self, encoder: SequenceEncoder) -> None:
        causal = require_causal(encoder)
        batch = collate_queries(*draw_queries(7, 3, 1))
        states = causal.encode_positions(batch, vectors(encoder, batch))
        last = states.users[torch.arange(3), batch.lengths - 1]
        assert_same(last, encoder(batch, vectors(encoder, batch)).user)

    def test_later_events_have_no_gradient_at_a_position(self, encoder: SequenceEncoder) -> None:
        causal = require_causal(encoder)
        batch = collate_queries(draw_queries(8)[0])
        items = vectors(encoder, batch).requires_grad_()
        batch = batch._replace(
            times=batch.times.clone().requires_grad_(),
            query_times=batch.query_times.clone().requires_grad_(),
        )
        users = causal.encode_positions(batch, items).users
        inputs = (items, batch.times, batch.query_times)
        for position in range(8):
            for gradient in torch.autograd.grad(
                users[0, position].square().sum(), inputs, retain_graph=True, allow_unused=True
            ):
                if gradient is not None:
                    assert (gradient[0, position + 1 :] == 0).all()

    @pytest.mark.slow  # an export takes seconds
    def test_an_exported_encoder_encodes_alike(self, encoder: SequenceEncoder) -> None:
        if not encoder.is_exportable:
            pytest.skip("this encoder has operators or results that a program cannot have")
        content = export_encoder(encoder.requires_grad_(False), max_history=13)
        assert_encodes_alike(ExportedEncoder(content), encoder)

    def test_a_sweep_of_prefixes_equals_separate_queries(self, encoder: SequenceEncoder) -> None:
        if not isinstance(encoder, PrefixSweep) or not encoder.sweeps_share_history:
            pytest.skip("this encoder has no sweep of prefixes")
        query = draw_queries(12, seed=2)[0]
        batch = collate_queries(query)
        times = [event.at for event in query.history]
        # A basket ends where the next instant begins.
        ends = [end for end in range(1, 13) if end == 12 or times[end] > times[end - 1]]
        queries = [
            (end, times[end - 1] + interval) for end in ends for interval in (0, 10**11, YEAR)
        ]
        days = days_between(times[0], np.array([time for _, time in queries]))
        swept = encoder.sweep_prefixes(
            batch,
            vectors(encoder, batch),
            torch.from_numpy(days),
            torch.tensor([end for end, _ in queries]),
        )
        for number, (end, time) in enumerate(queries):
            alone = encode(encoder, at_query_time(prefix(query, end), time))
            assert_same(swept.user[number], alone.user[0])
            for part, expected, of_later in (
                (swept.attention, alone.attention, 0.0),
                (swept.repeat_scores, alone.repeat_scores, -math.inf),
            ):
                if part is None or expected is None:
                    assert part is expected
                    continue
                assert_same(part[number, ..., :end], expected[0])
                assert (part[number, ..., end:] == of_later).all()

    def test_a_sweep_equals_separate_queries(self, encoder: SequenceEncoder) -> None:
        if not isinstance(encoder, QuerySweep):
            pytest.skip("this encoder has no sweep")
        for query in draw_queries(6, 1):
            times = [
                query.history[-1].at + interval for interval in (0, 10**6, 10**11, YEAR, 9 * YEAR)
            ]
            batch = collate_queries(query)
            origin = query.history[0].at
            days = torch.from_numpy(days_between(origin, np.array(times)))
            swept = encoder.sweep(batch, vectors(encoder, batch), days)
            single = encode(encoder, *(at_query_time(query, time) for time in times))
            for found, expected in zip(swept, single, strict=True):
                assert (found is None) == (expected is None)
                if isinstance(found, Tensor) and isinstance(expected, Tensor):
                    assert_same(found, expected)

    def test_attention_is_a_distribution_over_the_events(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(*draw_queries(1, 9, 4))
        attention = encoder(batch, vectors(encoder, batch)).attention
        if attention is None:
            pytest.skip("this encoder has no attention")
        is_padding = (torch.arange(9) >= batch.lengths[:, None]).unsqueeze(1).expand_as(attention)
        assert (attention[is_padding] == 0).all()
        if encoder.is_normalised:
            assert (attention >= 0).all()
            assert_same(attention.sum(-1), torch.ones(attention.shape[:2]))

    def test_only_differences_of_times_matter_unless_declared(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(9)[0]
        for by in (1, 3_600_000_000, 20 * YEAR + 7, -40 * YEAR - 1):
            here, there = collate_queries(query), collate_queries(shift_times(query, by))
            there = there._replace(origins=here.origins)
            assert all(torch.equal(*pair) for pair in zip(here, there, strict=True))
            is_same = torch.equal(
                encode(encoder, query).user, encode(encoder, shift_times(query, by)).user
            )
            assert is_same or self.uses_absolute_time
            # A microsecond may be less than a float resolves.
            assert not is_same or not self.uses_absolute_time or abs(by) < DAY

    def test_the_query_time_changes_the_output_iff_time_is_used(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(6)[0]
        now = encode(encoder, query)
        soon = encode(encoder, at_query_time(query, query.query_time + YEAR // 3))
        assert bool((now.user - soon.user).abs().max() > 1e-3) == self.uses_time
        assert torch.equal(now.user, soon.user) == (not self.uses_time)

    def test_a_withheld_query_time_has_no_effect(self, encoder: SequenceEncoder) -> None:
        query = draw_queries(6)[0]
        last = query.history[-1].at
        outputs = [
            encode(encoder, at_query_time(query, last + interval, withheld=True)).user
            for interval in (0, 10**9, YEAR)
        ]
        assert torch.equal(outputs[0], outputs[1])
        assert torch.equal(outputs[0], outputs[2])

    @pytest.mark.parametrize("interval", [0, 1, YEAR, 50 * YEAR])
    def test_outputs_are_finite_for_any_intervals(
        self, encoder: SequenceEncoder, interval: int
    ) -> None:
        single = Query((Event("i1", START),), START + interval)
        equal_times = Query(tuple(Event(f"i{n}", START) for n in range(5)), START + interval)
        decades = Query((Event("i1", START - 30 * YEAR), Event("i2", START)), START + interval)
        for query in (single, equal_times, decades):
            output = encode(encoder, query)
            for part in (output.user, output.attention, output.intensity):
                assert part is None or part.isfinite().all()
            assert output.repeat_scores is None or (output.repeat_scores < float("inf")).all()

    def test_a_frozen_encoder_gives_the_same_output(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(*draw_queries(3, 7))
        expected = vectors(encoder, batch)
        freeze(encoder)
        vectors(encoder, batch)
        assert_same(vectors(encoder, batch), expected)

    def test_a_gradient_reaches_every_parameter(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(*draw_queries(9, 6))
        batch = batch.withhold_query_times(torch.arange(9).expand(2, -1) % 3 == 0)
        if not list(encoder.parameters()):
            pytest.skip("this encoder has no parameters")
        outputs = [part for part in trainable_outputs(encoder, batch) if part.requires_grad]
        loss = sum((part * torch.randn_like(part)).sum() for part in outputs)
        assert isinstance(loss, Tensor)
        loss.backward()  # type: ignore[no-untyped-call]
        for name, parameter in encoder.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.any() or not parameter.numel(), name

    def test_weights_survive_a_round_trip(self, encoder: SequenceEncoder) -> None:
        copy = self.build().eval()
        copy.load_state_dict(encoder.state_dict())
        query = draw_queries(6)[0]
        assert torch.equal(encode(copy, query).user, encode(encoder, query).user)

    def test_the_config_survives_a_round_trip_through_json(self) -> None:
        adapter: TypeAdapter[EncoderConfig] = TypeAdapter(EncoderConfig)
        assert adapter.validate_json(self.config.model_dump_json()) == self.config


def vectors(encoder: SequenceEncoder, batch: SequenceBatch) -> Tensor:
    """Look up the item vectors of a batch in a table that is the same in every test."""
    generator = torch.Generator().manual_seed(2)
    table = torch.randn(ITEMS + 1, encoder.dim, generator=generator)
    table[0] = 0
    return nn.functional.embedding(batch.rows, table)


def encode(encoder: SequenceEncoder, *queries: Query) -> EncoderOutput:
    batch = collate_queries(*queries)
    return encoder(batch, vectors(encoder, batch))


def assert_encodes_alike(exported: ExportedEncoder, encoder: SequenceEncoder) -> None:
    """Compare a program with its encoder, on histories of 1 to 13 events."""
    *queries, last = draw_queries(1, 2, 3, 12, 13)
    for query in (*queries, last, at_query_time(last, last.query_time, withheld=True)):
        batch = collate_queries(query)
        items = vectors(encoder, batch)
        for part, expected in zip(exported(batch, items), encoder(batch, items), strict=True):
            if isinstance(expected, Tensor):
                assert isinstance(part, Tensor)
                assert_same(part, expected)
            else:
                assert part == expected


def trainable_outputs(encoder: SequenceEncoder, batch: SequenceBatch) -> list[Tensor]:
    """Return all outputs that training may use, one tensor each."""
    items = vectors(encoder, batch)
    shape = batch.rows.shape
    if isinstance(encoder, CandidateScorer):
        positions = torch.arange(batch.rows.numel())[(batch.rows > 0).flatten()]
        return [
            encoder.score_candidates(
                batch, items, positions, torch.randn(len(positions), 3, encoder.dim)
            ).scores
        ]
    if not isinstance(encoder, CausalEncoder):
        return [part for part in encoder(batch, items) if isinstance(part, Tensor)]
    states = encoder.encode_positions(batch, items)
    after = torch.full(shape, 1.5, dtype=torch.float64)
    outputs = [states.users, *(layer.evaluate(after) for layer in states.intensities)]
    if states.repeat_scores is not None:
        outputs.append(states.repeat_scores)
    if states.next_time is not None:
        outputs.append(states.next_time.log_density(after))
    return outputs


def require_causal(encoder: SequenceEncoder) -> CausalEncoder:
    if not isinstance(encoder, CausalEncoder):
        pytest.skip("this encoder has no causal pass")
    return encoder


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=CLOSE)
