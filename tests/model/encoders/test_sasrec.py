"""SASRec, SASRec+ and SASRec with self-modulation against a reference."""

import pytest
import torch
from torch import Tensor

from model.encoders.sasrec import SASRec, SASRecConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.layers.self_modulation import ModulationConfig
from model.time_encodings.mercer import MercerConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.histories import (
    DAY,
    ITEMS,
    START,
    at_query_time,
    collate_queries,
    draw_queries,
)
from tests.contracts.sequence_encoder import (
    SequenceEncoderContract,
    assert_same,
    encode,
    vectors,
)
from tests.model.encoders.reference_sasrec import encode_reference

GROUPS = 3


def small(**changed: object) -> SASRecConfig:
    return SASRecConfig.model_validate({"dim": 16, "heads": 2, "max_history": 40} | changed)


def some_groups() -> Tensor:
    """Items of no group, of one, and of several."""
    generator = torch.Generator().manual_seed(4)
    membership = (torch.rand(ITEMS + 1, GROUPS, generator=generator) < 0.4).float()
    membership[0] = 0
    return membership


class SASRecContract(SequenceEncoderContract):
    config: SASRecConfig  # type: ignore[misc]

    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = cls.config.build(items=ITEMS)
        if cls.config.modulation is not None:
            assert encoder.item_groups is not None
            encoder.item_groups.set_membership(some_groups())
        return encoder

    def test_outputs_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, SASRec)
        batch = collate_queries(*draw_queries(12, 1, 7, seed=5))
        batch = batch.withhold_query_times(torch.arange(12).expand(3, -1) % 5 == 2)
        items = vectors(encoder, batch) / 4
        with torch.no_grad():
            states, encoded = encoder.encode_positions(batch, items), encoder(batch, items)
        assert encoded.attention is not None
        for sample, length in enumerate(batch.lengths.tolist()):
            reference = encode_reference(encoder, batch, items, sample, self.config.heads)
            assert_same(states.users[sample, :length].double(), reference.users)
            assert_same(encoded.user[sample].double(), reference.users[-1])
            assert_same(encoded.attention[sample, :, :length].double(), reference.attention[-1, :])
            if encoded.intensity is not None:
                assert_same(encoded.intensity[sample].double(), reference.intensity[-1].mean(0))


class ModulatedContract(SASRecContract):
    def test_weights_need_not_sum_to_one(self, encoder: SequenceEncoder) -> None:
        assert not encoder.is_normalised
        attention = encode(encoder, *draw_queries(7)).attention
        assert attention is not None
        assert (attention.sum(-1) - 1).abs().max() > 1e-2

    def test_the_intensity_is_the_last_layers_at_the_query_time(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SASRec)
        batch = collate_queries(*draw_queries(6, 3))
        items = vectors(encoder, batch)
        layers = encoder.encode_positions(batch, items).intensities
        assert len(layers) == self.config.layers
        after = layers[-1].evaluate(batch.query_times - batch.times).mean(1)
        intensity = encoder(batch, items).intensity
        assert intensity is not None
        assert_same(intensity, after[torch.arange(2), batch.lengths - 1])

    def test_without_membership_attention_is_not_modulated(self) -> None:
        fresh = self.config.build(items=ITEMS).eval()
        attention = encode(fresh, *draw_queries(7)).attention
        assert attention is not None
        assert_same(attention.sum(-1), torch.ones(1, self.config.heads))

    def test_the_state_dict_contains_the_membership(self, encoder: SequenceEncoder) -> None:
        assert torch.equal(encoder.state_dict()["item_groups.membership"], some_groups())


class TestSASRec(SASRecContract):
    config = small()
    uses_time = False

    def test_event_times_have_no_effect(self, encoder: SequenceEncoder) -> None:
        slow = Query((Event("i1", START), Event("i2", START + 90 * DAY)), START + 100 * DAY)
        fast = Query((Event("i1", START), Event("i2", START + 1)), START + 2)
        assert torch.equal(encode(encoder, slow).user, encode(encoder, fast).user)

    def test_the_order_of_events_changes_the_output(self, encoder: SequenceEncoder) -> None:
        last = Event("i3", START + 2)
        order = Query((Event("i1", START), Event("i2", START + 1), last), START + 2)
        other = Query((Event("i2", START), Event("i1", START + 1), last), START + 2)
        assert (encode(encoder, order).user - encode(encoder, other).user).abs().max() > 1e-3

    def test_only_values_depend_on_the_length_of_item_vectors(
        self, encoder: SequenceEncoder
    ) -> None:
        # SASRec normalises the queries only, and its residual connections add the normalised ones.
        assert isinstance(encoder, SASRec)
        batch = collate_queries(*draw_queries(6, 1))
        items = vectors(encoder, batch)
        with torch.no_grad():
            encoder.positions.weight.zero_()
            assert (encoder(batch, items).user - encoder(batch, 3 * items).user).abs().max() > 1e-2
            for name, parameter in encoder.named_parameters():
                if ".value_proj." in name:
                    parameter.zero_()
        assert_same(encoder(batch, items).user, encoder(batch, 3 * items).user)


class TestSASRecPlus(SASRecContract):
    config = small(time_encoding=MercerConfig(periods=4, degree=3))
    uses_time = True


class TestPositionalControl(SASRecContract):
    config = small(time_encoding=PositionalConfig(frequencies=6), layers=1)
    uses_time = False


class TestModulated(ModulatedContract):
    config = small(modulation=ModulationConfig(groups=GROUPS))
    uses_time = True

    def test_without_membership_the_query_time_has_no_effect(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, SASRec)
        assert encoder.item_groups is not None
        encoder.item_groups.membership.zero_()
        query = draw_queries(6)[0]
        later = at_query_time(query, query.query_time + 100 * DAY)
        assert torch.equal(encode(encoder, query).user, encode(encoder, later).user)


class TestModulatedSASRecPlus(ModulatedContract):
    config = small(
        heads=4,
        layers=1,
        time_encoding=MercerConfig(form="sum", periods=4, degree=3),
        modulation=ModulationConfig(groups=GROUPS),
    )
    uses_time = True


def test_only_modulated_encoders_have_item_groups() -> None:
    assert small().build(items=ITEMS).item_groups is None
    modulated = small(modulation=ModulationConfig(groups=GROUPS)).build(items=ITEMS)
    assert modulated.item_groups is not None
    assert modulated.item_groups.membership.shape == (ITEMS + 1, GROUPS)


def test_a_time_kernel_is_rejected() -> None:
    with pytest.raises(ValueError, match="Nonstationary is a kernel without any"):
        small(time_encoding=NonstationaryConfig()).build()


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match="dim=16, heads=3"):
        small(heads=3).build()
