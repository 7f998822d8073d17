import numpy as np
import pytest
from numpy.typing import NDArray

from model.clock import MICROSECONDS_PER_DAY
from tests import tiny
from tests.training.evaluation.logs import dataset_of, everything, question_at, ranking
from training.data.dataset import Dataset
from training.data.split import ByTimeConfig, LeaveOneOutConfig, Split
from training.evaluation import counting
from training.evaluation.counting import (
    COUNTING,
    COUNTING_LIVE,
    Counting,
    CountingSettings,
    fit_counting,
    tune_counting,
)


def score(
    dataset: Dataset,
    user: str,
    day: float,
    counted: NDArray[np.bool_] | None = None,
    **settings: float | None,
) -> dict[str, float]:
    """The score of every item for a user on a day."""
    counted = everything(dataset) if counted is None else counted
    reference = Counting.fit(dataset, counted, CountingSettings.model_validate(settings))
    scores = reference.score(question_at(dataset, user, day))[0]
    return {dataset.catalog.item_id(row): float(scores[row]) for row in range(1, len(scores))}


# The formula


def test_own_events_weigh_half_after_each_half_life() -> None:
    dataset = dataset_of(("u", "a", 0), ("u", "b", 10), ("u", "b", 20))
    scores = score(dataset, "u", 30, half_life_days=10, weight=0)
    assert scores == pytest.approx({"a": 1 / 7, "b": 6 / 7})
    plain = score(dataset, "u", 30, half_life_days=None, weight=0)
    assert plain == pytest.approx({"a": 1 / 3, "b": 2 / 3})


def test_the_share_of_recent_events_is_added_with_its_weight() -> None:
    dataset = dataset_of(
        *(("u", "a", 0), ("v", "a", 2.999), ("v", "b", 3), ("v", "b", 9), ("v", "c", 9.5)),
        ("v", "c", 10),
    )
    recent = score(dataset, "u", 10, half_life_days=None, weight=6, window_days=7)
    assert recent == pytest.approx({"a": 1.0, "b": 4.0, "c": 2.0})
    ever = score(dataset, "u", 10, half_life_days=None, weight=5, window_days=None)
    assert ever == pytest.approx({"a": 3.0, "b": 2.0, "c": 1.0})


def test_events_at_the_query_time_are_not_counted() -> None:
    dataset = dataset_of(("u", "a", 1), ("v", "b", 5), ("v", "c", 4.999))
    assert score(dataset, "u", 5, weight=1, window_days=2) == pytest.approx(
        {"a": 1, "b": 0, "c": 1}
    )


def test_a_user_without_history_gets_popular_items() -> None:
    dataset = dataset_of(("u", "a", 8), ("v", "b", 1), ("v", "b", 2), ("v", "c", 3))
    reference = Counting.fit(dataset, everything(dataset), CountingSettings())
    assert ranking(dataset, reference, question_at(dataset, "u", 4)) == "b c a"


def test_each_query_reads_the_window_before_its_own_time() -> None:
    generator = np.random.default_rng(0)
    days = np.sort(generator.uniform(0, 40, 60))
    dataset = dataset_of(*(("u", str(generator.integers(6)), day) for day in days))
    split = LeaveOneOutConfig().split(dataset, "next_event")
    settings = CountingSettings(weight=1, window_days=5)
    reference = Counting.fit(dataset, everything(dataset), settings)
    questions = split.test.select(np.zeros(20, dtype=np.int64))
    questions.query_times[:] = generator.uniform(1, 45, 20) * MICROSECONDS_PER_DAY
    questions.ends[:] = 0  # Without a history only popularity counts.
    for line, query_time in zip(reference.score(questions), questions.query_times, strict=True):
        end = min(query_time, dataset.times[-1] + 1)
        begin = end - 5 * MICROSECONDS_PER_DAY
        window = dataset.rows[(dataset.times >= begin) & (dataset.times < end)]
        counts = np.bincount(window, minlength=len(line))
        assert line == pytest.approx(counts / max(counts.sum(), 1))


# Frozen and live


