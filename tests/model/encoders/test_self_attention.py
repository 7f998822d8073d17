import pytest
import torch

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.histories import DAY, ITEMS, START, asked_at, draw_queries
from tests.contracts.sequence_encoder import SequenceEncoderContract, encode
from tests.model.encoders.slow_self_attention import furthest_from_slow


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
            marks = encoder.item_groups.marks
            groups, rows = torch.arange(marks.shape[1]), torch.arange(len(marks))[:, None]
            marks.copy_((rows % (len(groups) + 1) == groups) | (rows % 5 == groups))
            marks[0] = 0
        return encoder

    def test_every_position_equals_working_out_every_pair_of_instants(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SelfAttention)
        assert furthest_from_slow(encoder) <= 1e-5


class TestMercerConcat(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3))
    reads_time = True


class TestMercerSum(SelfAttentionContract):
    config = small(MercerConfig(form="sum", periods=6, degree=3))
    reads_time = True


class TestBochner(SelfAttentionContract):
    config = small(BochnerNonparametricConfig(frequencies=12))
    reads_time = True


class TestPositional(SelfAttentionContract):
    config = small(PositionalConfig(frequencies=12))
    reads_time = False

    def test_times_are_not_read_at_all(self, encoder: SequenceEncoder) -> None:
        slow = Query((Event("i1", START), Event("i2", START + 90 * DAY)), START + 100 * DAY)
        fast = Query((Event("i1", START), Event("i2", START + 1)), START + 2)
        assert torch.equal(encode(encoder, slow).user, encode(encoder, fast).user)

    def test_order_is_read(self, encoder: SequenceEncoder) -> None:
        order = Query((Event("i1", START), Event("i2", START), Event("i3", START)), START)
        other = Query((Event("i2", START), Event("i1", START), Event("i3", START)), START)
        assert (encode(encoder, order).user - encode(encoder, other).user).abs().max() > 1e-3


class TestPositionTableAlone(SelfAttentionContract):
    """No features of time or order at all: the stack of SASRec."""

    config = small(PositionalConfig(frequencies=0), repeats=True)
    reads_time = False


class TestWithoutPositionTable(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), position_table=False)
    reads_time = True


class TestWithRepeats(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), repeats=True)
    reads_time = True


class TestPositionalWithRepeats(SelfAttentionContract):
    config = small(PositionalConfig(frequencies=8), repeats=True, position_table=False)
    reads_time = False


class TestWithActions(SelfAttentionContract):
    config = small(BochnerNonparametricConfig(frequencies=8), repeats=True)
    actions = 2
    reads_time = True

    def test_what_was_done_with_an_item_changes_the_answer(self, encoder: SequenceEncoder) -> None:
        viewed = Query((Event("i1", START, "view"),), START + DAY)
        bought = Query((Event("i1", START, "buy"),), START + DAY)
        assert (encode(encoder, viewed).user - encode(encoder, bought).user).abs().max() > 1e-3


class TestSingleBlock(SelfAttentionContract):
    config = small(BochnerNonparametricConfig(frequencies=8), layers=1, heads=4)
    reads_time = True


class TestQueryMLP(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), query="mlp")
    reads_time = True


class TestKernel(SelfAttentionContract):
    config = small(NonstationaryConfig(components=3))
    reads_time = True


class TestModulation(SelfAttentionContract):
    config = small(MercerConfig(periods=4, degree=3), modulation={"groups": 3})
    reads_time = True


class TestEverythingAtOnce(SelfAttentionContract):
    config = small(
        MercerConfig(periods=4, degree=3), query="mlp", repeats=True, modulation={"groups": 3}
    )
    actions = 2
    reads_time = True


class TestEverythingAtOnceWithKernel(SelfAttentionContract):
    config = small(
        NonstationaryConfig(components=3), query="mlp", repeats=True, modulation={"groups": 3}
    )
    actions = 2
    reads_time = True


def test_only_modulation_wants_groups_and_leaves_weights_unnormalised() -> None:
    plain, modulated = small(MercerConfig()), small(MercerConfig(), modulation={"groups": 3})
    assert plain.build(items=5).item_groups is None
    assert plain.build(items=5).is_normalised
    encoder = modulated.build(items=5)
    assert encoder.item_groups is not None
    assert encoder.item_groups.marks.shape == (6, 3)
    assert not encoder.is_normalised
    assert "item_groups.marks" in encoder.state_dict()


def test_items_of_no_group_are_read_as_without_modulation() -> None:
    encoder = small(MercerConfig(), modulation={"groups": 3}).build(items=ITEMS).eval()
    plain = small(MercerConfig()).build().eval()
    plain.load_state_dict(encoder.state_dict(), strict=False)
    query = draw_queries(7)[0]
    torch.testing.assert_close(encode(encoder, query).user, encode(plain, query).user)


def test_a_kernel_cannot_tell_when_it_is_asked_about_one_event() -> None:
    encoder = small(NonstationaryConfig()).build().eval()
    one, several = draw_queries(1, 6)
    answers = [
        (encode(encoder, query).user, encode(encoder, asked_at(query, query.query_time + DAY)).user)
        for query in (one, several)
    ]
    assert torch.equal(*answers[0])
    assert not torch.equal(*answers[1])


def test_without_actions_what_was_done_is_not_read() -> None:
    encoder = small(MercerConfig(periods=2)).build().eval()
    viewed = Query((Event("i1", START, "view"),), START + DAY)
    bought = Query((Event("i1", START, "buy"),), START + DAY)
    assert torch.equal(encode(encoder, viewed).user, encode(encoder, bought).user)


def test_heads_that_do_not_divide_the_width_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="dim=16, heads=3"):
        small(MercerConfig(), heads=3).build()
