import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from model.batch import SequenceBatch
from model.encoders import din
from model.encoders.din import DINConfig
from model.history import Query
from model.interfaces import (
    CandidateScorer,
    EveryPosition,
    Judged,
    SequenceEncoder,
)
from model.layers.self_modulating import ModulationConfig
from tests.contracts.histories import ITEMS, YEAR, asked_at, draw_queries, laid_out, prefix
from tests.contracts.sequence_encoder import (
    SequenceEncoderContract,
    assert_same,
    encode,
    vectors,
)

GROUPS = 3
Weights = dict[str, Tensor]


def small(**changed: object) -> DINConfig:
    return DINConfig.model_validate({"dim": 16, "hidden": (12, 6), "max_history": 40} | changed)


def some_groups() -> Tensor:
    """Items of no group, of one, and of several."""
    generator = torch.Generator().manual_seed(4)
    marks = (torch.rand(ITEMS + 1, GROUPS, generator=generator) < 0.4).float()
    marks[0] = 0
    return marks


def drawn_candidates(questions: int, count: int = 4) -> Tensor:
    return torch.randn(questions, count, 16, generator=torch.Generator().manual_seed(6))


def places(batch: SequenceBatch) -> Tensor:
    """Every position that is no padding."""
    return torch.arange(batch.rows.numel())[(batch.rows > 0).flatten()]


def judge(encoder: SequenceEncoder, batch: SequenceBatch, at: Tensor, candidates: Tensor) -> Judged:
    assert isinstance(encoder, CandidateScorer)
    return encoder.judge(batch, vectors(encoder, batch), at, candidates)


def judge_last(encoder: SequenceEncoder, query: Query, candidates: Tensor) -> Judged:
    batch = laid_out(query)
    return judge(encoder, batch, batch.lengths - 1, candidates)


def weights_of(judged: Judged) -> Tensor:
    assert judged.attention is not None
    return judged.attention


