"""Contributions to scores, against models that lack a part, and by their axioms."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.clock import MICROSECONDS_PER_DAY
from model.history import Query
from model.inference.answers import Constraints, Contribution, ContributionKind
from model.inference.attribution import decompose
from model.inference.predictor import Predictor
from model.interfaces import DividedRepeats
from model.popularity import CountedEvents
from model.recommender import RecommenderConfig
from model.store.opening import open_predictor
from model.wide import WideConfig
from tests import tiny
from tests.contracts.histories import draw_queries
from tests.contracts.predictor import assert_adds_up, query_of, score_all
from tests.contracts.sequence_encoder import encode
from tests.tiny import ITEM_IDS, LAST_AT
from tests.zoo import METHODS

EVERYTHING = Constraints(n=len(ITEM_IDS), exclude_seen=False)
HAPPENED = [("i1", 9.0), ("i2", 5.0), ("i1", 3.0), ("i7", 0.5)]

logs = st.floats(-900, 900)


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return build(tmp_path_factory, tiny.recommender_config(wide=WideConfig()))


def build(factory: pytest.TempPathFactory, config: RecommenderConfig) -> Predictor:
    return open_predictor(tiny.write_bundle(factory.mktemp("b"), config=config))


def attribute(predictor: Predictor, query: Query) -> dict[str, dict[str, Contribution]]:
    items = predictor.recommend(query, EVERYTHING, reasons=True).items
    contributions = {}
    for item in items:
        assert_adds_up(item)
        assert item.reasons is not None
        contributions[item.item_id] = {one.kind: one for one in item.reasons.contributions}
    return contributions


def without(predictor: Predictor, *names: str) -> Predictor:
    """The same weights without some modules of the wide part."""
    recommender = copy.deepcopy(predictor.bundle.recommender)
    for name in names:
        setattr(recommender.wide, name, None)
    return Predictor(replace(predictor.bundle, recommender=recommender))


class TestDecompose:
    @given(logs, st.tuples(logs, logs), st.lists(logs | st.just(-math.inf), max_size=3))
    def test_contributions_add_up_whatever_the_sizes(
        self, average: float, terms: tuple[float, float], added: list[float]
    ) -> None:
        values, of_events = decompose(
            average,
            {"state": np.array([terms[0]]), "bias": np.array([terms[1]])},
            {"repeats": np.array([added])} if added else {},
        )
        expected = np.logaddexp.reduce([average + sum(terms), *added])
        assert sum(value[0] for value in values.values()) == pytest.approx(
            expected, rel=1e-9, abs=1e-9
        )
        if added:
            assert of_events["repeats"].sum() == pytest.approx(values["repeats"][0])
            assert (of_events["repeats"] >= 0).all()

    def test_neither_order_nor_grouping_matters(self) -> None:
        terms: dict[ContributionKind, np.ndarray] = {
            "state": np.array([1.5]),
            "popularity": np.array([-0.5]),
        }
        repeats, followers = np.array([[0.3, -2.0]]), np.array([[1.0, -math.inf]])
        values, _ = decompose(-2.0, terms, {"repeats": repeats, "followers": followers})
        other, _ = decompose(
            -2.0, dict(reversed(terms.items())), {"followers": followers, "repeats": repeats}
        )
        together, of_events = decompose(
            -2.0,
            {"state": np.array([1.0])},
            {"repeats": np.concatenate((repeats, followers), axis=1)},
        )
        for kind, value in values.items():
            assert other[kind] == pytest.approx(value)
        assert together["state"] == pytest.approx(values["state"] + values["popularity"])
        assert together["repeats"] == pytest.approx(values["repeats"] + values["followers"])
        assert of_events["repeats"][0, :2].sum() == pytest.approx(values["repeats"][0])

    def test_a_base_alone_keeps_its_terms(self) -> None:
        values, _ = decompose(3.0, {"state": np.array([1.5]), "bias": np.array([-0.2])}, {})
        assert {kind: value[0] for kind, value in values.items()} == pytest.approx(
            {"average": 3.0, "state": 1.5, "bias": -0.2}
        )

    def test_what_adds_nothing_contributes_nothing(self) -> None:
        values, of_events = decompose(
            0.0, {"state": np.array([0.0])}, {"repeats": np.array([[-math.inf, 1.0]])}
        )
        assert values["state"] == [0.0]
        assert of_events["repeats"][0, 0] == 0.0


def test_the_average_is_the_mean_score_of_the_base(predictor: Predictor) -> None:
    base = score_all(without(predictor, "repeats", "followers"), query_of(HAPPENED))
    assert base is not None
    for one in attribute(predictor, query_of(HAPPENED)).values():
        assert one["average"].value == pytest.approx(np.mean([*base.values()]), abs=1e-5)


@pytest.mark.parametrize("query_time", [LAST_AT, tiny.FIRST_AT + 80 * MICROSECONDS_PER_DAY])
def test_contributions_are_of_their_parts(predictor: Predictor, query_time: int) -> None:
    """Recomputed from the scores of models that lack a part."""
    query = query_of(HAPPENED, query_time)
    scores = {
        names: score_all(without(predictor, *names), query)
        for names in ((), ("repeats",), ("followers",), ("repeats", "followers"))
    }
    contributions = attribute(predictor, query)
    for item_id in ITEM_IDS:
        whole, only_followers, only_repeats, base = (
            math.exp(of_model[item_id]) for of_model in scores.values() if of_model is not None
        )
        average = math.exp(contributions[item_id]["average"].value)
        mean = (whole - average) / math.log(whole / average)
        found = {kind: one.value for kind, one in contributions[item_id].items()}
        assert found["repeats"] == pytest.approx((only_repeats - base) / mean, abs=1e-4)
        assert found["followers"] == pytest.approx((only_followers - base) / mean, abs=1e-4)
        of_base = sum(found[kind] for kind in ("state", "bias", "calendar", "popularity"))
        assert of_base == pytest.approx((base - average) / mean, abs=1e-4)


def test_live_popularity_changes_what_popularity_contributes(predictor: Predictor) -> None:
    sold = CountedEvents(
        items=np.array([6], np.int32),
        times=np.array([LAST_AT + 1]),
        counts=np.array([400], np.int32),
        last_at=LAST_AT + 1,
    )
    query = query_of(HAPPENED, LAST_AT + MICROSECONDS_PER_DAY)
    before, after = (attribute(one, query)["i5"] for one in (predictor, predictor.count_on(sold)))
    assert after["popularity"].value > before["popularity"].value + 0.1
    relative = after["calendar"].value / before["calendar"].value
    assert after["state"].value / before["state"].value == pytest.approx(relative)


def test_a_distance_has_contributions_of_state_and_bias(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    encoder = {"kind": "transrec", "dim": 8, "max_history": 6}
    config = RecommenderConfig.model_validate({"items": tiny.ITEMS, "encoder": encoder})
    contributions = attribute(build(tmp_path_factory, config), query_of(HAPPENED))
    assert {frozenset(one) for one in contributions.values()} == {
        frozenset({"average", "state", "bias"})
    }
    mean = np.mean([one["state"].value for one in contributions.values()])
    assert mean == pytest.approx(0, abs=1e-5)


def test_a_model_without_biases_contributes_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = build(tmp_path_factory, tiny.recommender_config(item_bias=False))
    for one in attribute(plain, query_of(HAPPENED)).values():
        assert set(one) == {"average", "state"}


def test_a_counted_repeat_is_that_of_each_event(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Personal frequency adds a weight of one per event, and more for an item's last one."""
    encoder = {"kind": "personal_frequency", "max_history": 6}
    config = RecommenderConfig.model_validate({"items": tiny.ITEMS, "encoder": encoder})
    contributions = attribute(build(tmp_path_factory, config), query_of(HAPPENED))
    of_events = [one.value for one in contributions["i1"]["repeats"].events]
    assert [one.event.item_id for one in contributions["i1"]["repeats"].events] == ["i1", "i1"]
    assert of_events[1] / of_events[0] == pytest.approx(1 + 0.25 * (1 - 2 / 7), rel=1e-5)


