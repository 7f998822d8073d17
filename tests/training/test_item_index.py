import numpy as np
import pytest
from numpy.typing import NDArray

from model.bundle.index import ItemIndex
from tests.item_vectors import draw_world
from training.config import IndexConfig
from training.item_index import choose_index, measure_overlap

VECTORS, USERS = draw_world(30_000)
EXACT = ItemIndex.build(VECTORS, "dot")


def set_durations(monkeypatch: pytest.MonkeyPatch, durations: NDArray[np.float64]) -> None:
    """Make searches take as long as given, one after the other, the exact ones first."""
    ticks = iter(np.cumsum(np.repeat(durations, 2)).tolist())
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))


def test_a_large_catalog_gets_candidates_that_hold_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_durations(monkeypatch, 1 / np.arange(1, 50_000))
    index = choose_index(EXACT, USERS, IndexConfig())
    assert index.inverted is not None
    found = [index.search(user, 100)[0] for user in USERS[200:]]
    best = [EXACT.search(user, 100)[0] for user in USERS[200:]]
    assert measure_overlap(found, best) >= 0.995
    # Of powers of two, half as many lists find too little.
    fewer = index.with_probes(index.inverted.probes // 2)
    if fewer.finds_candidates(100):
        found = [fewer.search(user, 100)[0] for user in USERS[200:]]
        assert measure_overlap(found, best) < 0.995


def test_candidates_are_not_used_where_they_are_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    set_durations(monkeypatch, np.arange(1.0, 50_000))
    assert choose_index(EXACT, USERS, IndexConfig()) is EXACT


def test_one_user_is_too_few_to_choose_by() -> None:
    assert choose_index(EXACT, USERS[:1], IndexConfig()) is EXACT
