"""Bundles whose answers come about in other ways than by the nearest item to a user."""

import pytest
import torch

from model.bundle.index import ItemIndex
from model.catalog import Catalog
from model.encoders.din import DINConfig
from model.encoders.gru4rec import GRU4RecConfig
from model.encoders.markov import MarkovConfig
from model.encoders.personal_frequency import PersonalFrequencyConfig
from model.encoders.rmtpp import RMTPPConfig
from model.encoders.sasrec import SASRecConfig
from model.encoders.transrec import TransRecConfig
from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.interfaces import CountingEncoder, QuerySweep
from model.layers.self_modulation import ModulationConfig
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor
from tests import tiny
from tests.contracts.bundle import BundleContract, everything, query_of
from tests.tiny import ITEMS

GROUPS = ("early", "late")


class TestDistances(BundleContract):
    """The index is one of distances, and ranks as the model does."""

    config = tiny.recommender_config(TransRecConfig(dim=8, max_history=6))

    def test_the_index_searches_by_distance(self, predictor: Predictor) -> None:
        assert predictor.bundle.manifest.similarity == "l2"
        vectors = predictor.bundle.recommender.index_vectors()[1:]
        assert (vectors[:, :8].norm(dim=-1) <= 1 + 1e-6).all()
        assert predictor.bundle.index.width == 9

    def test_the_closest_item_leads(self, predictor: Predictor) -> None:
        recommender = predictor.bundle.recommender
        assert recommender.item_bias is not None
        query = query_of([("i1", 3)])
        user = predictor.encode(query, predictor.look_up_history(query)).user[0, :8] / 2
        items = recommender.index_vectors()[1:, :8]
        bias = recommender.item_bias[1:]
        scores = bias - bias.max() - (items - user).square().sum(-1)
        found = everything(predictor, query).items
        assert found[0].item_id == tiny.ITEM_IDS[int(scores.argmax())]
        assert found[0].score == pytest.approx(float(scores.max()), abs=1e-5)


class TestJudged(BundleContract):
    config = tiny.recommender_config(DINConfig(dim=8, hidden=(8, 4), max_history=6))

    def test_attention_is_about_the_best_item(self, predictor: Predictor) -> None:
        answer = predictor.recommend(query_of([("i1", 3), ("i2", 1)]), Constraints(), explain=True)
        assert answer.attention is not None
        assert answer.attention.of_item_id == answer.items[0].item_id
        only = predictor.recommend(
            query_of([("i1", 3), ("i2", 1)]), Constraints(include=frozenset({"i9"})), explain=True
        )
        assert only.attention is not None
        assert only.attention.of_item_id == "i9"
        assert only.attention.weights != answer.attention.weights

    def test_nothing_allowed_is_nothing_answered(self, predictor: Predictor) -> None:
        nothing = Constraints(include=frozenset({"zebra"}), strict=True)
        assert predictor.recommend(query_of([("i1", 3)]), nothing, explain=True).items == ()


class CountedContract(BundleContract):
    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls) -> Recommender:
        return counted(cls.config)

    @pytest.fixture(scope="class")
    @classmethod
    def predictor(cls, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
        unnamed = tmp_path_factory.mktemp("b") / "unnamed"
        unnamed.mkdir()
        version = tiny.writer(cls.config, counted(cls.config))(unnamed)
        return open_predictor(unnamed.rename(unnamed.parent / version))


class TestMarkov(CountedContract):
    config = tiny.recommender_config(MarkovConfig(successors=4, max_history=6))


class TestPersonalFrequency(CountedContract):
    config = tiny.recommender_config(PersonalFrequencyConfig(max_history=6))


class TestModulated(BundleContract):
    config = tiny.recommender_config(
        SASRecConfig(dim=8, max_history=6, modulation=ModulationConfig(groups=2)), groups=GROUPS
    )

    def test_intensities_stand_under_the_names_of_their_groups(self, predictor: Predictor) -> None:
        answer = predictor.recommend(query_of([("i1", 3)]), Constraints(), explain=True)
        assert answer.attention is not None
        assert not answer.attention.normalised
        assert answer.attention.intensities is not None
        names, values = zip(*answer.attention.intensities, strict=True)
        assert names == GROUPS
        assert all(value > 0 for value in values)

    def test_intensities_move_while_the_clock_runs(self, predictor: Predictor) -> None:
        query, times = query_of([("i1", 3), ("i2", 1)]), [tiny.LAST_AT, tiny.LAST_AT + 9 * tiny.DAY]
        swept = predictor.sweep(query, times, Constraints(n=0))
        assert swept.groups == GROUPS
        early, late = (instant.intensities for instant in swept.instants)
        assert early is not None
        assert late is not None
        assert early != pytest.approx(late, rel=1e-6)


class TestModulatedAtManyInstants(TestModulated):
    """Of an encoder that reads a history once for many instants."""

    config = tiny.recommender_config(
        tiny.ENCODER.model_copy(update={"modulation": ModulationConfig(groups=2)}), groups=GROUPS
    )

    def test_the_encoder_sweeps(self, predictor: Predictor) -> None:
        assert isinstance(predictor.bundle.recommender.encoder, QuerySweep)


class TestModulatedAndJudged(TestModulated):
    config = tiny.recommender_config(
        DINConfig(dim=8, hidden=(8, 4), max_history=6, modulation=ModulationConfig(groups=2)),
        groups=GROUPS,
    )


class TestWithoutAttention(BundleContract):
    config = tiny.recommender_config(GRU4RecConfig(dim=8, max_history=6))

    def test_asking_for_attention_is_answered_with_why_there_is_none(
        self, predictor: Predictor
    ) -> None:
        explained = predictor.recommend(query_of([("i1", 3)]), Constraints(), explain=True)
        assert explained.attention is None
        assert explained.warnings == ("attention_unavailable",)
        assert predictor.recommend(query_of([("i1", 3)]), Constraints()).warnings == ()
        assert predictor.recommend(query_of([]), Constraints(), explain=True).warnings == ()


class TestPointProcess(BundleContract):
    config = tiny.recommender_config(RMTPPConfig(dim=8, max_history=6))


def counted(config: RecommenderConfig) -> Recommender:
    """A recommender that has counted some events of the tiny world."""
    recommender = config.build().eval()
    encoder = recommender.encoder
    assert isinstance(encoder, CountingEncoder)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(1, ITEMS + 1, (300,), generator=generator).clamp(max=ITEMS - 4)
    users = torch.arange(300) // 10
    with torch.no_grad():
        assert recommender.item_bias is not None
        recommender.item_bias.copy_(encoder.fit_counts(rows, tiny.FIRST_AT + users, users))
    return recommender


def test_a_distance_without_biases_is_that_of_the_vectors() -> None:
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
