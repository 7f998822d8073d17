"""TAIW: the weights of items at the query time, of the user and of the nearest users."""

import math

import numpy as np
import pytest
import torch

from model.encoders.taiw import TAIW, TAIWConfig
from model.history import Event, Query
from model.interfaces import SequenceEncoder
from model.layers.repurchase_kernel import LEAST_WIDTH, UNIT_DAYS
from model.layers.timed_purchases import TimedPurchases
from model.recommender import Recommender, RecommenderConfig, add_repeat_scores
from tests import tiny
from tests.contracts.counting_encoder import CountingEncoderContract, fit_counts, ranking
from tests.contracts.histories import DAY, ITEMS, START, collate_queries
from tests.contracts.sequence_encoder import encode, vectors

CADENCE = 30
USERS = 40


class TestTAIW(CountingEncoderContract):
    config = TAIWConfig(neighbours=2, steps=2)

    def test_items_of_similar_users_follow_the_own_ones(self, encoder: SequenceEncoder) -> None:
        # Users 0 and 1 have items 1 and 2, and user 1 has 3; 4 is of another user.
        assert set(ranking(encoder, 1, 2)[:2]) == {1, 2}
        assert ranking(encoder, 1, 2)[2] == 3

    def test_repeat_scores_depend_on_the_query_time(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TAIW)
        encoder.purchases.shapes.normal_()
        events = (Event("i0", START), Event("i1", START + 3 * DAY))
        soon, late = (
            encode(encoder, Query(events, START + days * DAY)).attention for days in (4, 90)
        )
        assert soon is not None
        assert late is not None
        assert (soon - late).abs().max() > 1e-2

    def test_a_withheld_query_time_reads_as_an_interval(self, encoder: SequenceEncoder) -> None:
        assert isinstance(encoder, TAIW)
        encoder.purchases.shapes.normal_()
        encoder.visit_interval.fill_(14.0)
        events = (Event("i0", START), Event("i1", START + 3 * DAY))
        withheld = encode(encoder, Query(events, START + 99 * DAY, query_time_withheld=True))
        given = encode(encoder, Query(events, START + 17 * DAY))
        assert withheld.repeat_scores is not None
        assert given.repeat_scores is not None
        torch.testing.assert_close(withheld.repeat_scores, given.repeat_scores)


class TestTAIWAlone(CountingEncoderContract):
    config = TAIWConfig(neighbours=0, steps=2)


