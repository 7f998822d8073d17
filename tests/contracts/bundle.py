"""What a published bundle promises, whatever encoder is inside."""

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.batch import collate
from model.bundle.answer import Answer, Constraints
from model.bundle.bundle import Bundle
from model.history import Event, Query
from model.recommender import Recommender, RecommenderConfig
from tests import tiny
from tests.tiny import DAY, ITEM_IDS, LAST_AT

ids = st.sampled_from([*ITEM_IDS, "unknown", "another"])
histories = st.lists(st.tuples(ids, st.floats(0, 30)), max_size=10)
some_ids = st.frozensets(ids, max_size=len(ITEM_IDS) + 2)
constraints = st.builds(
    Constraints,
    n=st.integers(1, len(ITEM_IDS) + 3),
    exclude_seen=st.booleans(),
    exclude=some_ids,
    include=st.none() | some_ids,
    strict=st.booleans(),
)

NOTHING_EXCLUDED = Constraints(n=len(ITEM_IDS), exclude_seen=False)


def asked(happened: list[tuple[str, float]], query_time: int = LAST_AT) -> Query:
    """A query over items and how many days ago they were met."""
    events = [Event(item_id, query_time - int(ago * DAY)) for item_id, ago in happened]
    return Query.as_of(events, query_time)