class DINContract(SequenceEncoderContract):
    config: DINConfig  # type: ignore[misc]

    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = cls.config.build(items=ITEMS)
        if cls.config.modulation is not None:
            assert encoder.item_groups is not None
            encoder.item_groups.tell(some_groups())
        return encoder

    def test_it_judges_and_so_answers_no_position_without_a_candidate(
        self, encoder: SequenceEncoder
    ) -> None:
        assert isinstance(encoder, CandidateScorer)
        assert not isinstance(encoder, EveryPosition)
        assert encode(encoder, *draw_queries(4)).attention is None

    def test_the_formulas_one_event_at_a_time_in_double_precision(
        self, encoder: SequenceEncoder
    ) -> None:
        batch = laid_out(*draw_queries(8, 1, 5))
        batch = batch.withhold(torch.arange(8).expand(3, -1) % 5 == 2)
        asked = places(batch)[torch.randperm(14)]
        candidates = drawn_candidates(len(asked))
        judged = judge(encoder, batch, asked, candidates)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        items = vectors(encoder, batch).double()
        for question, position in enumerate(asked.tolist()):
            sample, place = divmod(position, 8)
            for number, candidate in enumerate(candidates[question].double()):
                slow = self.judge_slowly(
                    weights, batch, list(items[sample, : place + 1]), position, candidate
                )
                assert_same(judged.scores[question, number].double(), slow.score)
                found = weights_of(judged)[question, number]
                assert_same(found[: place + 1].double(), slow.weights)
                assert (found[place + 1 :] == 0).all()

    def judge_slowly(
        self,
        weights: Weights,
        batch: SequenceBatch,
        events: list[Tensor],
        position: int,
        q: Tensor,
    ) -> "Slow":
        activations = []
        for k in events:
            unit = torch.cat((q, k, q - k, q * k))
            for layer in ("first", "second"):
                unit = torch.sigmoid(linear(weights, f"activation.{layer}", unit))
            activations.append(float(linear(weights, "activation.last", unit)))
        if self.config.weights == "softmax":
            masses = [math.exp(activation / math.sqrt(len(q))) for activation in activations]
            activations = [mass / sum(masses) for mass in masses]
        if self.config.modulation is not None:
            activations = self.modulate_slowly(weights, batch, events, position, activations)
        interest = sum(share * k for share, k in zip(activations, events, strict=True))
        assert isinstance(interest, Tensor)
        inner = torch.cat((linear(weights, "interest", interest), q))
        for layer in (1, 3):
            inner = torch.sigmoid(linear(weights, f"judgement.{layer}", inner))
        return Slow(
            linear(weights, "judgement.5", inner).squeeze(), torch.tensor(activations).double()
        )

    def modulate_slowly(
        self,
        weights: Weights,
        batch: SequenceBatch,
        events: list[Tensor],
        position: int,
        shares: list[float],
    ) -> list[float]:
        """Each event's share times the intensities of its groups, as the candidate sees them."""
        sample, place = divmod(position, batch.rows.shape[1])
        history = sum(
            share * linear(weights, "modulation.value", k)
            for share, k in zip(shares, events, strict=True)
        )
        assert isinstance(history, Tensor)
        inside = linear(weights, "modulation.endogenous", history).view(GROUPS, -1)
        if batch.query_given[sample, place]:
            wait = float(batch.query_times[sample, place] - batch.times[sample, place])
            inside = inside + weights["modulation.exogenous"] * math.log1p(wait)
        else:
            inside = inside + weights["modulation.withheld"]
        drive = (weights["modulation.direction"] / (1 + torch.exp(-inside))).sum(-1)
        drive = drive + weights.get("modulation.base_rate", 0.0)
        scale = weights["modulation.log_scale"].exp()
        intensity = scale * torch.log1p(torch.exp(drive / scale))
        marks = weights["item_groups.marks"][batch.rows[sample]]
        return [
            share * (float(mark @ intensity) if mark.any() else 1.0)
            for share, mark in zip(shares, marks[: place + 1], strict=True)
        ]

    def test_judging_at_a_position_equals_judging_after_its_prefix(
        self, encoder: SequenceEncoder
    ) -> None:
        query = draw_queries(9)[0]
        candidates = drawn_candidates(9)
        judged = judge(encoder, laid_out(query), torch.arange(9), candidates)
        for count in range(1, 10):
            alone = judge_last(encoder, prefix(query, count), candidates[count - 1 : count])
            assert_same(judged.scores[count - 1], alone.scores[0])
            assert_same(weights_of(judged)[count - 1, :, :count], weights_of(alone)[0])

    def test_a_candidate_alone_is_judged_as_in_company(self, encoder: SequenceEncoder) -> None:
        query, candidates = draw_queries(6)[0], drawn_candidates(1, 7)
        together = judge_last(encoder, query, candidates)
        for number in range(7):
            alone = judge_last(encoder, query, candidates[:, [number]])
            assert_same(alone.scores[0, 0], together.scores[0, number])
            assert_same(weights_of(alone)[0, 0], weights_of(together)[0, number])

    def test_neither_neighbours_nor_padding_change_a_judgement(
        self, encoder: SequenceEncoder
    ) -> None:
        queries, candidates = draw_queries(7, 2), drawn_candidates(2)
        batch = laid_out(*queries)
        last = torch.tensor([6, 7 + 1])
        together = judge(encoder, batch, last, candidates)
        for number, query in enumerate(queries):
            alone = judge_last(encoder, query, candidates[[number]])
            assert_same(together.scores[number], alone.scores[0])
        assert isinstance(encoder, CandidateScorer)
        is_padding = torch.arange(7) >= batch.lengths[:, None]
        dirty = encoder.judge(
            batch._replace(
                times=batch.times.masked_fill(is_padding, 77.7),
                query_times=batch.query_times.masked_fill(is_padding, -1e5),
                query_given=batch.query_given & ~is_padding,
            ),
            vectors(encoder, batch).masked_fill(is_padding.unsqueeze(-1), 9.0),
            last,
            candidates,
        )
        assert torch.equal(dirty.scores, together.scores)
        assert torch.equal(weights_of(dirty), weights_of(together))

    @pytest.mark.parametrize("chunk", [1, 300, 1_000])
    def test_it_judges_as_well_a_few_at_a_time(
        self, encoder: SequenceEncoder, chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch = laid_out(*draw_queries(5, 7))
        asked = places(batch).flip(0)
        candidates = drawn_candidates(len(asked))
        whole = judge(encoder, batch, asked, candidates)
        monkeypatch.setattr(din, "CHUNK", chunk)
        parts = judge(encoder, batch, asked, candidates)
        assert_same(parts.scores, whole.scores)
        assert_same(weights_of(parts), weights_of(whole))

    def test_the_query_time_changes_a_judgement_if_and_only_if_time_is_read(
        self, encoder: SequenceEncoder
    ) -> None:
        query, candidates = draw_queries(6)[0], drawn_candidates(1)
        now = judge_last(encoder, query, candidates)
        later = judge_last(encoder, asked_at(query, query.query_time + YEAR), candidates)
        assert torch.equal(now.scores, later.scores) == (not self.reads_time)


class Slow(NamedTuple):
    score: Tensor
    weights: Tensor


def linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    mapped = weights[f"{name}.weight"] @ vector
    return mapped + weights[f"{name}.bias"] if f"{name}.bias" in weights else mapped


class TestDIN(DINContract):
    config = small()
    reads_time = False

    def test_weights_are_a_distribution_for_every_candidate(self, encoder: SequenceEncoder) -> None:
        judged = judge_last(encoder, draw_queries(6)[0], drawn_candidates(1))
        assert encoder.is_normalised
        assert (weights_of(judged) > 0).all()
        assert_same(weights_of(judged).sum(-1), torch.ones(1, 4))
        assert (weights_of(judged)[0, 0] - weights_of(judged)[0, 1]).abs().max() > 1e-4

    def test_candidates_are_proposed_by_the_mean_of_the_history(
        self, encoder: SequenceEncoder
    ) -> None:
        batch = laid_out(*draw_queries(5, 2))
        items = vectors(encoder, batch)
        user = encoder(batch, items).user
        assert_same(user[0], items[0].mean(0))
        assert_same(user[1], items[1, :2].mean(0))


class TestFreeWeights(DINContract):
    config = small(weights="free")
    reads_time = False

    def test_weights_need_not_sum_to_one(self, encoder: SequenceEncoder) -> None:
        judged = judge_last(encoder, draw_queries(6)[0], drawn_candidates(1))
        assert not encoder.is_normalised
        assert (weights_of(judged).sum(-1) - 1).abs().min() > 1e-2


class TestModulated(DINContract):
    config = small(modulation=ModulationConfig(groups=GROUPS))
    reads_time = True

    def test_the_intensities_at_the_query_time_are_told(self, encoder: SequenceEncoder) -> None:
        assert not encoder.is_normalised
        query = draw_queries(6)[0]
        now = encode(encoder, query).intensity
        later = encode(encoder, asked_at(query, query.query_time + YEAR)).intensity
        assert now is not None
        assert later is not None
        assert now.shape == (1, GROUPS)
        assert (now > 0).all()
        assert (now - later).abs().max() > 1e-3

    def test_asked_at_once_and_not_told_when_are_not_the_same(
        self, encoder: SequenceEncoder
    ) -> None:
        query, candidates = draw_queries(6)[0], drawn_candidates(1)
        last = query.history[-1].at
        told = judge_last(encoder, asked_at(query, last), candidates)
        untold = judge_last(encoder, asked_at(query, last, withheld=True), candidates)
        assert (told.scores - untold.scores).abs().max() > 1e-5


class TestModulatedFreeWeights(DINContract):
    config = small(weights="free", modulation=ModulationConfig(groups=GROUPS, base_rate=True))
    reads_time = True


def test_only_a_modulated_encoder_wants_groups() -> None:
    assert small().build(items=ITEMS).item_groups is None
    modulated = small(modulation=ModulationConfig(groups=GROUPS)).build(items=ITEMS)
    assert modulated.item_groups is not None
    assert modulated.item_groups.marks.shape == (ITEMS + 1, GROUPS)
