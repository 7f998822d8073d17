"""The contract of a predictor, for any encoder: subclass it and set `config`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.batch import collate
from model.errors import NoItemSpaceError, UnknownItemError
from model.history import Event, Query
from model.inference.answers import Constraints, OcclusionUnit, Recommendation, ScoredItem
from model.inference.predictor import Predictor
from model.recommender import Recommender, RecommenderConfig
from model.store.opening import open_predictor
from tests import tiny
from tests.tiny import DAY, ITEM_IDS, LAST_AT

ids = st.sampled_from([*ITEM_IDS, "unknown", "another"])
histories = st.lists(st.tuples(ids, st.floats(0, 30)), max_size=10)
crowds = st.lists(st.tuples(ids, st.sampled_from([0.0, 1.0, 9.0])), min_size=2, max_size=14)
"""More events than the models read, at few instants."""
some_ids = st.frozensets(ids, max_size=len(ITEM_IDS) + 2)
masks = st.lists(st.booleans(), min_size=len(ITEM_IDS), max_size=len(ITEM_IDS)).map(
    lambda allowed: np.array([False, *allowed])
)
constraints = st.builds(
    Constraints,
    n=st.integers(1, len(ITEM_IDS) + 3),
    exclude_seen=st.booleans(),
    exclude=some_ids,
    include=st.none() | some_ids,
    strict=st.booleans(),
    allowed=st.none() | masks,
)

VERDICTS = {"high", "medium", "reversed"}
"""Notes of a correlation that is not withheld."""

NOTHING_EXCLUDED = Constraints(n=len(ITEM_IDS), exclude_seen=False)


def query_of(happened: list[tuple[str, float]], query_time: int = LAST_AT) -> Query:
    """A query over items and the days since their events."""
    events = [Event(item_id, query_time - int(ago * DAY)) for item_id, ago in happened]
    return Query.as_of(events, query_time)


def shuffle(
    happened: list[tuple[str, float]],
) -> st.SearchStrategy[list[tuple[str, float]]]:
    """Draw another order of events, with some of them twice."""
    again = st.lists(st.sampled_from(happened), max_size=3)
    return again.flatmap(lambda repeated: st.permutations(happened + repeated))


def one_in(number: int) -> settings:
    """Try one in so many of the examples that the profile asks for."""
    return settings(max_examples=settings().max_examples // number)


@pytest.mark.hypothesis
class PredictorContract:
    config: ClassVar[RecommenderConfig]

    @pytest.fixture(scope="class")
    @classmethod
    def trained(cls) -> Recommender:
        return tiny.recommender(cls.config)

    @pytest.fixture(scope="class")
    @classmethod
    def predictor(cls, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
        return open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("b"), config=cls.config))

    # Hypothesis runs inside these tests: it does not support inherited test methods.

    def test_the_order_within_an_instant_does_not_matter(self, predictor: Predictor) -> None:
        @one_in(2)
        @given(crowds.flatmap(lambda happened: st.tuples(st.just(happened), shuffle(happened))))
        def check(both: tuple[list[tuple[str, float]], list[tuple[str, float]]]) -> None:
            expected, found = (
                predictor.recommend(query_of(happened), NOTHING_EXCLUDED, explain=True)
                for happened in both
            )
            assert [item.item_id for item in found.items] == [i.item_id for i in expected.items]
            assert [item.score for item in found.items] == pytest.approx(
                [item.score for item in expected.items], abs=1e-5
            )
            assert found.history_used == expected.history_used
            assert found.attention == expected.attention

        check()

    def test_an_opened_bundle_encodes_as_the_written_one(
        self, predictor: Predictor, trained: Recommender
    ) -> None:
        @one_in(4)  # what differs between bundles is their weights, not the history
        @given(happened=histories)
        def check(happened: list[tuple[str, float]]) -> None:
            query = query_of(happened)
            history = predictor.look_up_history(query)
            if history.events:
                with torch.no_grad():
                    expected = trained(collate([history], [query.query_time]))
                assert torch.equal(predictor.encode(query, history).user, expected.user)

        check()

    def test_the_items_are_the_best_that_are_allowed(self, predictor: Predictor) -> None:
        @given(happened=histories, within=constraints)
        def check(happened: list[tuple[str, float]], within: Constraints) -> None:
            query = query_of(happened)
            items = assert_best_of_catalog(predictor, query, within)
            found = [item.item_id for item in items]
            allowed = [item_id for item_id in ITEM_IDS if is_allowed(item_id, query, within)]
            assert len(found) == len(set(found))
            assert set(found) <= set(allowed)
            has_history = any(item_id in ITEM_IDS for item_id, _ in happened)
            if has_history or not within.strict:
                assert len(found) == min(within.n, len(allowed))
            else:
                assert found == []

        check()

    def test_scores_decrease_from_first_to_last(self, predictor: Predictor) -> None:
        scores = [item.score for item in recommend_all(predictor, query_of([("i1", 3)])).items]
        assert scores == sorted(scores, reverse=True)
        assert len(set(scores)) > 1

    def test_items_have_the_rows_of_their_titles_and_categories(self, predictor: Predictor) -> None:
        items = {
            item.item_id: item for item in recommend_all(predictor, query_of([("i1", 3)])).items
        }
        assert predictor.catalog.title(items["i2"].row) == "Item 2"
        assert predictor.catalog.categories[items["i2"].row - 1] == ("even", "all")
        assert predictor.catalog.title(items["i3"].row) is None
        assert predictor.catalog.categories[items["i3"].row - 1] == ()

    def test_unknown_items_are_reported_and_skipped(self, predictor: Predictor) -> None:
        with_unknown = query_of([("zebra", 9), ("i1", 3), ("yak", 2), ("zebra", 1)])
        recommendation = recommend_all(predictor, with_unknown)
        assert recommendation.unknown_item_ids == ("zebra", "yak")
        assert recommendation.history_used == 1
        assert recommendation.items == recommend_all(predictor, query_of([("i1", 3)])).items

    @pytest.mark.parametrize("happened", [[], [("zebra", 1.0)]])
    def test_without_known_events_items_are_popular(
        self, predictor: Predictor, happened: list[tuple[str, float]]
    ) -> None:
        recommendation = predictor.recommend(query_of(happened), Constraints(n=3), explain=True)
        assert [item.item_id for item in recommendation.items] == ["i23", "i0", "i1"]
        assert {item.reason for item in recommendation.items} == {"popular"}
        assert recommendation.fallback == "no_history"
        assert recommendation.attention is None
        assert recommendation.history_used == 0

    def test_with_a_history_items_come_from_the_model(self, predictor: Predictor) -> None:
        recommendation = recommend_all(predictor, query_of([("i1", 3)]))
        assert {item.reason for item in recommendation.items} == {"model"}
        assert recommendation.fallback is None

    def test_a_truncated_history_gives_a_warning(self, predictor: Predictor) -> None:
        longest = predictor.bundle.manifest.max_history
        just = [(f"i{n}", 20.0 - n) for n in range(longest)]
        assert recommend_all(predictor, query_of(just)).warnings == ()
        longer = recommend_all(predictor, query_of([("i9", 40.0), *just]))
        assert longer.warnings == ("history_truncated",)
        assert longer.history_used == longest
        assert longer.items == recommend_all(predictor, query_of(just)).items

    def test_a_century_past_the_training_data_gives_a_warning(self, predictor: Predictor) -> None:
        late = LAST_AT + 100 * 365 * DAY
        for query in (query_of([("i1", 3)], late), Query((Event("i1", LAST_AT),), late)):
            recommendation = recommend_all(predictor, query)
            assert recommendation.warnings == ("beyond_training_window",)
            assert np.isfinite([item.score for item in recommendation.items]).all()

    def test_just_past_the_training_data_gives_no_warning(self, predictor: Predictor) -> None:
        tenth = predictor.bundle.manifest.data_window.length // 10
        assert recommend_all(predictor, query_of([("i1", 3)], LAST_AT + tenth)).warnings == ()
        beyond = recommend_all(predictor, query_of([("i1", 3)], LAST_AT + tenth + 1))
        assert beyond.warnings == ("beyond_training_window",)

    def test_a_withheld_query_time_is_not_read(self, predictor: Predictor) -> None:
        event = Event("i1", LAST_AT - DAY)
        soon = Query((event,), LAST_AT, query_time_withheld=True)
        at_once = Query((event,), event.at, query_time_withheld=True)
        assert recommend_all(predictor, soon).items == recommend_all(predictor, at_once).items

    def test_attention_has_one_weight_per_known_event(self, predictor: Predictor) -> None:
        query = query_of([("i1", 9), ("zebra", 5), ("i2", 3), ("i1", 1)])
        attention = predictor.recommend(query, Constraints(), explain=True).attention
        if attention is None:
            assert predictor.encode(query, predictor.look_up_history(query)).attention is None
            return
        assert [event.item_id for event in attention.events] == ["i1", "i2", "i1"]
        for head in attention.heads:
            assert len(head) == 3
            if attention.normalised:
                assert sum(head) == pytest.approx(1, abs=1e-5)
        assert attention.weights == pytest.approx(np.mean(attention.heads, axis=0), abs=1e-6)

    def test_attention_is_given_only_on_request(self, predictor: Predictor) -> None:
        assert recommend_all(predictor, query_of([("i1", 3)])).attention is None

    def test_diverse_items_begin_with_the_best_and_are_distinct(self, predictor: Predictor) -> None:
        query, within = query_of([("i1", 3), ("i5", 2)]), Constraints(n=8)
        plain = predictor.recommend(query, within)
        diverse = predictor.recommend(query, replace(within, diversity=0.7))
        assert diverse.items[0] == plain.items[0]
        assert len({item.item_id for item in diverse.items}) == 8
        if predictor.bundle.recommender.encoder.has_item_space:
            assert diverse.items != plain.items
            assert diverse.warnings == ()
        else:
            assert diverse.items == plain.items
            assert diverse.warnings == ("diversity_unavailable",)

    @pytest.mark.parametrize("unit", ["event", "basket"])
    def test_occlusion_is_the_change_of_the_score(
        self, predictor: Predictor, unit: OcclusionUnit
    ) -> None:
        query = query_of([("i1", 9), ("i2", 3), ("i4", 3), ("i5", 2), ("i1", 1)])
        recommendation = predictor.recommend(query, Constraints(n=3), occlude=unit)
        if recommendation.attention is None:
            assert recommendation.warnings == ("attention_unavailable",)
            return
        occlusion = recommendation.attention.occlusion
        assert occlusion is not None
        assert occlusion.unit == unit
        assert occlusion.of_item_id == recommendation.items[0].item_id
        expected = [(0,), (1,), (2,), (3,), (4,)] if unit == "event" else [(0,), (1, 2), (3,), (4,)]
        assert [one.indices for one in occlusion.left_out] == expected
        whole = score_all(predictor, query)
        assert whole is not None
        assert occlusion.mean_change is not None
        for one in occlusion.left_out:
            kept = [event for at, event in enumerate(query.history) if at not in one.indices]
            without = score_all(predictor, Query(tuple(kept), query.query_time))
            assert without is not None
            owed = whole[occlusion.of_item_id] - without[occlusion.of_item_id]
            assert one.change + occlusion.mean_change == pytest.approx(owed, abs=1e-4)
            weights = [recommendation.attention.weights[at] for at in one.indices]
            assert one.weight == pytest.approx(sum(weights), abs=1e-6)
        assert sum(one.change for one in occlusion.left_out) == pytest.approx(0, abs=1e-5)
        assert (occlusion.faithfulness is None) == (occlusion.note not in VERDICTS)

    def test_occlusion_can_be_requested_for_any_known_item(self, predictor: Predictor) -> None:
        query = query_of([("i1", 9), ("i2", 3)])
        attention = predictor.recommend(
            query, Constraints(), occlude="event", occlude_for="i7"
        ).attention
        if attention is not None:
            assert attention.occlusion is not None
            assert attention.occlusion.of_item_id == "i7"
        with pytest.raises(UnknownItemError, match="zebra"):
            predictor.recommend(query, Constraints(), occlude="event", occlude_for="zebra")

    @pytest.mark.parametrize("unit", ["event", "basket"])
    def test_what_would_leave_no_event_is_not_left_out(
        self, predictor: Predictor, unit: OcclusionUnit
    ) -> None:
        happened = [("i1", 9.0)] if unit == "event" else [("i1", 9.0), ("i2", 9.0)]
        attention = predictor.recommend(query_of(happened), Constraints(), occlude=unit).attention
        if attention is not None:
            assert attention.occlusion is not None
            assert attention.occlusion.left_out == ()
            assert attention.occlusion.mean_change is None
            assert attention.occlusion.faithfulness is None
            assert attention.occlusion.note == "too_few_left_out"

    def test_contributions_add_up_to_the_score(self, predictor: Predictor) -> None:
        @given(happened=histories, within=constraints, withheld=st.booleans())
        def check(
            happened: list[tuple[str, float]], within: Constraints, *, withheld: bool
        ) -> None:
            query = replace(query_of(happened), query_time_withheld=withheld)
            plain = predictor.recommend(query, within)
            explained = predictor.recommend(query, within, reasons=True)
            assert [replace(item, reasons=None) for item in explained.items] == [*plain.items]
            assert (explained.attention, explained.warnings) == (None, plain.warnings)
            for item in explained.items:
                assert_adds_up(item)

        check()

    def test_events_have_parts_in_contributions_of_their_items(self, predictor: Predictor) -> None:
        query = query_of([("i1", 9), ("zebra", 5), ("i2", 3), ("i1", 1), ("i3", 0.5)])
        items = predictor.recommend(query, NOTHING_EXCLUDED, reasons=True).items
        for item in items:
            assert item.reasons is not None
            assert item.reasons.facts.times == {"i1": 2, "i2": 1, "i3": 1}.get(item.item_id, 0)
            for contribution in item.reasons.contributions:
                for one in contribution.events:
                    assert one.event in query.history
                    assert predictor.catalog.item_id(one.row) == one.event.item_id
                    assert one.value > 0
                    if contribution.kind == "repeats":
                        assert one.event.item_id == item.item_id

    def test_given_items_rank_as_in_the_whole_catalog(self, predictor: Predictor) -> None:
        query = query_of([("i1", 3), ("i5", 2), ("zebra", 1)])
        given_ids = ["i9", "zebra", "i5", "i20", "i9", "i2"]
        ranked = predictor.rank_items(query, given_ids)
        expected = {item.item_id: item.score for item in recommend_all(predictor, query).items}
        assert {item.item_id for item in ranked.items} == {"i9", "i5", "i20", "i2"}
        scores = [item.score for item in ranked.items]
        assert scores == sorted(scores, reverse=True)
        assert scores == pytest.approx([expected[item.item_id] for item in ranked.items], abs=1e-4)
        assert ranked.unranked_item_ids == ("zebra",)
        assert ranked.unknown_item_ids == ("zebra",)
        assert ranked.fallback is None

    def test_given_items_rank_by_popularity_without_a_history(self, predictor: Predictor) -> None:
        ranked = predictor.rank_items(query_of([]), ["i2", "i23", "i5"])
        assert [item.item_id for item in ranked.items] == ["i23", "i2", "i5"]
        assert {item.reason for item in ranked.items} == {"popular"}
        assert ranked.fallback == "no_history"
        assert predictor.rank_items(query_of([("i1", 3)]), []).items == ()

    def test_similar_items_have_similar_vectors(self, predictor: Predictor) -> None:
        if not predictor.bundle.recommender.encoder.has_item_space:
            with pytest.raises(NoItemSpaceError):
                predictor.find_similar("i1", 5)
            return
        vectors = predictor.bundle.recommender.items.weight.numpy()[1:].astype(float)
        lengths = np.linalg.norm(vectors, axis=1)
        cosines = vectors @ vectors[1] / lengths / lengths[1]
        found = predictor.find_similar("i1", 5)
        order = [f"i{number}" for number in np.argsort(-cosines) if number != 1]
        assert [item.item_id for item in found] == order[:5]
        assert [item.score for item in found] == pytest.approx(
            [cosines[ITEM_IDS.index(item.item_id)] for item in found], abs=1e-5
        )
        allowed = np.array([False, *(number % 2 == 0 for number in range(len(ITEM_IDS)))])
        even = predictor.find_similar("i1", len(ITEM_IDS), allowed=allowed)
        assert {item.item_id for item in even} == {f"i{n}" for n in range(0, len(ITEM_IDS), 2)}
        with pytest.raises(UnknownItemError):
            predictor.find_similar("zebra", 3)

    def test_a_sweep_equals_single_recommendations(self, predictor: Predictor) -> None:
        happened = [(f"i{n}", 20.0 - 2 * n) for n in range(8)]
        query = query_of([*happened, ("zebra", 1.5)])
        ago = [30, 19, 19, 17.5, 13, 12.9, 9, 5.5, 3, 1.2, 1.1, 0.7, 0]
        query_times = [LAST_AT - int(days * DAY) for days in ago]
        within = Constraints(n=4)
        swept = predictor.sweep(query, query_times, within)
        assert swept.unknown_item_ids == ("zebra",)
        assert swept.warnings == ("history_truncated",)
        assert len(swept.instants) == len(query_times)
        for instant, query_time in zip(swept.instants, query_times, strict=True):
            single = predictor.recommend(
                Query.as_of(query.history, query_time), within, explain=True
            )
            assert instant.query_time == query_time
            assert instant.history_used == single.history_used
            assert instant.fallback == single.fallback
            assert [item.item_id for item in instant.items] == [i.item_id for i in single.items]
            assert [item.score for item in instant.items] == pytest.approx(
                [item.score for item in single.items], abs=1e-4
            )
            if single.attention is None:
                assert (instant.weights, instant.intensities) == (None, None)
                continue
            intensities = None
            if instant.intensities is not None:
                assert swept.groups is not None
                intensities = dict(zip(swept.groups, instant.intensities, strict=True))
            assert intensities == (
                None
                if single.attention.intensities is None
                else pytest.approx(dict(single.attention.intensities), abs=1e-5)
            )
            assert instant.weights is not None
            read = slice(instant.first_event, instant.first_event + instant.history_used)
            assert swept.events[read] == single.attention.events
            assert instant.weights == pytest.approx(single.attention.weights, abs=1e-5)

    def test_a_sweep_applies_the_mask_of_each_instant(self, predictor: Predictor) -> None:
        query, times = query_of([("i1", 9.0), ("i2", 3.0)]), [LAST_AT - DAY, LAST_AT]
        only = {
            time: np.arange(len(predictor.catalog) + 1) == predictor.catalog.row(item_id)
            for time, item_id in zip(times, ("i5", "i6"), strict=True)
        }
        swept = predictor.sweep(query, times, Constraints(n=3), allowed_at=only.__getitem__)
        assert [[item.item_id for item in one.items] for one in swept.instants] == [["i5"], ["i6"]]
        late = predictor.sweep(query, [LAST_AT, LAST_AT + 1000 * DAY], Constraints(n=0))
        assert [one.warnings for one in late.instants] == [(), ("beyond_training_window",)]
        assert late.warnings == ("beyond_training_window",)

    def test_a_sweep_before_any_event_gives_popular_items(self, predictor: Predictor) -> None:
        swept = predictor.sweep(query_of([]), [LAST_AT], Constraints(n=2))
        assert swept.events == ()
        (instant,) = swept.instants
        assert (instant.weights, instant.fallback) == (None, "no_history")
        assert (instant.intensities, swept.groups) == (None, None)
        assert [item.item_id for item in instant.items] == ["i23", "i0"]

    def test_threads_share_a_predictor(self, predictor: Predictor) -> None:
        queries = [query_of([(f"i{n % 20}", 3.0), ("i4", 1.0)]) for n in range(40)]
        alone = [recommend_all(predictor, query) for query in queries]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda query: recommend_all(predictor, query), queries)) == alone


def assert_adds_up(item: ScoredItem) -> None:
    """Assert that the contributions are those of the score, and those of events theirs."""
    assert item.reasons is not None
    contributions = item.reasons.contributions
    values = [one.value for one in contributions]
    assert sum(values) == pytest.approx(item.score, abs=2e-5, rel=1e-6)
    assert len({one.kind for one in contributions}) == len(values)
    relative = [one.value for one in contributions if one.kind != "average"]
    assert relative == sorted(relative, reverse=True)
    for one in contributions:
        if one.kind in ("repeats", "followers"):
            assert sum(part.value for part in one.events) == pytest.approx(one.value, abs=1e-9)
        else:
            assert one.events == ()
        if one.kind in ("repeats", "followers", "neighbours"):
            assert one.value >= 0


def assert_best_of_catalog(
    predictor: Predictor, query: Query, within: Constraints
) -> tuple[ScoredItem, ...]:
    """The recommended items, which are those of scoring every item without the index."""
    items = predictor.recommend(query, within).items
    scores = score_all(predictor, query)
    if scores is None:
        return items
    allowed = [item_id for item_id in ITEM_IDS if is_allowed(item_id, query, within)]
    best = sorted(allowed, key=lambda item_id: -scores[item_id])[: within.n]
    expected = [scores[item_id] for item_id in best]
    # Items of equal scores may stand in any order.
    assert [scores[item.item_id] for item in items] == pytest.approx(expected, abs=1e-6)
    assert [item.score for item in items] == pytest.approx(expected, abs=1e-4)
    return items


def recommend_all(predictor: Predictor, query: Query) -> Recommendation:
    return predictor.recommend(query, NOTHING_EXCLUDED)


def score_all(predictor: Predictor, query: Query) -> dict[str, float] | None:
    """Every item's score without the index; None where no event is known."""
    history = predictor.look_up_history(query)
    if not history.events:
        return None
    with torch.no_grad():
        batch = collate([history], [query.query_time], [query.query_time_withheld])
        scores = predictor.bundle.recommender.score_catalog(batch)
    return dict(zip(ITEM_IDS, scores[0, 1:].tolist(), strict=True))


def is_allowed(item_id: str, query: Query, within: Constraints) -> bool:
    """Whether the constraints permit an item, by their definitions."""
    if item_id in within.exclude:
        return False
    if within.include is not None and item_id not in within.include:
        return False
    if within.allowed is not None and not within.allowed[ITEM_IDS.index(item_id) + 1]:
        return False
    return not (within.exclude_seen and item_id in {event.item_id for event in query.history})
