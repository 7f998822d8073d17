import pytest
import torch

from model.encoders.self_attention import SelfAttention, SelfAttentionConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.time_encodings import TimeEncodingConfig
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.histories import DAY, START, draw_queries, laid_out
from tests.contracts.sequence_encoder import SequenceEncoderContract, encode, vectors
from tests.model.encoders.slow_self_attention import encode_slowly


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
    def test_rotation_equals_features_of_every_pairwise_interval(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SelfAttention)
        batch = laid_out(*draw_queries(14, 1, 9, 3, seed=5))
        batch = batch.withhold(torch.arange(14).expand(4, -1) % 5 == 2)
        items = vectors(encoder, batch)
        with torch.no_grad():
            states, encoded = encoder.states(batch, items), encoder(batch, items)
        assert encoded.attention is not None
        worst = 0.0
        for sample, length in enumerate(batch.lengths.tolist()):
            slow = encode_slowly(encoder, batch, items, sample)
            pairs = [
                (states.users[sample, :length], slow.users),
                (encoded.user[sample], slow.users[-1]),
                (encoded.attention[sample, :, :length], slow.attention[-1]),
            ]
            if states.repeats is not None and slow.repeats is not None:
                seen = torch.ones(length, length, dtype=torch.bool).tril()
                pairs.append((states.repeats[sample, :length, :length][seen], slow.repeats[seen]))
            for fast, expected in pairs:
                worst = max(worst, float((fast.double() - expected).abs().max()))
        assert worst <= 1e-5


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


def test_without_actions_what_was_done_is_not_read() -> None:
    encoder = small(MercerConfig(periods=2)).build().eval()
    viewed = Query((Event("i1", START, "view"),), START + DAY)
    bought = Query((Event("i1", START, "buy"),), START + DAY)
    assert torch.equal(encode(encoder, viewed).user, encode(encoder, bought).user)


def test_heads_that_do_not_divide_the_width_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="dim=16, heads=3"):
        small(MercerConfig(), heads=3).build()
