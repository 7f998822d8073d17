"""The parts of a score, against scoring with parts of the model left out."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from model.history import Query
from model.inference.answers import Constraints, ScorePart
from model.inference.predictor import Predictor
from model.store.opening import open_predictor
from model.wide import WideConfig
from tests import tiny
from tests.contracts.predictor import query_of, score_all
from tests.tiny import DAY, ITEM_IDS, LAST_AT

EVERYTHING = Constraints(n=len(ITEM_IDS), exclude_seen=False)
HAPPENED = [("i1", 9.0), ("i2", 5.0), ("i1", 3.0), ("i7", 0.5)]
QUERY_TIMES = [LAST_AT, tiny.FIRST_AT + 80 * DAY]


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    config = tiny.recommender_config(wide=WideConfig())
    return open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("b"), config=config))


def explain(predictor: Predictor, query: Query) -> dict[str, tuple[ScorePart, ...]]:
    items = predictor.recommend(query, EVERYTHING, explain=True).items
    return {item.item_id: item.parts for item in items if item.parts is not None}


def share_of(parts: tuple[ScorePart, ...], name: str) -> float:
    return next(part.share for part in parts if part.name == name)


def effects(parts: tuple[ScorePart, ...]) -> dict[str, float]:
    return {term.name: term.effect for part in parts for term in part.terms}


def leave_out(predictor: Predictor, *names: str) -> Predictor:
    """The same weights without some modules of the wide part."""
    recommender = copy.deepcopy(predictor.bundle.recommender)
    for name in names:
        setattr(recommender.wide, name, None)
    return Predictor(replace(predictor.bundle, recommender=recommender))


@pytest.mark.parametrize("query_time", QUERY_TIMES)
@pytest.mark.parametrize("name", ["repeats", "followers"])
def test_a_share_is_what_the_score_loses_without_the_part(
    predictor: Predictor, name: str, query_time: int
) -> None:
    query = query_of(HAPPENED, query_time)
    whole, without = score_all(predictor, query), score_all(leave_out(predictor, name), query)
    assert whole is not None
    assert without is not None
    parts = explain(predictor, query)
    assert set(parts) == set(ITEM_IDS)
    for item_id in ITEM_IDS:
        lost = 1 - math.exp(without[item_id] - whole[item_id])
        assert share_of(parts[item_id], name) == pytest.approx(lost, abs=1e-4)
    assert max(share_of(each, name) for each in parts.values()) > 0.02


@pytest.mark.parametrize("query_time", QUERY_TIMES)
def test_the_terms_add_up_to_the_base(predictor: Predictor, query_time: int) -> None:
    query = query_of(HAPPENED, query_time)
    base = score_all(leave_out(predictor, "repeats", "followers"), query)
    assert base is not None
    mean = np.mean(list(base.values()))
    for item_id, parts in explain(predictor, query).items():
        assert sum(effects(parts).values()) == pytest.approx(base[item_id] - mean, abs=1e-4)


def test_the_popularity_is_separate_from_the_encoder(predictor: Predictor) -> None:
    """Gates of the popularity that are zero change its effect alone."""
    query = query_of(HAPPENED)
    other = leave_out(predictor)
    assert other.bundle.recommender.wide is not None
    gates = other.bundle.recommender.wide.gate_proj
    assert gates is not None
    with torch.no_grad():
        gates.weight.zero_()
        gates.bias.zero_()
    other = Predictor(other.bundle)
    before, after = explain(predictor, query)["i5"], explain(other, query)["i5"]
    assert effects(after)["popularity"] == 0
    assert effects(before)["popularity"] != 0
    for name in ("encoder", "calendar"):
        assert effects(after)[name] == pytest.approx(effects(before)[name], abs=1e-5)


def test_a_withheld_query_time_has_no_calendar(predictor: Predictor) -> None:
    query = query_of(HAPPENED)
    assert effects(explain(predictor, query)["i5"])["calendar"] != 0
    withheld = Query(query.history, query.query_time, query_time_withheld=True)
    assert effects(explain(predictor, withheld)["i5"])["calendar"] == 0


def test_the_largest_part_comes_first(predictor: Predictor) -> None:
    for parts in explain(predictor, query_of(HAPPENED)).values():
        shares = [part.share for part in parts]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1)
        for part in parts:
            of_terms = [term.effect for term in part.terms]
            assert of_terms == sorted(of_terms, reverse=True)
            assert bool(of_terms) == (part.name == "base")


def test_parts_are_named_on_request_only(predictor: Predictor) -> None:
    items = predictor.recommend(query_of(HAPPENED), EVERYTHING).items
    assert {item.parts for item in items} == {None}
    occluded = predictor.recommend(query_of(HAPPENED), EVERYTHING, occlude="event").items
    assert None not in {item.parts for item in occluded}


def test_items_filled_in_by_popularity_have_no_parts(predictor: Predictor) -> None:
    empty = predictor.recommend(query_of([]), Constraints(n=3), explain=True)
    assert {item.parts for item in empty.items} == {None}


@pytest.mark.parametrize(
    ("left_out", "parts", "terms"),
    [
        ({}, {"base", "repeats", "followers"}, {"encoder", "popularity", "calendar"}),
        ({"repeats": False, "calendar": False}, {"base", "followers"}, {"encoder", "popularity"}),
        (
            {"followers": False, "popularity": False},
            {"base", "repeats"},
            {"encoder", "calendar"},
        ),
        ({"repeats": False, "followers": False}, {"base"}, {"encoder", "popularity", "calendar"}),
    ],
)
def test_parts_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    left_out: dict[str, bool],
    parts: set[str],
    terms: set[str],
) -> None:
    config = tiny.recommender_config(wide=WideConfig.model_validate(left_out))
    partial = open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("b"), config=config))
    for of_item in explain(partial, query_of(HAPPENED)).values():
        assert {part.name for part in of_item} == parts
        assert set(effects(of_item)) == terms


def test_a_model_without_a_wide_part_has_no_parts(tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("b")))
    assert explain(plain, query_of(HAPPENED)) == {}
