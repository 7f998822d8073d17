"""The items of baskets, from events and from histories of a batch."""

import torch

from model.layers.basket_items import BasketItems
from tests.contracts.histories import (
    DAY,
    START,
    collate_queries,
    draw_queries,
    full_history,
)


def test_events_of_one_instant_are_a_basket_of_distinct_items() -> None:
    baskets = BasketItems.of_events(
        rows=torch.tensor([3, 1, 3, 2, 2, 2]),
        times=START + DAY * torch.tensor([0, 0, 0, 1, 1, 0]),
        users=torch.tensor([4, 4, 4, 4, 9, 12]),
    )
    assert baskets.histories.tolist() == [0, 0, 0, 1, 2]
    assert baskets.baskets.tolist() == [0, 0, 1, 0, 0]
    assert baskets.rows.tolist() == [1, 3, 2, 2, 2]
    assert baskets.counts.tolist() == [2, 1, 1]
    assert baskets.from_end.tolist() == [1, 1, 0, 0, 0]


def test_a_batch_has_the_baskets_of_its_histories() -> None:
    queries = draw_queries(9, 1, 12, 4)
    found = BasketItems.of_batch(collate_queries(*queries))
    events = [
        (row, event.at, number)
        for number, query in enumerate(queries)
        for event, row in zip(query.history, full_history(query).rows.tolist(), strict=True)
    ]
    expected = BasketItems.of_events(*torch.tensor(events).T)
    for part, same in zip(found, expected, strict=True):
        assert (part == same).all()
    assert len(found.rows) < len(events) or found.counts.sum() == len(events)
    assert (found.counts < [9, 2, 12, 4]).any()


def test_no_events_have_no_baskets() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    baskets = BasketItems.of_events(none, none, none)
    assert [len(part) for part in baskets] == [0, 0, 0, 0]
