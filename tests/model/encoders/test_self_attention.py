"""The self-attention encoder against a reference, in all its configurations."""

import pytest
import torch
from pydantic import ValidationError

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.damped_rotation import DampedRotationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from model.time_encodings.rotary import RotaryConfig
from tests.contracts.histories import (
    DAY,
    ITEMS,
    START,
    at_query_time,
    collate_queries,
    draw_queries,
)
from tests.contracts.operations import CountOperations
from tests.contracts.sequence_encoder import SequenceEncoderContract, encode, vectors
from tests.model.encoders.reference_self_attention import largest_difference


def small(time_encoding: TimeEncodingConfig, **changed: object) -> SelfAttentionConfig:
    settings: dict[str, object] = {
        "dim": 16,
        "heads": 2,
        "layers": 2,
        "feed_forward": 24,
        "max_history": 40,
        "time_encoding": time_encoding,
    }
    return SelfAttentionConfig.model_validate(settings | changed)


class SelfAttentionContract(SequenceEncoderContract):
    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = super().build()
        if encoder.item_groups is not None:
            # Items of one group, of two, and of none.
            membership = encoder.item_groups.membership
            groups, rows = torch.arange(membership.shape[1]), torch.arange(len(membership))[:, None]
            membership.copy_((rows % (len(groups) + 1) == groups) | (rows % 5 == groups))
            membership[0] = 0
        return encoder

    def test_outputs_equal_the_reference(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, SelfAttention)
        assert largest_difference(encoder) <= 1e-5


class TestMercerConcat(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3))
    uses_time = True


class TestMercerSum(SelfAttentionContract):
    config = small(MercerConfig(form="sum", periods=6, degree=3))
    uses_time = True


class TestCalendar(SelfAttentionContract):
    config = small(MercerConfig(periods=3, degree=2), calendar=True)
    uses_time = True


class TestDamping(SelfAttentionContract):
    config = small(MercerConfig(periods=3, degree=2), damping=True)
    uses_time = True


class TestPositionalWithDamping(SelfAttentionContract):
    config = small(PositionalConfig(frequencies=8), damping=True)
    uses_time = False


class TestBochner(SelfAttentionContract):
    config = small(BochnerNonparametricConfig(frequencies=12))
    uses_time = True


class TestPositional(SelfAttentionContract):
    config = small(PositionalConfig(frequencies=12))
    uses_time = False

    def test_times_have_no_effect(self, encoder: SequenceEncoder) -> None:
        slow = Query((Event("i1", START), Event("i2", START + 90 * DAY)), START + 100 * DAY)
        fast = Query((Event("i1", START), Event("i2", START + 1)), START + 2)
        assert torch.equal(encode(encoder, slow).user, encode(encoder, fast).user)

    def test_the_order_of_events_changes_the_output(self, encoder: SequenceEncoder) -> None:
        last = Event("i3", START + 2)
        order = Query((Event("i1", START), Event("i2", START + 1), last), START + 2)
        other = Query((Event("i2", START), Event("i1", START + 1), last), START + 2)
        assert (encode(encoder, order).user - encode(encoder, other).user).abs().max() > 1e-3


class TestPositionTableAlone(SelfAttentionContract):
    """No features of time or relative order, as in SASRec."""

    config = small(PositionalConfig(frequencies=0), repeats=True)
    uses_time = False


class TestWithoutPositionTable(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), position_table=False)
    uses_time = True


class TestWithRepeats(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), repeats=True)
    uses_time = True


class TestPositionalWithRepeats(SelfAttentionContract):
    config = small(PositionalConfig(frequencies=8), repeats=True, position_table=False)
    uses_time = False


class TestWithActions(SelfAttentionContract):
    config = small(BochnerNonparametricConfig(frequencies=8), repeats=True)
    actions = 2
    uses_time = True

    def test_actions_change_the_output(self, encoder: SequenceEncoder) -> None:
        viewed = Query((Event("i1", START, "view"),), START + DAY)
        bought = Query((Event("i1", START, "buy"),), START + DAY)
        assert (encode(encoder, viewed).user - encode(encoder, bought).user).abs().max() > 1e-3


class TestSingleBlock(SelfAttentionContract):
    config = small(BochnerNonparametricConfig(frequencies=8), layers=1, heads=4)
    uses_time = True


class TestQueryMLP(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), query="mlp")
    uses_time = True


class TestKernel(SelfAttentionContract):
    config = small(NonstationaryConfig(components=3))
    uses_time = True
    uses_absolute_time = True


class TestDampedRotation(SelfAttentionContract):
    config = small(DampedRotationConfig(frequencies=5, learn_frequencies=True))
    uses_time = True


