"""Occlusion and the faithfulness of attention."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from model.batch import look_up_history
from model.inference.occlusion import find_most_attended, leave_out, measure_faithfulness
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
    rest = leave_out(history, 1)
    assert [event.item_id for event in rest.events] == ["i1", "i3"]
    assert rest.rows.tolist() == [2, 4]
    assert len(rest.actions) == 2


def test_faithfulness_is_the_rank_correlation() -> None:
    assert measure_faithfulness(array(1, 2, 3), array(5, 6, 70)) == pytest.approx(1)
    assert measure_faithfulness(array(1, 2, 3), array(3, 2, 1)) == pytest.approx(-1)


def test_equal_values_share_their_rank() -> None:
    assert measure_faithfulness(array(1, 1, 2), array(1, 2, 2)) == pytest.approx(0.5)
    rng = np.random.default_rng(0)
    for events in range(3, 21):
        weights, changes = rng.integers(0, events // 2 + 1, (2, events)).astype(np.float32)
        weights[:2], changes[:2] = (0, 1), (1, 0)
        expected = spearmanr(weights, changes).statistic
        assert measure_faithfulness(weights, changes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "changes"),
    [
        (array(1, 2), array(1, 2)),
        (array(1, 1, 1), array(1, 2, 3)),
        (array(1, 2, 3), array(0, 0, 0)),
    ],
    ids=["two events", "equal weights", "equal changes"],
)
def test_faithfulness_without_an_order_is_undefined(
    weights: np.ndarray, changes: np.ndarray
) -> None:
    assert measure_faithfulness(weights, changes) is None
