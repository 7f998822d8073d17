"""Histories of baskets, and rankings that are compared with scores of each item."""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from model.encoders import EncoderConfig
from model.history import Event, Query
from model.interfaces import CountingEncoder, SequenceEncoder
from model.layers.nearest_users import order_users
from model.recommender import add_repeat_scores
from tests.contracts.histories import CATALOG, DAY, START
from tests.contracts.sequence_encoder import encode

Baskets = list[list[int]]
"""One history: the rows of every basket, the oldest first."""

MOST_ROWS = 6


def draw_baskets(most: int = 9) -> st.SearchStrategy[Baskets]:
    """Draw one history of up to `most` baskets."""
    basket = st.lists(st.integers(1, MOST_ROWS), min_size=1, max_size=3)
    return st.lists(basket, min_size=1, max_size=most)


def draw_users() -> st.SearchStrategy[list[Baskets]]:
    """Draw the histories of some users."""
    return st.lists(draw_baskets(), min_size=1, max_size=8)


def fit(config: EncoderConfig, users: list[Baskets], *, items: int = 20) -> SequenceEncoder:
    """Build an encoder and count the histories of users, with baskets a day apart."""
    encoder = config.build(items=items).eval()
    assert isinstance(encoder, CountingEncoder)
    encoder.fit_counts(*_list_events(users))
    return encoder


def order_as_stored(users: list[Baskets]) -> list[Baskets]:
    """Order the histories of users as an encoder stores them."""
    rows, times, owners = (one.tolist() for one in order_users(*_list_events(users)))
    days: list[dict[int, list[int]]] = [{} for _ in users]
    for row, at, owner in zip(rows, times, owners, strict=True):
        days[owner].setdefault(at, []).append(row)
    return [list(baskets.values()) for baskets in days]


def _list_events(users: list[Baskets]) -> Tensor:
    events = [
        (row, START + day * DAY, user)
        for user, baskets in enumerate(users)
        for day, basket in enumerate(baskets)
        for row in basket
    ]
    return torch.tensor(events).T


def score(encoder: SequenceEncoder, baskets: Baskets) -> NDArray[np.float64]:
    """Compute the score of every row after a history; row 0 has no meaning."""
    assert isinstance(encoder, CountingEncoder)
    events = [
        Event(CATALOG.item_id(row), START + day * DAY)
        for day, basket in enumerate(baskets)
        for row in basket
    ]
    encoded = encode(encoder, Query.as_of(events, START + 999 * DAY))
    assert encoded.repeat_scores is not None
    assert encoded.repeat_rows is not None
    nothing = torch.full((1, encoder.catalog_size + 1), float("-inf"))
    added = add_repeat_scores(nothing, encoded.repeat_scores, encoded.repeat_rows)
    return added[0].exp().double().numpy()


def count_popularity(users: list[Baskets], rows: int) -> NDArray[np.int64]:
    """Count the events of every row, of which those of a basket may hold an item twice."""
    events = [row for baskets in users for basket in baskets for row in basket]
    return np.bincount(events, minlength=rows)


def assert_ranks_as(
    found: NDArray[np.float64], expected: NDArray[np.float64], popularity: NDArray[np.int64]
) -> None:
    """Compare scores, and the order of all rows; equal scores are ordered by popularity."""
    found, expected, popularity = found[1:], expected[1:], popularity[1:]
    np.testing.assert_allclose(found, expected, rtol=5e-4)
    # Equal sums may differ in their last bits, by the order of their terms.
    order = np.lexsort((popularity, expected.round(12)))
    for worse, better in pairwise(order[expected[order] > 0]):
        is_equal = abs(expected[better] - expected[worse]) <= 1e-12 * expected[better]
        if is_equal and popularity[worse] == popularity[better]:
            assert found[worse] == found[better]
        elif is_equal or expected[better] - expected[worse] > 1e-8 * expected[better]:
            assert found[worse] < found[better]


@cache
def read_goldens() -> dict[str, Any]:
    """Read what `goldens.make_cornac` has written."""
    path = Path(__file__).parent / "goldens" / "cornac.json"
    goldens: dict[str, Any] = json.loads(path.read_text())
    return goldens


def number_from_one(histories: list[Baskets]) -> list[Baskets]:
    """Convert the item numbers of goldens to catalog rows."""
    return [[[item + 1 for item in basket] for basket in baskets] for baskets in histories]


def assert_scores_as_golden(config: EncoderConfig, scores: list[list[float]]) -> None:
    """Compare with the scores of every item for all queries of the goldens.

    These are of single precision, so close ones have no order.
    """
    goldens = read_goldens()
    encoder = fit(config, number_from_one(goldens["stored"]), items=goldens["items"])
    queries = number_from_one(goldens["queries"])
    for baskets, expected in zip(queries, scores, strict=True):
        found = score(encoder, baskets)[1:]
        np.testing.assert_allclose(found, expected, rtol=5e-4)
        order = np.argsort(expected)
        for worse, better in pairwise(order):
            if expected[better] - expected[worse] > 1e-5 * expected[better]:
                assert found[worse] < found[better]
