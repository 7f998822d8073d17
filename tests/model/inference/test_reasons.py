"""Reasons of models that score other items than those of the events: they name what it is."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from model.encoders import EncoderConfig
from model.encoders.basket_markov import BasketMarkovConfig
from model.encoders.markov import MarkovConfig
from model.encoders.taiw import TAIWConfig
from model.encoders.tifu_knn import TIFUKNNConfig
from model.encoders.up_cf import UPCFConfig
from model.history import Event, Query
from model.inference.answers import Constraints, Contribution
from model.inference.predictor import Predictor
from model.inference.sentences import choose_words, write_sentence
from model.interfaces import CountingEncoder
from model.store.opening import open_predictor
from tests import tiny
from tests.contracts.predictor import assert_adds_up
from tests.model.encoders.basket_scores import Baskets
from tests.tiny import DAY, FIRST_AT, ITEM_IDS

NEIGHBOURLY: list[EncoderConfig] = [
    TIFUKNNConfig(basket_decay=1.0, group_decay=1.0, groups=1),
    UPCFConfig(recency=0),
    TAIWConfig(steps=1),
]
ALONE: list[EncoderConfig] = [
    TIFUKNNConfig(own_share=1),
    UPCFConfig(neighbours=0),
    TAIWConfig(neighbours=0, steps=1),
]
KINDS = ("tifu_knn", "up_cf", "taiw")


def open_counted(root: Path, encoder: EncoderConfig, users: list[Baskets]) -> Predictor:
    """Open a model that has counted the histories of users, a day between baskets."""
    config = tiny.recommender_config(encoder)
    recommender = config.build().eval()
    assert isinstance(recommender.encoder, CountingEncoder)
    assert recommender.item_bias is not None
    events = [
        (row, FIRST_AT + day * DAY, user)
        for user, baskets in enumerate(users)
        for day, basket in enumerate(baskets)
        for row in basket
    ]
    with torch.no_grad():
        recommender.item_bias.copy_(recommender.encoder.fit_counts(*torch.tensor(events).T))
    (root / "new").mkdir()
    version = tiny.writer(config, recommender)(root / "new")
    return open_predictor((root / "new").rename(root / version))


class Explained(NamedTuple):
    """Why one item is recommended."""

    sentence: str
    contributions: dict[str, Contribution]

    def list_events(self, kind: str) -> list[tuple[int, int]]:
        """List the row and the day of each event that has a part in a contribution."""
        events = self.contributions[kind].events
        return [(one.row, (one.event.at - FIRST_AT) // DAY) for one in events]


def explain(predictor: Predictor, *baskets: list[int]) -> dict[int, Explained]:
    """Explain the items for a history with a day between baskets, a day later; by their rows."""
    events = [
        Event(ITEM_IDS[row - 1], FIRST_AT + day * DAY, action)
        for day, basket in enumerate(baskets)
        for row, action in zip(basket, ("view", "play", "read"), strict=False)
    ]
    query = Query.as_of(events, FIRST_AT + len(baskets) * DAY)
    within = Constraints(n=len(ITEM_IDS), exclude_seen=False)
    explained = {}
    for item in predictor.recommend(query, within, reasons=True).items:
        assert_adds_up(item)
        assert item.reasons is not None
        row = item.reasons.facts.follows_row
        followed = None if row is None else ITEM_IDS[row - 1]
        sentence = write_sentence(item, item.reasons, choose_words(events), followed)
        contributions = {one.kind: one for one in item.reasons.contributions}
        explained[item.row] = Explained(sentence, contributions)
    return explained


class TestBasketMarkov:
    def test_a_follower_names_the_item_that_it_followed(self, tmp_path: Path) -> None:
        """Nothing follows the last event, item 3."""
        predictor = open_counted(tmp_path, BasketMarkovConfig(), [[[1], [2]], [[4], [3]]])
        found = explain(predictor, [5], [1, 3])
        assert found[2].sentence == "Among what users choose after i0."
        assert found[2].list_events("followers") == [(1, 1)]
        assert "repeats" not in found[2].contributions

    def test_events_count_by_how_often_the_item_followed(self, tmp_path: Path) -> None:
        # 3 follows 1 in half and 2 in a third of their baskets.
        users = [[[1, 2], [3]], [[1], [4]], [[2], [5]], [[2], [5]]]
        found = explain(open_counted(tmp_path, BasketMarkovConfig(), users), [4], [1, 2])
        first, second = found[3].contributions["followers"].events
        assert (first.row, second.row) == (1, 2)
        assert first.value / second.value == pytest.approx(3 / 2)
        assert found[3].sentence == "Among what users choose after i0."

    def test_an_item_that_followed_nothing_names_nothing(self, tmp_path: Path) -> None:
        predictor = open_counted(tmp_path, BasketMarkovConfig(), [[[1], [2]], [[4], [3]]])
        found = explain(predictor, [2], [3])
        assert found[2].sentence == "Viewed once, 2 days ago."
        assert found[2].list_events("followers") == []

    def test_own_events_stand_beside_what_was_followed(self, tmp_path: Path) -> None:
        predictor = open_counted(tmp_path, BasketMarkovConfig(), [[[1], [2]], [[4], [3]]])
        assert explain(predictor, [2], [1, 3])[2].sentence == (
            "Viewed once, 2 days ago; among what users choose after i0."
        )


class TestMarkov:
    def test_a_successor_names_the_last_event(self, tmp_path: Path) -> None:
        users = [[[1], [2]], [[3], [4]]]
        found = explain(open_counted(tmp_path, MarkovConfig(successors=3), users), [1], [3], [1])
        assert found[2].sentence == "Among what users choose after i0."
        assert found[2].list_events("followers") == [(1, 2)]
        assert found[4].list_events("followers") == []

    def test_a_successor_that_is_the_same_item_is_no_repeat(self, tmp_path: Path) -> None:
        """The only event is of the item that follows itself."""
        predictor = open_counted(tmp_path, MarkovConfig(successors=1), [[[1], [1], [1]]])
        found = explain(predictor, [1])
        assert found[1].sentence == "Viewed once, 1 day ago."
        assert "repeats" not in found[1].contributions
        assert found[1].list_events("followers") == [(1, 0)]


@pytest.mark.parametrize("encoder", ALONE, ids=KINDS)
class TestWithoutNeighbours:
    def test_own_events_follow_no_other(self, tmp_path: Path, encoder: EncoderConfig) -> None:
        predictor = open_counted(tmp_path, encoder, [[[1], [2]], [[2], [3]]])
        found = explain(predictor, [2], [2], [3])
        assert found[2].sentence == "Viewed 2 times, last 2 days ago."
        assert found[2].list_events("repeats") == [(2, 0), (2, 1)]
        assert set(found[2].contributions) == {"average", "state", "bias", "repeats"}
        assert found[1].list_events("repeats") == []


@pytest.mark.parametrize("encoder", NEIGHBOURLY, ids=KINDS)
class TestWithNeighbours:
    USERS: list[Baskets] = [[[1], [2], [1]]]  # noqa: RUF012

    def test_an_item_of_neighbours_is_named_so(
        self, tmp_path: Path, encoder: EncoderConfig
    ) -> None:
        found = explain(open_counted(tmp_path, encoder, self.USERS), [3], [2])
        assert found[1].sentence == "Chosen by similar users."
        assert found[1].contributions["neighbours"].value > 0
        assert found[1].list_events("repeats") == []

    def test_an_own_item_is_of_its_own_events(self, tmp_path: Path, encoder: EncoderConfig) -> None:
        found = explain(open_counted(tmp_path, encoder, self.USERS), [3], [2])
        assert found[3].sentence == "Viewed once, 2 days ago."
        assert found[3].list_events("repeats") == [(3, 0)]
        assert found[3].contributions["neighbours"].value == 0

    def test_own_events_and_neighbours_are_named_together(
        self, tmp_path: Path, encoder: EncoderConfig
    ) -> None:
        found = explain(open_counted(tmp_path, encoder, self.USERS), [1], [2], [1], [2])
        assert found[1].sentence == "Viewed 2 times, last 2 days ago; chosen by similar users."
        assert found[1].list_events("repeats") == [(1, 0), (1, 2)]

    def test_nothing_is_of_the_last_event(self, tmp_path: Path, encoder: EncoderConfig) -> None:
        found = explain(open_counted(tmp_path, encoder, self.USERS), [1], [3])
        assert "followers" not in found[1].contributions
        assert "i2" not in found[1].sentence

    def test_events_of_an_item_at_an_instant_share(
        self, tmp_path: Path, encoder: EncoderConfig
    ) -> None:
        found = explain(open_counted(tmp_path, encoder, self.USERS), [1, 1], [3])
        first, second = found[1].contributions["repeats"].events
        assert {first.event.action, second.event.action} == {"view", "play"}
        assert first.value == pytest.approx(second.value)


class TestShares:
    """Of the own events and of the neighbours, by the formulas."""

    USERS: list[Baskets] = [[[1], [2], [1]]]  # noqa: RUF012

    @pytest.mark.parametrize(
        ("encoder", "ratio"),
        [
            # Half of the own baskets hold item 1, two thirds of the neighbour's.
            (NEIGHBOURLY[0], 0.7 * (1 / 2) / (0.3 * 2 / 3)),
            # Both users have the same two items, and so the similarity is 1.
            (NEIGHBOURLY[1], (1 / 2) / (2 / 3)),
        ],
        ids=KINDS[:2],
    )
    def test_they_are_those_of_the_score(
        self, tmp_path: Path, encoder: EncoderConfig, ratio: float
    ) -> None:
        found = explain(open_counted(tmp_path, encoder, self.USERS), [1], [2])[1].contributions
        assert found["repeats"].value / found["neighbours"].value == pytest.approx(ratio)

    def test_an_event_before_the_last_baskets_has_none(self, tmp_path: Path) -> None:
        found = explain(open_counted(tmp_path, UPCFConfig(recency=1), self.USERS), [1], [2])[1]
        assert found.sentence == "Viewed once, 2 days ago; chosen by similar users."
        assert found.list_events("repeats") == []

    def test_a_later_event_has_a_larger_one(self, tmp_path: Path) -> None:
        encoder = TIFUKNNConfig(own_share=1, groups=1, basket_decay=0.5)
        found = explain(open_counted(tmp_path, encoder, self.USERS), [1], [2], [1])[1]
        first, second = found.contributions["repeats"].events
        assert second.value / first.value == pytest.approx(4)
