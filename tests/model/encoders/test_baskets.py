"""The self-attention encoder where it reads baskets as sets."""

import pytest
import torch
from pydantic import ValidationError

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.layers.baskets import average_baskets, number_baskets
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.rotary import RotaryConfig
from tests.contracts.histories import DAY, START, collate_queries, draw_queries, prefix
from tests.contracts.sequence_encoder import (
    SequenceEncoderContract,
    assert_same,
    encode,
    require_causal,
    vectors,
)


def build_config(layers: int = 2, **changed: object) -> SelfAttentionConfig:
    settings: dict[str, object] = {
        "dim": 16,
        "heads": 2,
        "layers": layers,
        "feed_forward": 24,
        "max_history": 40,
        "baskets": True,
        "time_encoding": MercerConfig(periods=4, degree=3),
    }
    return SelfAttentionConfig.model_validate(settings | changed)


def draw_history(*baskets: tuple[str, ...]) -> Query:
    """Lay out baskets a week apart."""
    events = tuple(
        Event(item, START + number * 7 * DAY)
        for number, basket in enumerate(baskets)
        for item in basket
    )
    return Query(events, events[-1].at + 5 * DAY)


class BasketsContract(SequenceEncoderContract):
    uses_time = True

    def test_the_output_at_a_position_equals_that_of_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        """A position within a basket may read the rest of it, so only ends of baskets count."""
        causal = require_causal(encoder)
        query = draw_queries(12)[0]
        batch = collate_queries(query)
        states = causal.encode_positions(batch, vectors(encoder, batch))
        ends = (number_baskets(batch.times).diff(dim=1)[0] > 0).nonzero()[:, 0] + 1
        assert 3 < len(ends) < 11
        for count in [*ends.tolist(), 12]:
            assert_same(states.users[0, count - 1], encode(encoder, prefix(query, count)).user[0])

    def test_later_events_have_no_gradient_at_a_position(self, encoder: SequenceEncoder) -> None:
        """Not those of later baskets."""
        causal = require_causal(encoder)
        batch = collate_queries(draw_history(("i1", "i2"), ("i3",), ("i4", "i5", "i6")))
        items = vectors(encoder, batch).requires_grad_()
        users = causal.encode_positions(batch, items).users
        for position, begins_next in ((0, 2), (1, 2), (2, 3)):
            (gradient,) = torch.autograd.grad(
                users[0, position].square().sum(), items, retain_graph=True
            )
            assert (gradient[0, begins_next:] == 0).all()

    def test_the_order_within_a_basket_has_no_effect(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(draw_history(("i1", "i2", "i3"), ("i4", "i5"), ("i6", "i7", "i8")))
        other = batch._replace(rows=batch.rows[:, [2, 0, 1, 4, 3, 6, 7, 5]])
        expected = encoder(batch, vectors(encoder, batch)).user
        assert_same(encoder(other, vectors(encoder, other)).user, expected)

    def test_the_order_of_baskets_changes_the_output(self, encoder: SequenceEncoder) -> None:
        order = draw_history(("i1", "i2"), ("i3",), ("i6", "i7"))
        other = draw_history(("i3",), ("i1", "i2"), ("i6", "i7"))
        assert (encode(encoder, order).user - encode(encoder, other).user).abs().max() > 1e-3

    def test_selected_positions_equal_the_encoder_output(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, SelfAttention)
        batch = collate_queries(*draw_queries(7, 3, 9))
        positions = torch.arange(3) * batch.rows.shape[1] + batch.lengths - 1
        items = vectors(encoder, batch)
        users = encoder.encode_selected(batch, items, positions)
        if users is None:
            pytest.skip("a pointer is computed at every position")
        assert_same(users, encoder(batch, items).user)


class TestTwoBlocks(BasketsContract):
    config = build_config()


class TestOneBlock(BasketsContract):
    config = build_config(layers=1)


class TestCalendar(BasketsContract):
    config = build_config(calendar=True, position_table=False)


class TestPointer(BasketsContract):
    config = build_config(repeats=True)


class TestKernel(BasketsContract):
    config = build_config(time_encoding=NonstationaryConfig(components=3))
    uses_absolute_time = True


class TestDampedRotation(BasketsContract):
    config = build_config(
        time_encoding=DampedRotationConfig(frequencies=5, learn_frequencies=True), repeats=True
    )


class TestRotary(BasketsContract):
    config = build_config(time_encoding=RotaryConfig(), position_table=False)


class TestRotaryPointer(BasketsContract):
    config = build_config(time_encoding=RotaryConfig(fusion="split_by_head"), repeats=True)


def test_baskets_are_numbered_by_their_times() -> None:
    times = torch.tensor([[0.0, 0.0, 1.5, 1.5, 1.5, 7.0]], dtype=torch.float64)
    assert number_baskets(times).tolist() == [[0, 0, 1, 1, 1, 2]]


def test_an_average_is_of_the_basket_up_to_the_position() -> None:
    content = torch.tensor([[[2.0], [4.0], [10.0], [30.0]]])
    averages = average_baskets(content, torch.tensor([[0, 0, 1, 1]]))
    assert averages[0, :, 0].tolist() == [2.0, 3.0, 10.0, 20.0]


def test_modulation_does_not_read_baskets() -> None:
    with pytest.raises(ValidationError, match="leave out modulation"):
        build_config(modulation={"groups": 3})
