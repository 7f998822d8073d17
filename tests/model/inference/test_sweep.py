"""What the instants of a sweep share."""

from collections import Counter
from typing import Any

import pytest
import torch

from model.inference.answers import Constraints
from model.inference.predictor import Predictor
from model.recommender import Recommender
from model.store.opening import open_predictor
from model.wide import WideConfig
from tests import tiny
from tests.contracts.predictor import query_of
from tests.tiny import DAY, LAST_AT

QUERY = query_of([("i1", 9.0), ("i2", 6.0), ("i3", 3.0)])


@pytest.fixture(scope="module", params=[None, WideConfig()], ids=["plain", "wide"])
def predictor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Predictor:
    config = tiny.recommender_config(wide=request.param)
    return open_predictor(tiny.write_bundle(tmp_path_factory.mktemp("bundle"), config=config))


def count_calls(monkeypatch: pytest.MonkeyPatch, *methods: tuple[type, str]) -> Counter[str]:
    """Count the calls of some methods from here on."""
    calls: Counter[str] = Counter()

    def count(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return method(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    for owner, name in methods:
        count(owner, name)
    return calls


def sweep_after_the_last_event(predictor: Predictor, instants: int) -> None:
    times = [LAST_AT - 2 * DAY + number * DAY // instants for number in range(instants)]
    swept = predictor.sweep(QUERY, times, Constraints(n=2))
    assert all(instant.weights is not None for instant in swept.instants)


def test_queries_and_means_are_computed_for_all_instants_at_once(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_calls(monkeypatch, (Recommender, "index_queries"), (torch.Tensor, "mean"))
    sweep_after_the_last_event(predictor, 3)
    few = calls.copy()
    assert few["index_queries"] == 1
    sweep_after_the_last_event(predictor, 40)
    assert calls == few + few
