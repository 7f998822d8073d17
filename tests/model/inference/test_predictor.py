"""The predictor with each kind of encoder: by distance, reranking, counting, without attention."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.bundle.index import ItemIndex
from model.catalog import Catalog
from model.encoders.basket_markov import BasketMarkovConfig
from model.encoders.din import DINConfig
from model.encoders.gru4rec import GRU4RecConfig
from model.encoders.markov import MarkovConfig
from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.encoders.rmtpp import RMTPPConfig
from model.encoders.sasrec import SASRecConfig
from model.encoders.taiw import TAIWConfig
from model.encoders.tifu_knn import TIFUKNNConfig
from model.encoders.transrec import TransRecConfig
from model.encoders.up_cf import UPCFConfig
from model.history import Event, Query
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.interfaces import CountingEncoder, QuerySweep
from model.layers.self_modulation import ModulationConfig
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor
from model.time_encodings.bochner_nonparametric import BochnerNonparametricConfig
from model.time_encodings.positional import PositionalConfig
from model.wide import WideConfig
from tests import tiny
from tests.contracts.predictor import (
    PredictorContract,
    assert_best_of_catalog,
    constraints,
    histories,
    query_of,
    recommend_all,
    score_all,
)
from tests.tiny import DAY, ENCODER, ITEMS, LAST_AT

GROUPS = ("early", "late")


class TestPlain(PredictorContract):
    config = tiny.recommender_config()


class TestWithRepeats(PredictorContract):
    config = tiny.recommender_config(
        ENCODER.model_copy(
            update={"repeats": True, "time_encoding": BochnerNonparametricConfig(frequencies=4)}
        )
    )

    def test_a_repeated_item_scores_highest(self, tmp_path: Path) -> None:
        config = self.config
        weights = tiny.recommender(config)
        with torch.no_grad():
            weights.get_parameter("encoder.pointer.bias").fill_(20.0)
        (tmp_path / "new").mkdir()
        version = tiny.writer(config, weights)(tmp_path / "new")
        predictor = open_predictor((tmp_path / "new").rename(tmp_path / version))
        query = Query((Event("i7", LAST_AT - DAY),), LAST_AT)
        items = predictor.recommend(query, Constraints(n=2, exclude_seen=False)).items
        assert items[0].item_id == "i7"
        assert predictor.recommend(query, Constraints(n=2)).items[0].item_id != "i7"


@pytest.mark.slow
class TestWithoutTimeOrBias(PredictorContract):
    config = tiny.recommender_config(
        ENCODER.model_copy(update={"time_encoding": PositionalConfig(frequencies=4)}),
        item_bias=False,
    )


class TestIgnoredActions:
    def test_events_of_ignored_actions_are_not_read(self, tmp_path: Path) -> None:
        config = tiny.recommender_config(ignored_actions=("cancel",))
        predictor = open_predictor(tiny.write_bundle(tmp_path, config=config))
        bought = Event("i1", LAST_AT - DAY, "buy")
        cancelled = Event("i2", LAST_AT - DAY // 2, "cancel")
        within = Constraints(exclude_seen=False)
        assert (
            predictor.recommend(Query((bought, cancelled), LAST_AT), within).items
            == predictor.recommend(Query((bought,), LAST_AT), within).items
        )


class TestWide(PredictorContract):
    """Counted features: the index holds the latest popularity, earlier ones are computed."""

    config = tiny.recommender_config(wide=WideConfig())

    def test_earlier_query_times_rank_by_the_popularity_then(self, predictor: Predictor) -> None:
        for day in (1, 60, 150):
            query = query_of([("i1", 0.5), ("i4", 0.1)], tiny.FIRST_AT + day * DAY)
            scores = score_all(predictor, query)
            assert scores is not None
            best = sorted(tiny.ITEM_IDS, key=lambda item_id: -scores[item_id])
            items = predictor.recommend(query, Constraints(n=24, exclude_seen=False)).items
            assert [item.item_id for item in items] == best
            assert [item.score for item in items] == pytest.approx(
                [scores[item_id] for item_id in best], abs=1e-4
            )

    def test_filtered_items_are_the_best_at_any_query_time(self, predictor: Predictor) -> None:
        """Candidates of the index, with those of repeats and followers, leave nothing out."""

        @given(happened=histories, within=constraints, day=st.integers(1, 230))
        def check(happened: list[tuple[str, float]], within: Constraints, day: int) -> None:
            query = query_of(happened, tiny.FIRST_AT + day * DAY)
            assert_best_of_catalog(predictor, query, within)

        check()


class TestDistances(PredictorContract):
    """The index of an l2 model searches by distance, and ranks as the model does."""

    config = tiny.recommender_config(TransRecConfig(dim=8, max_history=6))

    def test_the_index_searches_by_distance(self, predictor: Predictor) -> None:
        assert predictor.bundle.manifest.similarity == "l2"
        vectors = predictor.bundle.recommender.index_vectors()[1:]
        assert (vectors[:, :8].norm(dim=-1) <= 1 + 1e-6).all()
        assert predictor.bundle.index.width == 9

    def test_the_closest_item_ranks_first(self, predictor: Predictor) -> None:
        recommender = predictor.bundle.recommender
        assert recommender.item_bias is not None
        query = query_of([("i1", 3)])
        user = predictor.encode(query, predictor.look_up_history(query)).user[0, :8] / 2
        items = recommender.index_vectors()[1:, :8]
        bias = recommender.item_bias[1:]
        scores = bias - bias.max() - (items - user).square().sum(-1)
        found = recommend_all(predictor, query).items
        assert found[0].item_id == tiny.ITEM_IDS[int(scores.argmax())]
        assert found[0].score == pytest.approx(float(scores.max()), abs=1e-5)


class TestReranked(PredictorContract):
    config = tiny.recommender_config(DINConfig(dim=8, hidden=(8, 4), max_history=6))

    def test_attention_is_for_the_best_item(self, predictor: Predictor) -> None:
        query = query_of([("i1", 3), ("i2", 1)])
        recommendation = predictor.recommend(query, Constraints(), explain=True)
        assert recommendation.attention is not None
        assert recommendation.attention.of_item_id == recommendation.items[0].item_id
        only = predictor.recommend(query, Constraints(include=frozenset({"i9"})), explain=True)
        assert only.attention is not None
        assert only.attention.of_item_id == "i9"
        assert only.attention.weights != recommendation.attention.weights

    def test_nothing_allowed_gives_no_items(self, predictor: Predictor) -> None:
        nothing = Constraints(include=frozenset({"zebra"}), strict=True)
        assert predictor.recommend(query_of([("i1", 3)]), nothing, explain=True).items == ()


class CountingContract(PredictorContract):
    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls) -> Recommender:
        return count_events(cls.config)

    @pytest.fixture(scope="class")
    @classmethod
    def predictor(cls, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
        unnamed = tmp_path_factory.mktemp("b") / "unnamed"
        unnamed.mkdir()
        version = tiny.writer(cls.config, count_events(cls.config))(unnamed)
        return open_predictor(unnamed.rename(unnamed.parent / version))


class TestMarkov(CountingContract):
    config = tiny.recommender_config(MarkovConfig(successors=4, max_history=6))


@pytest.mark.slow
class TestPersonalFrequency(CountingContract):
    config = tiny.recommender_config(PersonalFrequencyConfig(max_history=6))


class TestBasketMarkov(CountingContract):
    config = tiny.recommender_config(BasketMarkovConfig(max_history=6))


class TestTIFUKNN(CountingContract):
    config = tiny.recommender_config(TIFUKNNConfig(neighbours=3, max_history=6))


class TestUPCF(CountingContract):
    config = tiny.recommender_config(UPCFConfig(recency=2, max_history=6))


class TestTAIW(CountingContract):
    config = tiny.recommender_config(TAIWConfig(neighbours=3, steps=2, max_history=6))


class TestTAIWAlone(CountingContract):
    config = tiny.recommender_config(TAIWConfig(neighbours=0, steps=2, max_history=6))


@pytest.mark.slow
class TestModulated(PredictorContract):
    config = tiny.recommender_config(
        SASRecConfig(dim=8, max_history=6, modulation=ModulationConfig(groups=2)), groups=GROUPS
    )

    def test_intensities_have_the_names_of_their_groups(self, predictor: Predictor) -> None:
        recommendation = predictor.recommend(query_of([("i1", 3)]), Constraints(), explain=True)
        assert recommendation.attention is not None
        assert not recommendation.attention.normalised
        assert recommendation.attention.intensities is not None
        names, values = zip(*recommendation.attention.intensities, strict=True)
        assert names == GROUPS
        assert all(value > 0 for value in values)

    def test_intensities_change_with_the_query_time(self, predictor: Predictor) -> None:
        query, times = query_of([("i1", 3), ("i2", 1)]), [tiny.LAST_AT, tiny.LAST_AT + 9 * tiny.DAY]
        swept = predictor.sweep(query, times, Constraints(n=0))
        assert swept.groups == GROUPS
        early, late = (instant.intensities for instant in swept.instants)
        assert early is not None
        assert late is not None
        assert early != pytest.approx(late, rel=1e-6)


@pytest.mark.slow
class TestModulatedAtManyInstants(TestModulated):
    """An encoder that encodes a history once for many query times."""

    config = tiny.recommender_config(
        tiny.ENCODER.model_copy(update={"modulation": ModulationConfig(groups=2)}), groups=GROUPS
    )

    def test_the_encoder_sweeps(self, predictor: Predictor) -> None:
        assert isinstance(predictor.bundle.recommender.encoder, QuerySweep)


@pytest.mark.slow
class TestModulatedAndReranked(TestModulated):
    config = tiny.recommender_config(
        DINConfig(dim=8, hidden=(8, 4), max_history=6, modulation=ModulationConfig(groups=2)),
        groups=GROUPS,
    )


class TestWithoutAttention(PredictorContract):
    config = tiny.recommender_config(GRU4RecConfig(dim=8, max_history=6))

    def test_requested_attention_is_reported_as_unavailable(self, predictor: Predictor) -> None:
        explained = predictor.recommend(query_of([("i1", 3)]), Constraints(), explain=True)
        assert explained.attention is None
        assert explained.warnings == ("attention_unavailable",)
        assert predictor.recommend(query_of([("i1", 3)]), Constraints()).warnings == ()
        assert predictor.recommend(query_of([]), Constraints(), explain=True).warnings == ()


class TestPointProcess(PredictorContract):
    config = tiny.recommender_config(RMTPPConfig(dim=8, max_history=6))


def count_events(config: RecommenderConfig) -> Recommender:
    """A recommender fitted by counting: thirty users with five baskets of two events each."""
    recommender = config.build().eval()
    encoder = recommender.encoder
    assert isinstance(encoder, CountingEncoder)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(1, ITEMS + 1, (300,), generator=generator).clamp(max=ITEMS - 4)
    users = torch.arange(300) // 10
    times = tiny.FIRST_AT + users + torch.arange(300) % 10 // 2 * 40 * DAY
    with torch.no_grad():
        assert recommender.item_bias is not None
        recommender.item_bias.copy_(encoder.fit_counts(rows, times, users))
    return recommender


def test_a_distance_index_without_biases_ranks_by_distance() -> None:
    config = tiny.recommender_config(TransRecConfig(dim=8, max_history=6), item_bias=False)
    recommender = tiny.recommender(config)
    index = ItemIndex.build(recommender.index_vectors()[1:].detach().numpy(), "l2")
    assert len(index) == len(Catalog.from_ids(tiny.ITEM_IDS))
    users = recommender.user_vectors(torch.randn(1, 8))
    scores = (users @ recommender.item_vectors().T)[0, 1:]
    _, found = index.search(recommender.index_queries(users)[0].detach().numpy(), ITEMS)
    torch.testing.assert_close(
        torch.from_numpy(found), scores.sort(descending=True).values.detach(), rtol=0, atol=1e-5
    )
