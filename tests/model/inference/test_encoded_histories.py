"""Encoded histories: kept for the next query, continued, dropped, and never another result."""

from typing import Any

import numpy as np
import pytest
import torch

from model.batch import SequenceBatch
from model.encoders.self_attention import SelfAttentionConfig
from model.inference.encoded_histories import EncodedHistories
from model.layers.earlier_events import EarlierEvents
from model.recommender import Recommender, RecommenderConfig
from model.time_encodings.nonstationary import NonstationaryConfig
from model.time_encodings.positional import PositionalConfig
from tests.contracts.histories import DAY, ITEMS, at_query_time, collate_queries, draw_query, prefix

MEBIBYTE = 1024 * 1024
CONFIGS = {
    "mercer": SelfAttentionConfig(damping=True),
    "mlp": SelfAttentionConfig(query="mlp"),
    "positional": SelfAttentionConfig(time_encoding=PositionalConfig()),
    "kernel": SelfAttentionConfig(time_encoding=NonstationaryConfig()),
    "pointer": SelfAttentionConfig(repeats=True),
}


def build(config: SelfAttentionConfig) -> Recommender:
    torch.manual_seed(0)
    return RecommenderConfig(items=ITEMS, encoder=config).build().eval().requires_grad_(False)


def assert_same(
    histories: EncodedHistories, recommender: Recommender, batch: SequenceBatch
) -> None:
    found, expected = histories.encode(recommender, batch), recommender(batch)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """The events of each history that was encoded, and whether it continued a kept one."""
    record: list[tuple[int, bool]] = []
    encode = Recommender.encode_earlier

    def count(self: Recommender, batch: SequenceBatch, **options: Any) -> EarlierEvents:
        record.append((batch.rows.shape[1], options.get("before") is not None))
        return encode(self, batch, **options)

    monkeypatch.setattr(Recommender, "encode_earlier", count)
    return record


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_growing_histories_are_continued_exactly(
    config: SelfAttentionConfig, passes: list[tuple[int, bool]]
) -> None:
    recommender, histories = build(config), EncodedHistories(MEBIBYTE)
    query = draw_query(np.random.default_rng(0), 9)
    for events in (1, 2, 4, 5, 9):
        assert_same(histories, recommender, collate_queries(prefix(query, events)))
    assert passes == [(1, False), *((events, True) for events in range(2, 10))]


def test_another_query_time_encodes_no_event_again(passes: list[tuple[int, bool]]) -> None:
    recommender, histories = build(CONFIGS["mercer"]), EncodedHistories(MEBIBYTE)
    query = draw_query(np.random.default_rng(0), 6)
    for days in range(3):
        later = at_query_time(query, query.query_time + days * DAY, withheld=days == 2)
        assert_same(histories, recommender, collate_queries(later))
    assert passes == [(6, False)]


def test_histories_that_differ_in_anything_are_apart(passes: list[tuple[int, bool]]) -> None:
    recommender, histories = build(CONFIGS["mercer"]), EncodedHistories(MEBIBYTE)
    batch = collate_queries(draw_query(np.random.default_rng(0), 6))
    for changed in (
        batch,
        batch._replace(rows=batch.rows.roll(1, 1)),
        batch._replace(actions=1 - batch.actions.clamp(max=1)),
        batch._replace(times=batch.times * 2, query_times=batch.query_times * 2),
    ):
        assert_same(histories, recommender, changed)
    assert passes == [(6, False)] * 4


def test_what_was_not_used_for_longest_is_dropped(passes: list[tuple[int, bool]]) -> None:
    recommender = build(CONFIGS["mercer"])
    rng = np.random.default_rng(0)
    first, second, third = (collate_queries(draw_query(rng, 6)) for _ in range(3))
    size = recommender.encode_earlier(first).size
    passes.clear()
    histories = EncodedHistories(2 * size)
    for batch in (first, second, first, third, first, second):
        histories.encode(recommender, batch)
    assert passes == [(6, False)] * 4


def test_forgotten_histories_are_encoded_again(passes: list[tuple[int, bool]]) -> None:
    recommender, histories = build(CONFIGS["mercer"]), EncodedHistories(MEBIBYTE)
    batch = collate_queries(draw_query(np.random.default_rng(0), 6))
    histories.encode(recommender, batch)
    histories.forget()
    histories.encode(recommender, batch)
    assert passes == [(6, False)] * 2


@pytest.mark.parametrize("baskets", [False, True])
def test_batches_and_baskets_are_encoded_whole(
    baskets: bool, passes: list[tuple[int, bool]]
) -> None:
    recommender = build(SelfAttentionConfig(baskets=baskets))
    rng = np.random.default_rng(0)
    queries = [draw_query(rng, 4)] * (1 if baskets else 2)
    assert_same(EncodedHistories(MEBIBYTE), recommender, collate_queries(*queries))
    assert passes == []