class TestDampedRotationAtTheAuthorsPeriods(SelfAttentionContract):
    """The fastest decays by half within a quarter of a second."""

    config = small(
        DampedRotationConfig.from_paper_code().model_copy(
            update={"learn_frequencies": True, "learn_rates": True}
        ),
        calendar=True,
        damping=True,
    )
    uses_time = True


class TestRotary(SelfAttentionContract):
    config = small(RotaryConfig(), position_table=False)
    uses_time = True


class TestRotaryByHead(SelfAttentionContract):
    config = small(RotaryConfig(fusion="split_by_head"), repeats=True, heads=4)
    uses_time = True


class TestRotaryEarlyFusion(SelfAttentionContract):
    config = small(RotaryConfig(fusion="early"), damping=True, layers=1)
    uses_time = True


class TestRotaryWithOddHeads(SelfAttentionContract):
    """The last coordinate of a head has no partner, and does not turn."""

    config = small(RotaryConfig(), dim=14)
    uses_time = True


class TestRotaryOrderAlone(SelfAttentionContract):
    config = small(RotaryConfig(time_share=0), position_table=False)
    uses_time = False


class TestModulation(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), modulation={"groups": 3})
    uses_time = True


class TestAllOptions(SelfAttentionContract):
    config = small(
        MercerConfig(periods=4, degree=3), query="mlp", repeats=True, modulation={"groups": 3}
    )
    actions = 2
    uses_time = True


class TestAllOptionsWithKernel(SelfAttentionContract):
    config = small(
        NonstationaryConfig(components=3), query="mlp", repeats=True, modulation={"groups": 3}
    )
    actions = 2
    uses_time = True
    uses_absolute_time = True


class TestAllOptionsWithDampedRotation(SelfAttentionContract):
    config = small(
        DampedRotationConfig(frequencies=5, learn_frequencies=True),
        query="mlp",
        repeats=True,
        modulation={"groups": 3},
    )
    actions = 2
    uses_time = True


class TestAllOptionsWithRotary(SelfAttentionContract):
    config = small(RotaryConfig(), query="mlp", repeats=True, modulation={"groups": 3})
    actions = 2
    uses_time = True


def test_only_modulated_encoders_have_groups_and_free_weights() -> None:
    plain, modulated = small(MercerConfig()), small(MercerConfig(), modulation={"groups": 3})
    assert plain.build(items=5).item_groups is None
    assert plain.build(items=5).is_normalised
    encoder = modulated.build(items=5)
    assert encoder.item_groups is not None
    assert encoder.item_groups.membership.shape == (6, 3)
    assert not encoder.is_normalised
    assert "item_groups.membership" in encoder.state_dict()


def test_items_of_no_group_are_encoded_as_without_modulation() -> None:
    encoder = small(MercerConfig(), modulation={"groups": 3}).build(items=ITEMS).eval()
    plain = small(MercerConfig()).build().eval()
    plain.load_state_dict(encoder.state_dict(), strict=False)
    query = draw_queries(7)[0]
    torch.testing.assert_close(encode(encoder, query).user, encode(plain, query).user)


def test_with_a_kernel_a_single_event_has_no_query_time() -> None:
    encoder = small(NonstationaryConfig()).build().eval()
    one, several = draw_queries(1, 6)
    outputs = [
        (
            encode(encoder, query).user,
            encode(encoder, at_query_time(query, query.query_time + DAY)).user,
        )
        for query in (one, several)
    ]
    assert torch.equal(*outputs[0])
    assert not torch.equal(*outputs[1])


def test_without_action_embeddings_actions_have_no_effect() -> None:
    encoder = small(MercerConfig(periods=2)).build().eval()
    viewed = Query((Event("i1", START, "view"),), START + DAY)
    bought = Query((Event("i1", START, "buy"),), START + DAY)
    assert torch.equal(encode(encoder, viewed).user, encode(encoder, bought).user)


def test_heads_of_a_rotation_have_two_planes() -> None:
    small(RotaryConfig(), dim=8, heads=2)
    with pytest.raises(ValidationError, match="8 dimensions in 8 heads are 1 wide; set fewer"):
        small(RotaryConfig(), dim=8, heads=8)
    small(MercerConfig(), dim=8, heads=8)


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="dim=16, heads=3"):
        small(MercerConfig(), heads=3).build()


@pytest.mark.parametrize("baskets", [False, True])
def test_more_query_times_take_no_more_operations(baskets: bool) -> None:
    encoder = SelfAttentionConfig(dim=16, feed_forward=24, baskets=baskets).build().eval()
    batch = collate_queries(*draw_queries(12, seed=2))
    items = vectors(encoder, batch)

    def count(query_times: int) -> int:
        ends = torch.full((query_times,), 12)
        days = batch.times[0, -1] + torch.arange(query_times).double()
        with CountOperations() as operations:
            encoder.sweep_prefixes(batch, items, days, ends)
        return operations.number

    assert count(50) == count(2)