def test_successors_are_of_the_last_event(tmp_path_factory: pytest.TempPathFactory) -> None:
    encoder = {"kind": "markov", "successors": 5}
    config = RecommenderConfig.model_validate({"items": tiny.ITEMS, "encoder": encoder})
    weights = tiny.recommender(config)
    weights.get_buffer("encoder.following")[8, 0] = 3
    weights.get_buffer("encoder.log_counts")[8, 0] = 2.0
    root = tmp_path_factory.mktemp("b") / "new"
    root.mkdir()
    version = tiny.writer(config, weights)(root)
    predictor = open_predictor(root.rename(root.parent / version))
    contributions = attribute(predictor, query_of(HAPPENED))
    (part,) = contributions["i2"]["followers"].events
    assert (part.event.item_id, part.row) == ("i7", 8)
    assert contributions["i3"]["followers"].events == ()


@pytest.mark.parametrize("name", METHODS)
def test_scores_of_other_items_than_the_own_are_divided(name: str) -> None:
    config = RecommenderConfig.model_validate({"items": 20, "encoder": METHODS[name]["encoder"]})
    encoder = config.build().encoder.eval()
    encoded = encode(encoder, *draw_queries(5))
    assert encoded.repeat_rows is None or isinstance(encoder, DividedRepeats)


class TestSharesOfRepeats:
    def test_a_recent_event_has_a_larger_share(self, predictor: Predictor) -> None:
        repeats = attribute(predictor, query_of([("i1", 100.0), ("i2", 50.0), ("i1", 1.0)]))["i1"]
        earlier, later = (one.value for one in repeats["repeats"].events)
        assert later > earlier > 0

    def test_equal_weights_are_those_of_one_half_life(self, predictor: Predictor) -> None:
        """With one half-life, shares are the decayed weights."""
        alone = without(predictor)
        assert alone.bundle.recommender.wide is not None
        repeater = alone.bundle.recommender.wide.repeats
        assert repeater is not None
        with torch.no_grad():
            repeater.weights.weight.zero_()
            repeater.weights.bias.fill_(-1.0)
            repeater.weights.bias[1] = 2.0  # a half-life of 28 days
        repeats = attribute(alone, query_of([("i1", 57.0), ("i2", 50.0), ("i1", 1.0)]))["i1"]
        earlier, later = (one.value for one in repeats["repeats"].events)
        assert later / earlier == pytest.approx(4, rel=1e-4)

    def test_events_too_old_to_weigh_share_equally(self, predictor: Predictor) -> None:
        happened = [("i1", 150_000.0), ("i1", 140_000.0), ("i2", 1.0)]
        repeats = attribute(predictor, query_of(happened))["i1"]["repeats"]
        assert len(repeats.events) == 2
        assert all(math.isfinite(one.value) for one in repeats.events)
