import pytest
import torch
from torch import Tensor

from model.encoders.sasrec import SASRec, SASRecConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.layers.self_modulating import ModulationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.histories import DAY, ITEMS, START, asked_at, draw_queries, laid_out
from tests.contracts.sequence_encoder import (
    SequenceEncoderContract,
    assert_same,
    encode,
    vectors,
)
from tests.model.encoders.slow_sasrec import encode_slowly

GROUPS = 3


def small(**changed: object) -> SASRecConfig:
    return SASRecConfig.model_validate({"dim": 16, "heads": 2, "max_history": 40} | changed)


def some_groups() -> Tensor:
    """Items of no group, of one, and of several."""
    generator = torch.Generator().manual_seed(4)
    marks = (torch.rand(ITEMS + 1, GROUPS, generator=generator) < 0.4).float()
    marks[0] = 0
    return marks


class SASRecContract(SequenceEncoderContract):
    config: SASRecConfig  # type: ignore[misc]

    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = cls.config.build(items=ITEMS)
        if cls.config.modulation is not None:
            assert encoder.item_groups is not None
            encoder.item_groups.tell(some_groups())
        return encoder

    def test_the_formulas_one_event_at_a_time_in_double_precision(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SASRec)
        batch = laid_out(*draw_queries(12, 1, 7, seed=5))
        batch = batch.withhold(torch.arange(12).expand(3, -1) % 5 == 2)
        items = vectors(encoder, batch) / 4
        with torch.no_grad():
            states, encoded = encoder.states(batch, items), encoder(batch, items)
        assert encoded.attention is not None
        for sample, length in enumerate(batch.lengths.tolist()):
            slow = encode_slowly(encoder, batch, items, sample, self.config.heads)
            assert_same(states.users[sample, :length].double(), slow.users)
            assert_same(encoded.user[sample].double(), slow.users[-1])
            assert_same(encoded.attention[sample, :, :length].double(), slow.attention[-1, :])
            if encoded.intensity is not None:
                assert_same(encoded.intensity[sample].double(), slow.intensity[-1].mean(0))


class ModulatedContract(SASRecContract):
    def test_weights_need_not_sum_to_one(self, encoder: SequenceEncoder) -> None:
        assert not encoder.is_normalised
        attention = encode(encoder, *draw_queries(7)).attention
        assert attention is not None
        assert (attention.sum(-1) - 1).abs().max() > 1e-2

    def test_every_layer_says_its_intensities_and_the_last_one_at_the_query_time(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SASRec)
        batch = laid_out(*draw_queries(6, 3))
        items = vectors(encoder, batch)
        layers = encoder.states(batch, items).intensities
        assert len(layers) == self.config.layers
        after = layers[-1].at(batch.query_times - batch.times).mean(1)
        intensity = encoder(batch, items).intensity
        assert intensity is not None
        assert_same(intensity, after[torch.arange(2), batch.lengths - 1])

    def test_until_groups_are_told_attention_is_plain(self) -> None:
        fresh = self.config.build(items=ITEMS).eval()
        attention = encode(fresh, *draw_queries(7)).attention
        assert attention is not None
        assert_same(attention.sum(-1), torch.ones(1, self.config.heads))

    def test_groups_travel_with_the_weights(self, encoder: SequenceEncoder) -> None:
        assert torch.equal(encoder.state_dict()["item_groups.marks"], some_groups())


class TestSASRec(SASRecContract):
    config = small()
    reads_time = False

    def test_when_events_happened_is_not_read(self, encoder: SequenceEncoder) -> None:
        slow = Query((Event("i1", START), Event("i2", START + 90 * DAY)), START + 100 * DAY)
        fast = Query((Event("i1", START), Event("i2", START + 1)), START + 2)
        assert torch.equal(encode(encoder, slow).user, encode(encoder, fast).user)

    def test_order_is_read(self, encoder: SequenceEncoder) -> None:
        order = Query((Event("i1", START), Event("i2", START), Event("i3", START)), START)
        other = Query((Event("i2", START), Event("i1", START), Event("i3", START)), START)
        assert (encode(encoder, order).user - encode(encoder, other).user).abs().max() > 1e-3

    def test_long_item_vectors_weigh_more_as_values_and_no_more_as_what_is_added_to(
        self, encoder: SequenceEncoder
    ) -> None:
        # What sets SASRec apart from other stacks: it normalises queries alone, and adds to those.
        assert isinstance(encoder, SASRec)
        batch = laid_out(*draw_queries(6, 1))
        items = vectors(encoder, batch)
        with torch.no_grad():
            encoder.positions.weight.zero_()
            assert (encoder(batch, items).user - encoder(batch, 3 * items).user).abs().max() > 1e-2
            for name, parameter in encoder.named_parameters():
                if ".value." in name:
                    parameter.zero_()
        assert_same(encoder(batch, items).user, encoder(batch, 3 * items).user)


class TestSASRecPlus(SASRecContract):
    config = small(time_encoding=MercerConfig(periods=4, degree=3))
    reads_time = True


class TestPositionalControl(SASRecContract):
    config = small(time_encoding=PositionalConfig(frequencies=6), layers=1)
    reads_time = False


class TestModulated(ModulatedContract):
    config = small(modulation=ModulationConfig(groups=GROUPS))
    reads_time = True

    def test_without_groups_the_query_time_is_not_read(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, SASRec)
        assert encoder.item_groups is not None
        encoder.item_groups.marks.zero_()
        query = draw_queries(6)[0]
        later = asked_at(query, query.query_time + 100 * DAY)
        assert torch.equal(encode(encoder, query).user, encode(encoder, later).user)


class TestModulatedSASRecPlus(ModulatedContract):
    config = small(
        heads=4,
        layers=1,
        time_encoding=MercerConfig(form="sum", periods=4, degree=3),
        modulation=ModulationConfig(groups=GROUPS),
    )
    reads_time = True


def test_only_a_modulated_encoder_wants_groups() -> None:
    assert small().build(items=ITEMS).item_groups is None
    modulated = small(modulation=ModulationConfig(groups=GROUPS)).build(items=ITEMS)
    assert modulated.item_groups is not None
    assert modulated.item_groups.marks.shape == (ITEMS + 1, GROUPS)


def test_a_kernel_without_features_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="Nonstationary is a kernel without any"):
        small(time_encoding=NonstationaryConfig()).build()


def test_heads_that_do_not_divide_the_width_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="dim=16, heads=3"):
        small(heads=3).build()
