"""DIN against its formulas, with and without self-modulation."""

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
    CandidateScores,
    CausalEncoder,
    SequenceEncoder,
)
from model.layers.self_modulation import ModulationConfig
from tests.contracts.histories import (
    ITEMS,
    YEAR,
    at_query_time,
    collate_queries,
    draw_queries,
    prefix,
)
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
    membership = (torch.rand(ITEMS + 1, GROUPS, generator=generator) < 0.4).float()
    membership[0] = 0
    return membership


def random_candidates(queries: int, count: int = 4) -> Tensor:
    return torch.randn(queries, count, 16, generator=torch.Generator().manual_seed(6))


def event_positions(batch: SequenceBatch) -> Tensor:
    """Every position that is not padding."""
    return torch.arange(batch.rows.numel())[(batch.rows > 0).flatten()]


def score_candidates(
    encoder: SequenceEncoder, batch: SequenceBatch, at: Tensor, candidates: Tensor
) -> CandidateScores:
    assert isinstance(encoder, CandidateScorer)
    return encoder.score_candidates(batch, vectors(encoder, batch), at, candidates)


def score_at_last(encoder: SequenceEncoder, query: Query, candidates: Tensor) -> CandidateScores:
    batch = collate_queries(query)
    return score_candidates(encoder, batch, batch.lengths - 1, candidates)


def weights_of(scored: CandidateScores) -> Tensor:
    assert scored.attention is not None
    return scored.attention


def prelu(weights: Weights, name: str, values: Tensor) -> Tensor:
    return torch.where(values > 0, values, weights[f"{name}.weight"] * values)