def test_frozen_popularity_ends_with_the_last_known_event() -> None:
    dataset = dataset_of(
        ("u", "a", 1), ("v", "b", 2), ("v", "b", 3), ("v", "c", 50), ("w", "c", 51), ("w", "c", 60)
    )
    known = dataset.times < 40 * MICROSECONDS_PER_DAY
    settings = CountingSettings(half_life_days=None, weight=3, window_days=28)
    references = fit_counting(dataset, known, settings)
    question = question_at(dataset, "u", 55)
    assert ranking(dataset, references[COUNTING], question) == "a=b c"
    assert ranking(dataset, references[COUNTING_LIVE], question) == "c a b"


# The choice of the settings


def cut(dataset: Dataset) -> Split:
    return ByTimeConfig(test=0.2, validation=0.2).split(dataset, "next_event")


def log_of_habits() -> Dataset:
    """Nine users who repeat an item of their own, and a crowd of events of another item."""
    own = [(f"u{user}", f"i{user}", float(day)) for user in range(9) for day in range(50)]
    return dataset_of(*own, *[("crowd", "hit", 20 + event / 100) for event in range(3000)])


def log_of_fashions() -> Dataset:
    """Ten users who all choose one item, another one after 25 days each."""
    return dataset_of(
        *((f"u{user}", f"i{day // 25}", float(day)) for user in range(10) for day in range(100))
    )


def test_habits_lower_the_weight_of_popularity() -> None:
    split = LeaveOneOutConfig().split(log_of_habits(), "next_event")
    assert tune_counting(split, exclude_seen=False).weight <= 1


def test_fashions_shorten_the_window() -> None:
    chosen = tune_counting(cut(log_of_fashions()), exclude_seen=False)
    assert chosen.window_days in {1.0, 7.0}


def test_no_single_change_improves_the_chosen_settings() -> None:
    split = cut(Dataset.of(tiny.gap_world(users=30, length=20)))

    def measure(settings: CountingSettings) -> float:
        reference = Counting.fit(split.dataset, split.is_training, settings)
        blocks = counting.score_reference(reference, split.validation, len(split.dataset.catalog))
        ranks = counting.rank_targets(blocks, split.dataset, split.validation, exclude_seen=False)
        return float(ranks.ndcg(10).mean())

    chosen = tune_counting(split, exclude_seen=False)
    assert measure(chosen) > measure(CountingSettings())
    axes = {
        "half_life_days": counting.HALF_LIVES,
        "weight": counting.WEIGHTS,
        "window_days": counting.WINDOWS,
    }
    for name, values in axes.items():
        for value in values:
            changed = chosen.model_copy(update={name: value})
            assert measure(changed) <= measure(chosen)


def test_tuning_excludes_seen_items_as_the_report_does() -> None:
    split = LeaveOneOutConfig().split(log_of_habits(), "next_event")
    # Every target was seen: nothing is ranked, so no settings are better than the defaults.
    assert tune_counting(split, exclude_seen=True) == CountingSettings()


def test_tuning_reads_no_event_of_the_test() -> None:
    log = tiny.gap_world(users=30, length=20)
    split = cut(Dataset.of(log))
    chosen = tune_counting(split, exclude_seen=False)
    rows = split.dataset.rows.copy()
    later = ~split.is_known_before_test
    rows[later] = np.random.default_rng(0).permutation(rows[later])
    split.dataset.rows[:] = rows
    assert tune_counting(split, exclude_seen=False) == chosen


def test_many_questions_are_tuned_on_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    split = cut(log_of_fashions())
    lengths = []
    rank = counting.rank_targets
    monkeypatch.setattr(counting, "MOST_QUESTIONS", 3)
    monkeypatch.setattr(
        counting,
        "rank_targets",
        lambda blocks, dataset, questions, **rest: (
            lengths.append(len(questions)) or rank(blocks, dataset, questions, **rest)
        ),
    )
    tune_counting(split, exclude_seen=False)
    assert set(lengths) == {3}


def test_without_validation_questions_the_defaults_are_used() -> None:
    whole = log_of_fashions()
    moved = cut(whole).move_to_test(whole, "next_event")
    assert tune_counting(moved, exclude_seen=False) == CountingSettings()
