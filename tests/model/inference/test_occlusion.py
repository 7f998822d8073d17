"""Occlusion and the faithfulness of attention."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from model.batch import look_up_history
from model.inference.occlusion import (
    count_left_out,
    divide_history,
    find_most_attended,
    leave_out,
    measure_faithfulness,
)
from tests.contracts.histories import ACTIONS, CATALOG
from tests.contracts.predictor import query_of


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_the_most_attended_events_keep_the_order_of_the_history() -> None:
    assert find_most_attended(array(0.1, 0.5, 0.2, 0.2), 3).tolist() == [1, 2, 3]
    assert find_most_attended(array(0.3, 0.2, 0.3), 1).tolist() == [0]


def test_leaving_an_event_out_keeps_the_others() -> None:
    history = look_up_history(
        query_of([("i1", 3), ("i2", 2), ("i3", 1)]), CATALOG, ACTIONS, max_history=5
    )
    rest = leave_out(history, (1,))
    assert [event.item_id for event in rest.events] == ["i1", "i3"]
    assert rest.rows.tolist() == [2, 4]
    assert len(rest.actions) == 2
    assert leave_out(history, (0, 2)).rows.tolist() == [3]


def test_baskets_are_the_events_of_one_instant() -> None:
    events = query_of([("i1", 3), ("i2", 3), ("i3", 2), ("i1", 1), ("i4", 1)]).history
    assert divide_history(events, "basket") == [(0, 1), (2,), (3, 4)]
    assert divide_history(events, "event") == [(0,), (1,), (2,), (3,), (4,)]
    assert count_left_out(events, "basket", max_history=10) == 3
    assert count_left_out(events, "event", max_history=10) == 5
    assert count_left_out(events, "basket", max_history=2) == 0
    assert count_left_out(events * 9, "event", max_history=40) == 20


def test_faithfulness_is_the_rank_correlation() -> None:
    up, down = array(1, 2, 3, 4, 5), array(5, 4, 3, 2, 1)
    assert measure_faithfulness(up, up**3) == (pytest.approx(1), "high")
    assert measure_faithfulness(up, down) == (pytest.approx(-1), "reversed")


def test_equal_values_share_their_rank() -> None:
    rng = np.random.default_rng(0)
    given = 0
    for events in range(5, 21):
        weights = rng.integers(0, events // 2 + 1, events).astype(np.float32)
        weights[:2] = 0, 1
        changes = weights + rng.integers(0, 3, events).astype(np.float32)
        found, note = measure_faithfulness(weights, changes)
        expected = spearmanr(weights, changes).statistic
        if found is None:
            assert note == "not_significant"
        else:
            given += 1
            assert found == pytest.approx(expected)
            assert note == ("high" if expected >= 0.7 else "medium")
    assert given > 8


@pytest.mark.parametrize(
    ("weights", "changes", "note"),
    [
        (array(1, 2, 3, 4), array(1, 2, 3, 4), "too_few_left_out"),
        (array(1, 1, 1, 1, 1), array(1, 2, 3, 4, 5), "equal_weights"),
        (array(1, 2, 3, 4, 5), array(0, 0, 0, 0, 0), "changes_within_noise"),
        (array(1, 2, 3, 4, 5), 0.002 * array(1, 2, 3, 4, 5), "changes_within_noise"),
        (array(1, 2, 3, 4, 5), array(1, 2, 3, 5, 4), "not_significant"),
    ],
)
def test_faithfulness_that_says_nothing_is_withheld(
    weights: np.ndarray, changes: np.ndarray, note: str
) -> None:
    assert measure_faithfulness(weights, changes, noise=0.01) == (None, note)


def test_chance_gives_a_verdict_in_one_of_twenty_cases() -> None:
    rng = np.random.default_rng(1)
    for events in (6, 10, 20):
        drawn = rng.normal(size=(600, 2, events))
        verdicts = [measure_faithfulness(*both)[0] is not None for both in drawn]
        assert 0.01 < np.mean(verdicts) < 0.09