class DINContract(SequenceEncoderContract):
    config: DINConfig  # type: ignore[misc]

    @classmethod
    def build(cls) -> SequenceEncoder:
        encoder = cls.config.build(items=ITEMS)
        encoder.item_scale.mean_square.fill_(0.3)
        encoder.history_scale.mean_square.fill_(0.04)
        if cls.config.modulation is not None:
            assert encoder.item_groups is not None
            encoder.item_groups.set_membership(some_groups())
        return encoder

    def test_outputs_at_a_position_need_a_candidate(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, CandidateScorer)
        assert not isinstance(encoder, CausalEncoder)
        assert encode(encoder, *draw_queries(4)).attention is None

    def test_outputs_follow_the_formulas(self, encoder: SequenceEncoder) -> None:
        batch = collate_queries(*draw_queries(8, 1, 5))
        batch = batch.withhold_query_times(torch.arange(8).expand(3, -1) % 5 == 2)
        positions = event_positions(batch)[torch.randperm(14)]
        candidates = random_candidates(len(positions))
        scored = score_candidates(encoder, batch, positions, candidates)
        weights = {name: tensor.double() for name, tensor in encoder.state_dict().items()}
        items = vectors(encoder, batch).double()
        for query, position in enumerate(positions.tolist()):
            sample, last = divmod(position, 8)
            for number, candidate in enumerate(candidates[query].double()):
                expected = self.reference_score(
                    weights, batch, list(items[sample, : last + 1]), position, candidate
                )
                assert_same(scored.scores[query, number].double(), expected.score)
                found = weights_of(scored)[query, number]
                assert_same(found[: last + 1].double(), expected.weights)
                assert (found[last + 1 :] == 0).all()

    def reference_score(
        self,
        weights: Weights,
        batch: SequenceBatch,
        events: list[Tensor],
        position: int,
        q: Tensor,
    ) -> "Reference":
        activations = []
        q = q / weights["item_scale.mean_square"].sqrt()
        scaled = [k / weights["item_scale.mean_square"].sqrt() for k in events]
        for k in scaled:
            unit = torch.cat((q, k, q - k, q * k))
            for layer in (1, 2):
                unit = linear(weights, f"activation.linear{layer}", unit)
                unit = prelu(weights, f"activation.activation{layer}", unit)
            activations.append(float(linear(weights, "activation.out_proj", unit)))
        if self.config.weights == "softmax":
            exponentials = [math.exp(activation / math.sqrt(len(q))) for activation in activations]
            activations = [value / sum(exponentials) for value in exponentials]
        if self.config.modulation is not None:
            activations = self.reference_modulation(weights, batch, events, position, activations)
        interest = sum(share * k for share, k in zip(activations, scaled, strict=True))
        assert isinstance(interest, Tensor)
        interest = interest / weights["history_scale.mean_square"].sqrt()
        inner = torch.cat((linear(weights, "interest_proj", interest), q))
        for layer in (1, 3):
            inner = linear(weights, f"scoring.{layer}", inner)
            inner = prelu(weights, f"scoring.{layer + 1}", inner)
        return Reference(
            linear(weights, "scoring.5", inner).squeeze(), torch.tensor(activations).double()
        )

    def reference_modulation(
        self,
        weights: Weights,
        batch: SequenceBatch,
        events: list[Tensor],
        position: int,
        shares: list[float],
    ) -> list[float]:
        """Scale each event's weight by its groups' intensities, given the candidate's context."""
        sample, last = divmod(position, batch.rows.shape[1])
        context = sum(
            share * linear(weights, "modulation.value_proj", k)
            for share, k in zip(shares, events, strict=True)
        )
        assert isinstance(context, Tensor)
        inside = linear(weights, "modulation.endogenous", context).view(GROUPS, -1)
        if batch.query_given[sample, last]:
            interval = float(batch.query_times[sample, last] - batch.times[sample, last])
            inside = inside + weights["modulation.exogenous"] * math.log1p(interval)
        else:
            inside = inside + weights["modulation.withheld"]
        drive = (weights["modulation.direction"] / (1 + torch.exp(-inside))).sum(-1)
        drive = drive + weights.get("modulation.base_rate", 0.0)
        scale = weights["modulation.log_scale"].exp()
        intensity = scale * torch.log1p(torch.exp(drive / scale))
        membership = weights["item_groups.membership"][batch.rows[sample]]
        return [
            share * (float(row @ intensity) if row.any() else 1.0)
            for share, row in zip(shares, membership[: last + 1], strict=True)
        ]

    def test_scores_at_a_position_equal_those_of_its_prefix(self, encoder: SequenceEncoder) -> None:
        query = draw_queries(9)[0]
        candidates = random_candidates(9)
        scored = score_candidates(encoder, collate_queries(query), torch.arange(9), candidates)
        for count in range(1, 10):
            alone = score_at_last(encoder, prefix(query, count), candidates[count - 1 : count])
            assert_same(scored.scores[count - 1], alone.scores[0])
            assert_same(weights_of(scored)[count - 1, :, :count], weights_of(alone)[0])

    def test_scores_do_not_depend_on_the_other_candidates(self, encoder: SequenceEncoder) -> None:
        query, candidates = draw_queries(6)[0], random_candidates(1, 7)
        together = score_at_last(encoder, query, candidates)
        for number in range(7):
            alone = score_at_last(encoder, query, candidates[:, [number]])
            assert_same(alone.scores[0, 0], together.scores[0, number])
            assert_same(weights_of(alone)[0, 0], weights_of(together)[0, number])

    def test_scores_do_not_depend_on_the_batch_or_padding(self, encoder: SequenceEncoder) -> None:
        queries, candidates = draw_queries(7, 2), random_candidates(2)
        batch = collate_queries(*queries)
        last = torch.tensor([6, 7 + 1])
        together = score_candidates(encoder, batch, last, candidates)
        for number, query in enumerate(queries):
            alone = score_at_last(encoder, query, candidates[[number]])
            assert_same(together.scores[number], alone.scores[0])
        assert isinstance(encoder, CandidateScorer)
        is_padding = torch.arange(7) >= batch.lengths[:, None]
        dirty = encoder.score_candidates(
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
    def test_the_size_of_chunks_does_not_change_the_scores(
        self, encoder: SequenceEncoder, chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch = collate_queries(*draw_queries(5, 7))
        positions = event_positions(batch).flip(0)
        candidates = random_candidates(len(positions))
        whole = score_candidates(encoder, batch, positions, candidates)
        monkeypatch.setattr(din, "MAX_CHUNK_ELEMENTS", chunk)
        parts = score_candidates(encoder, batch, positions, candidates)
        assert_same(parts.scores, whole.scores)
        assert_same(weights_of(parts), weights_of(whole))

    def test_the_query_time_matters_only_with_modulation(self, encoder: SequenceEncoder) -> None:
        query, candidates = draw_queries(6)[0], random_candidates(1)
        now = score_at_last(encoder, query, candidates)
        later = score_at_last(encoder, at_query_time(query, query.query_time + YEAR), candidates)
        assert torch.equal(now.scores, later.scores) == (not self.uses_time)


class Reference(NamedTuple):
    score: Tensor
    weights: Tensor


def linear(weights: Weights, name: str, vector: Tensor) -> Tensor:
    mapped = weights[f"{name}.weight"] @ vector
    return mapped + weights[f"{name}.bias"] if f"{name}.bias" in weights else mapped


class TestDIN(DINContract):
    config = small()
    uses_time = False

    def test_weights_are_a_distribution_for_every_candidate(self, encoder: SequenceEncoder) -> None:
        scored = score_at_last(encoder, draw_queries(6)[0], random_candidates(1))
        assert encoder.is_normalised
        assert (weights_of(scored) > 0).all()
        assert_same(weights_of(scored).sum(-1), torch.ones(1, 4))
        assert (weights_of(scored)[0, 0] - weights_of(scored)[0, 1]).abs().max() > 1e-4

    def test_candidates_are_retrieved_by_the_mean_item_vector(
        self, encoder: SequenceEncoder
    ) -> None:
        batch = collate_queries(*draw_queries(5, 2))
        items = vectors(encoder, batch)
        user = encoder(batch, items).user
        assert_same(user[0], items[0].mean(0))
        assert_same(user[1], items[1, :2].mean(0))


class TestFreeWeights(DINContract):
    config = small(weights="free")
    uses_time = False

    def test_weights_need_not_sum_to_one(self, encoder: SequenceEncoder) -> None:
        scored = score_at_last(encoder, draw_queries(6)[0], random_candidates(1))
        assert not encoder.is_normalised
        assert (weights_of(scored).sum(-1) - 1).abs().min() > 1e-2


class TestModulated(DINContract):
    config = small(modulation=ModulationConfig(groups=GROUPS))
    uses_time = True

    def test_outputs_include_the_intensities_at_the_query_time(
        self, encoder: SequenceEncoder
    ) -> None:
        assert not encoder.is_normalised
        query = draw_queries(6)[0]
        now = encode(encoder, query).intensity
        later = encode(encoder, at_query_time(query, query.query_time + YEAR)).intensity
        assert now is not None
        assert later is not None
        assert now.shape == (1, GROUPS)
        assert (now > 0).all()
        assert (now - later).abs().max() > 1e-3

    def test_a_withheld_query_time_differs_from_an_interval_of_zero(
        self, encoder: SequenceEncoder
    ) -> None:
        query, candidates = draw_queries(6)[0], random_candidates(1)
        last = query.history[-1].at
        given = score_at_last(encoder, at_query_time(query, last), candidates)
        withheld = score_at_last(encoder, at_query_time(query, last, withheld=True), candidates)
        assert (given.scores - withheld.scores).abs().max() > 1e-5


class TestModulatedFreeWeights(DINContract):
    config = small(weights="free", modulation=ModulationConfig(groups=GROUPS, base_rate=True))
    uses_time = True


def test_only_modulated_encoders_have_item_groups() -> None:
    assert small().build(items=ITEMS).item_groups is None
    modulated = small(modulation=ModulationConfig(groups=GROUPS)).build(items=ITEMS)
    assert modulated.item_groups is not None
    assert modulated.item_groups.membership.shape == (ITEMS + 1, GROUPS)


def test_history_and_candidate_enter_the_network_alike() -> None:
    """The mean of many vectors is far shorter than one; both are of order one in the network."""
    torch.manual_seed(0)
    encoder = DINConfig(dim=16, dropout=0.0, max_history=80).build().train()
    seen: list[Tensor] = []
    encoder.interest_proj.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    encoder.scoring.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    batch = collate_queries(*draw_queries(80, 60))
    items = torch.randn(2, 80, 16) / 4
    encoder.score_candidates(batch, items, torch.tensor([79, 139]), torch.randn(2, 9, 16) / 4)
    history, scored = seen
    for part in (history, scored[..., 16:]):
        assert part.square().mean().sqrt().item() == pytest.approx(1, abs=0.05)