def _plant_cadence() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Plant item 1, bought every 30 days, and item 2, bought every 7 days."""
    rng = np.random.default_rng(0)
    events: list[tuple[int, float, int]] = []
    for user in range(USERS):
        for row, cadence in ((1, CADENCE), (2, 7)):
            day = rng.uniform(0, cadence)
            while day < 300:
                events.append((user, day, row))
                day += cadence * np.exp(rng.normal(0, 0.05))
    events.sort()
    users, days, rows = (torch.tensor(one) for one in zip(*events, strict=True))
    return rows, START + (days.double() * DAY).long(), users


@pytest.mark.parametrize("neighbours", [0, 3])
def test_an_item_ranks_first_when_it_is_due(neighbours: int) -> None:
    encoder = TAIWConfig(neighbours=neighbours, own_weight=0.8, steps=200, shrinkage=0.1).build(
        items=ITEMS
    )
    bias = encoder.fit_counts(*_plant_cadence())
    history = (Event("i0", START), Event("i1", START))

    def best(days: float) -> int:
        query = Query(history, START + int(days * DAY))
        encoded = encode(encoder, query)
        assert encoded.repeat_scores is not None
        rows = encoded.repeat_rows
        rows = collate_queries(query).rows if rows is None else rows
        return int(add_repeat_scores(bias[None], encoded.repeat_scores, rows)[0, 1:].argmax()) + 1

    # Item 2 is due after a week, item 1 after a month.
    assert best(7) == 2
    assert best(CADENCE) == 1


@pytest.mark.parametrize("neighbours", [0, 3, 5])
def test_scores_are_those_of_the_formulas(neighbours: int) -> None:
    rng = np.random.default_rng(3)
    owners = np.sort(rng.integers(5, size=60))
    times = START + (rng.uniform(0, 100, 60) * DAY).astype(np.int64)
    order = np.lexsort((times, owners))
    rows, times = rng.integers(1, ITEMS + 1, 60), times[order]
    encoder = TAIWConfig(
        neighbours=neighbours, own_weight=0.7, popularity_weight=2.0, window_days=None, steps=1
    ).build(items=ITEMS)
    bias = encoder.fit_counts(*(torch.from_numpy(one) for one in (rows, times, owners)))
    assert isinstance(encoder, TAIW)
    encoder.purchases.shapes.normal_()
    query_time = START + 90 * DAY  # Purchases after it do not count.
    history = [(int(row), START + int(day * DAY)) for row, day in ((3, 0), (5, 20), (3, 40))]
    events = tuple(Event(f"i{row - 1}", at) for row, at in history)
    query = Query(events, query_time)
    batch = collate_queries(query)
    encoded = encoder(batch, vectors(encoder, batch))
    assert encoded.repeat_scores is not None
    repeat_rows = batch.rows if encoded.repeat_rows is None else encoded.repeat_rows
    scores = add_repeat_scores(bias[None], encoded.repeat_scores, repeat_rows)[0, 1:]

    shapes = encoder.purchases.shapes.double().numpy()
    own = np.zeros(ITEMS + 1)
    for row, at in history:
        own[row] += _compute_weight((query_time - at) / DAY, shapes[row])
    users = np.zeros((5, ITEMS + 1))
    for row, at, owner in zip(rows, times, owners, strict=True):
        if at <= query_time:
            users[owner, row] += _compute_weight((query_time - at) / DAY, shapes[row])
    cosines = users @ own / np.maximum(np.linalg.norm(users, axis=1), 1e-20)
    nearest = [user for user in np.argsort(-cosines)[:neighbours] if cosines[user] > 0]
    share = np.bincount(rows, minlength=ITEMS + 1) / len(rows)
    expected = 2.0 * share * own.sum() + (0.7 * own if neighbours else own)
    if neighbours:
        expected = expected + 0.3 * users[nearest].mean(0)
    np.testing.assert_allclose(
        scores.double().exp().numpy(), expected[1:] / own.sum(), rtol=1e-4, atol=2e-6
    )


def test_attention_alone_needs_no_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RecommenderConfig(items=ITEMS, encoder=TAIWConfig(neighbours=3, steps=1))
    recommender = tiny.recommender(config)
    assert isinstance(recommender.encoder, TAIW)
    recommender.encoder.fit_counts(*_plant_cadence())
    query = Query((Event("i0", START), Event("i1", START)), START + 9 * DAY)
    batch = collate_queries(query, Query((Event("i2", START),), START + DAY))
    whole = recommender(batch).attention
    monkeypatch.delattr(TimedPurchases, "average_nearest")
    assert torch.equal(recommender.compute_attention(batch), whole)
    with pytest.raises(AttributeError, match="average_nearest"):
        recommender(batch)


def test_neighbours_alone_are_those_in_a_batch() -> None:
    rng = np.random.default_rng(2)
    owners = np.repeat(np.arange(400), 3)
    days = np.sort(rng.uniform(0, 300, (400, 3)), axis=1).ravel()
    rows = rng.integers(1, 7, 400).repeat(3)  # Users of one item each: equal cosines.
    encoder = TAIWConfig(neighbours=20, own_weight=0.5, steps=3).build(items=ITEMS).eval()
    assert isinstance(encoder, TAIW)
    encoder.fit_counts(
        torch.from_numpy(rows),
        START + torch.from_numpy(days * DAY).long(),
        torch.from_numpy(owners),
    )
    at = START + 301 * DAY
    longest = tuple(Event("i3", START + n * DAY) for n in range(90))
    for _ in range(40):
        drawn = np.sort(rng.uniform(100, 300, rng.integers(3, 15)))
        events = tuple(Event(f"i{rng.integers(6)}", START + int(day * DAY)) for day in drawn)
        batch = collate_queries(Query(events, at), Query(longest, at))
        found, alone = encoder(batch, vectors(encoder, batch)), encode(encoder, Query(events, at))
        assert found.repeat_scores is not None
        assert alone.repeat_scores is not None
        scores = alone.repeat_scores[0]
        torch.testing.assert_close(found.repeat_scores[0, : len(scores)], scores)


def _build_served() -> tuple[Recommender, TAIW]:
    """Build the recommender of a bundle: users 0 and 1 have items 1 and 2 in the same 30 days."""
    recommender = RecommenderConfig(items=ITEMS, encoder=TAIWConfig(neighbours=2)).build().eval()
    assert isinstance(recommender.encoder, TAIW)
    recommender.longest_interval = 30.0
    recommender.encoder.fit_counts(
        torch.tensor([1, 2, 1, 2]),
        START + DAY * torch.tensor([0, 20, 5, 30]),
        torch.tensor([0, 0, 1, 1]),
    )
    return recommender, recommender.encoder


def test_neighbours_of_an_absent_user_are_of_the_query_time() -> None:
    recommender, encoder = _build_served()
    absent = START - 100 * DAY
    query = Query((Event("i0", absent),), START + 31 * DAY)
    encoded = recommender(collate_queries(query))
    # Of the others' purchases, all are before the query time, and none before the limit of the own.
    expected = encoder.purchases.average_nearest(torch.eye(ITEMS + 1)[1], query.query_time, 2)
    assert expected[2] > 0
    of_others = dict(
        zip(encoded.repeat_rows[0, :-1].tolist(), encoded.repeat_scores[0, :-1], strict=True)
    )
    ratio = float((of_others[2] - of_others[1]).exp())
    assert math.isclose(ratio, float(expected[2] / expected[1]), rel_tol=1e-5)


def test_query_times_are_limited_by_the_training_events() -> None:
    recommender, _ = _build_served()
    events = (Event("i0", START + 29 * DAY),)
    early, *late = (
        recommender(collate_queries(Query(events, START + days * DAY))).repeat_scores
        for days in (40, 60, 61, 2000)
    )
    assert not torch.equal(early, late[0])
    assert torch.equal(late[0], late[1])
    assert torch.equal(late[0], late[2])


def _compute_weight(days: float, shape: np.ndarray) -> float:
    """Compute (1 - pi) Exp + pi Normal as the paper writes it."""
    interval = days / UNIT_DAYS
    pi = 1 / (1 + math.exp(-shape[0]))
    beta, sigma = math.exp(shape[1]) + LEAST_WIDTH, math.exp(shape[3]) + LEAST_WIDTH
    z = (interval - shape[2]) / sigma
    normal = math.exp(-0.5 * z * z) / (sigma * math.sqrt(2 * math.pi))
    return (1 - pi) * math.exp(-interval / beta) / beta + pi * normal


def test_loading_takes_the_number_of_users_from_the_state() -> None:
    fitted = TAIWConfig(neighbours=2, steps=2).build(items=ITEMS)
    fit_counts(fitted)
    empty = TAIWConfig(neighbours=2, steps=2).build(items=ITEMS)
    empty.load_state_dict(fitted.state_dict())
    query = Query((Event("i0", START), Event("i1", START + DAY)), START + 9 * DAY)
    found, expected = (encode(one, query).repeat_scores for one in (empty, fitted))
    assert found is not None
    assert expected is not None
    assert torch.equal(found, expected)
    assert len(empty.state_dict()["purchases.offsets"]) == 4


def test_items_without_repeats_share_the_kernel() -> None:
    encoder = TAIWConfig(neighbours=0, steps=50, shrinkage=1.0).build(items=ITEMS)
    assert isinstance(encoder, TAIW)
    encoder.fit_counts(*_plant_cadence())
    shapes = encoder.purchases.shapes
    assert torch.equal(shapes[3], shapes[4])
    assert not torch.allclose(shapes[1], shapes[2])


def test_without_repeats_the_fit_keeps_its_start() -> None:
    encoder = TAIWConfig(neighbours=2).build(items=ITEMS)
    encoder.fit_counts(
        torch.tensor([1, 2]), START + DAY * torch.tensor([0, 1]), torch.tensor([0, 0])
    )
    assert encoder.state_dict()["purchases.shapes"].isfinite().all()