class BundleContract:
    config: ClassVar[RecommenderConfig]

    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls) -> Recommender:
        return tiny.recommender(cls.config)

    @pytest.fixture(scope="class")
    @classmethod
    def bundle(cls, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
        return Bundle.open(tiny.write_bundle(tmp_path_factory.mktemp("b"), config=cls.config))

    # Hypothesis runs inside these tests: a method that classes inherit may not be given to it.

    def test_what_was_opened_encodes_as_what_was_written(
        self, bundle: Bundle, trained: Recommender
    ) -> None:
        @given(happened=histories)
        def check(happened: list[tuple[str, float]]) -> None:
            query = asked(happened)
            history = bundle.look_up(query)
            if history.events:
                with torch.no_grad():
                    expected = trained(collate([history], [query.query_time]))
                assert torch.equal(bundle.encode(query, history).user, expected.user)

        check()

    def test_an_answer_is_the_best_of_the_whole_catalogue(self, bundle: Bundle) -> None:
        @given(happened=histories, within=constraints)
        def check(happened: list[tuple[str, float]], within: Constraints) -> None:
            query = asked(happened)
            scores = scores_of_everything(bundle, query)
            if scores is None:
                return
            allowed = [item_id for item_id in ITEM_IDS if is_allowed(item_id, query, within)]
            best = sorted(allowed, key=lambda item_id: -scores[item_id])[: within.n]
            answered = bundle.answer(query, within).items
            expected = [scores[item_id] for item_id in best]
            # Items of equal scores may stand in any order.
            assert [scores[item.item_id] for item in answered] == pytest.approx(expected, abs=1e-6)
            assert [item.score for item in answered] == pytest.approx(expected, abs=1e-4)

        check()

    def test_every_answered_item_keeps_every_rule(self, bundle: Bundle) -> None:
        @given(happened=histories, within=constraints)
        def check(happened: list[tuple[str, float]], within: Constraints) -> None:
            query = asked(happened)
            found = [item.item_id for item in bundle.answer(query, within).items]
            allowed = [item_id for item_id in ITEM_IDS if is_allowed(item_id, query, within)]
            assert len(found) == len(set(found))
            assert set(found) <= set(allowed)
            has_history = any(item_id in ITEM_IDS for item_id, _ in happened)
            if has_history or not within.strict:
                assert len(found) == min(within.n, len(allowed))
            else:
                assert found == []

        check()

    def test_scores_fall_from_first_to_last(self, bundle: Bundle) -> None:
        scores = [item.score for item in everything(bundle, asked([("i1", 3)])).items]
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) > 1

    def test_items_carry_their_titles_and_categories(self, bundle: Bundle) -> None:
        answered = {item.item_id: item for item in everything(bundle, asked([("i1", 3)])).items}
        assert answered["i2"].title == "Item 2"
        assert answered["i2"].categories == ("even", "all")
        assert answered["i3"].title is None
        assert answered["i3"].categories == ()

    def test_unknown_items_are_reported_and_skipped(self, bundle: Bundle) -> None:
        with_unknown = asked([("zebra", 9), ("i1", 3), ("yak", 2), ("zebra", 1)])
        answer = everything(bundle, with_unknown)
        assert answer.unknown_item_ids == ("zebra", "yak")
        assert answer.history_used == 1
        assert answer.items == everything(bundle, asked([("i1", 3)])).items

    @pytest.mark.parametrize("happened", [[], [("zebra", 1.0)]])
    def test_without_a_usable_history_popularity_answers(
        self, bundle: Bundle, happened: list[tuple[str, float]]
    ) -> None:
        answer = bundle.answer(asked(happened), Constraints(n=3), explain=True)
        assert [item.item_id for item in answer.items] == ["i23", "i0", "i1"]
        assert {item.reason for item in answer.items} == {"popular"}
        assert answer.fallback == "no_history"
        assert answer.attention is None
        assert answer.history_used == 0

    def test_with_a_history_the_model_answers(self, bundle: Bundle) -> None:
        answer = everything(bundle, asked([("i1", 3)]))
        assert {item.reason for item in answer.items} == {"model"}
        assert answer.fallback is None

    def test_a_history_longer_than_the_model_reads_says_so(self, bundle: Bundle) -> None:
        longest = bundle.manifest.max_history
        just = [(f"i{n}", 20.0 - n) for n in range(longest)]
        assert everything(bundle, asked(just)).warnings == ()
        longer = everything(bundle, asked([("i9", 40.0), *just]))
        assert longer.warnings == ("history_truncated",)
        assert longer.history_used == longest
        assert longer.items == everything(bundle, asked(just)).items

    def test_a_century_past_the_training_data_is_answered_with_a_warning(
        self, bundle: Bundle
    ) -> None:
        late = LAST_AT + 100 * 365 * DAY
        for query in (asked([("i1", 3)], late), Query((Event("i1", LAST_AT),), late)):
            answer = everything(bundle, query)
            assert answer.warnings == ("beyond_training_window",)
            assert np.isfinite([item.score for item in answer.items]).all()

    def test_just_past_the_training_data_needs_no_warning(self, bundle: Bundle) -> None:
        tenth = bundle.manifest.data_window.length // 10
        assert everything(bundle, asked([("i1", 3)], LAST_AT + tenth)).warnings == ()
        beyond = everything(bundle, asked([("i1", 3)], LAST_AT + tenth + 1))
        assert beyond.warnings == ("beyond_training_window",)

    def test_a_withheld_query_time_is_not_read(self, bundle: Bundle) -> None:
        event = Event("i1", LAST_AT - DAY)
        soon = Query((event,), LAST_AT, query_time_withheld=True)
        at_once = Query((event,), event.at, query_time_withheld=True)
        assert everything(bundle, soon).items == everything(bundle, at_once).items

    def test_explained_attention_stands_beside_the_events_it_weighs(self, bundle: Bundle) -> None:
        query = asked([("i1", 9), ("zebra", 5), ("i2", 3), ("i1", 1)])
        attention = bundle.answer(query, Constraints(), explain=True).attention
        if attention is None:
            assert bundle.encode(query, bundle.look_up(query)).attention is None
            return
        assert [event.item_id for event in attention.events] == ["i1", "i2", "i1"]
        for head in attention.heads:
            assert len(head) == 3
            if attention.normalised:
                assert sum(head) == pytest.approx(1, abs=1e-5)
        assert attention.weights == pytest.approx(np.mean(attention.heads, axis=0), abs=1e-6)

    def test_attention_comes_only_where_it_is_asked_for(self, bundle: Bundle) -> None:
        assert everything(bundle, asked([("i1", 3)])).attention is None

    def test_threads_share_a_bundle(self, bundle: Bundle) -> None:
        queries = [asked([(f"i{n % 20}", 3.0), ("i4", 1.0)]) for n in range(40)]
        alone = [everything(bundle, query) for query in queries]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda query: everything(bundle, query), queries)) == alone


def everything(bundle: Bundle, query: Query) -> Answer:
    return bundle.answer(query, NOTHING_EXCLUDED)


def scores_of_everything(bundle: Bundle, query: Query) -> dict[str, float] | None:
    """Every item's score without the index; None without a usable history."""
    history = bundle.look_up(query)
    if not history.events:
        return None
    with torch.no_grad():
        batch = collate([history], [query.query_time], [query.query_time_withheld])
        scores = bundle.recommender.score_catalogue(batch)
    return dict(zip(ITEM_IDS, scores[0, 1:].tolist(), strict=True))


def is_allowed(item_id: str, query: Query, within: Constraints) -> bool:
    """The rules, read from their words."""
    if item_id in within.exclude:
        return False
    if within.include is not None and item_id not in within.include:
        return False
    return not (within.exclude_seen and item_id in {event.item_id for event in query.history})
