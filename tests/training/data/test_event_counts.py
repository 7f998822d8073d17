"""Counts of followers, against counting the slow way."""

from collections import Counter

import numpy as np
import pytest
import torch

from model.followers import Followers
from tests import tiny
from training.data import event_counts
from training.data.dataset import Dataset
from training.data.event_counts import (
    FOLDS,
    LEAST_WEIGHT,
    WEIGHTS,
    assign_folds,
    count_pairs,
    count_popularity,
    rank_followers,
)
from training.data.split import Predict


def draw_dataset(*, baskets: bool = False) -> Dataset:
    rng = np.random.default_rng(3)
    events = []
    for user in range(40):
        at = tiny.FIRST_AT
        for _ in range(int(rng.integers(2, 9))):
            at += int(rng.integers(1, 9)) * tiny.DAY
            size = int(rng.integers(1, 4)) if baskets else 1
            items = rng.choice(6, size, replace=False)
            events += [(f"u{user}", f"i{item}", at) for item in items]
    return Dataset.of(tiny.event_log(events))


def count_slowly(
    dataset: Dataset, predict: Predict, without: int | None
) -> Counter[tuple[int, int]]:
    counted: Counter[tuple[int, int]] = Counter()
    for user in range(len(dataset.user_ids)):
        if without is not None and int(assign_folds(np.array([user]))[0]) == without:
            continue
        span = slice(dataset.offsets[user], dataset.offsets[user + 1])
        rows, times = dataset.rows[span].tolist(), dataset.times[span]
        for index, row in enumerate(rows):
            if predict == "next_event":
                for weight, follower in zip(WEIGHTS, rows[index + 1 :], strict=False):
                    counted[row, follower] += weight
            else:
                later = times[times > times[index]]
                for other, at in zip(rows, times, strict=True):
                    if len(later) and at == later[0]:
                        counted[row, other] += 1
    return counted


@pytest.mark.parametrize("predict", ["next_event", "next_basket"])
@pytest.mark.parametrize("table", range(FOLDS + 1))
def test_followers_are_counted_over_the_users_of_a_table(predict: Predict, table: int) -> None:
    dataset = draw_dataset(baskets=predict == "next_basket")
    found = rank_followers(count_pairs(dataset, np.ones(len(dataset), dtype=np.bool_), predict))
    least = LEAST_WEIGHT if predict == "next_basket" else 0
    expected = count_slowly(dataset, predict, table or None)
    for row in range(1, len(dataset.catalog) + 1):
        counts = {
            follower: weight
            for (item, follower), weight in expected.items()
            if item == row and weight >= least
        }
        kept = found.rows[table, row]
        followers = kept[kept > 0].tolist()
        assert set(followers) == {item for item, weight in counts.items() if weight > 0}
        weights = [counts[follower] for follower in followers]
        assert weights == pytest.approx(sorted(weights, reverse=True))
        shares = found.log_shares[table, row][kept > 0].exp()
        assert shares.numpy() == pytest.approx(
            np.array(weights) / (sum(counts.values()) + 2), rel=1e-5
        )


def test_a_table_does_not_reveal_the_pairs_of_users_left_out() -> None:
    events = [
        (f"u{user}", item, tiny.FIRST_AT + day * tiny.DAY)
        for user in range(3)
        for day, item in enumerate(["a", "b"] if user else ["a", "c"])
    ]
    dataset = Dataset.of(tiny.event_log(events))
    found = rank_followers(count_pairs(dataset, np.ones(6, dtype=np.bool_), "next_basket"))
    row = dataset.catalog.find("a")
    of_users = [found.rows[table, row].count_nonzero().item() for table in range(FOLDS + 1)]
    assert of_users == [1, 1, 0, 0, 1]


def test_events_that_are_not_counted_follow_nothing() -> None:
    dataset = draw_dataset()
    first_half = np.arange(len(dataset)) < len(dataset) // 2
    shorter = Dataset.of(
        tiny.event_log(
            [
                (dataset.user_ids[user], dataset.catalog.item_id(int(row)), int(at))
                for user, row, at in zip(
                    dataset.user_of[first_half],
                    dataset.rows[first_half],
                    dataset.times[first_half],
                    strict=True,
                )
            ]
        )
    )
    found = rank_followers(count_pairs(dataset, first_half, "next_event"))
    expected = rank_followers(
        count_pairs(shorter, np.ones(len(shorter), dtype=np.bool_), "next_event")
    )
    assert torch.equal(found.log_counts, expected.log_counts)


def test_the_most_frequent_followers_are_kept() -> None:
    items = np.array([1, 1, 1, 2])
    found = Followers.rank(items, np.array([3, 4, 5, 3]), np.array([1.0, 7, 4, 2]), rows=6, kept=2)
    assert found.rows[0].tolist() == [[0, 0], [4, 5], [3, 0], [0, 0], [0, 0], [0, 0]]
    assert found.log_shares[0, 1].exp().tolist() == pytest.approx([7 / 14, 4 / 14])


def test_a_user_is_left_out_of_one_table_only() -> None:
    assert assign_folds(np.arange(9)).tolist() == [1, 2, 3, 4, 1, 2, 3, 4, 1]


def test_popularity_counts_the_chosen_events() -> None:
    dataset = draw_dataset()
    chosen = dataset.user_of < 10
    popularity = count_popularity(dataset, chosen)
    assert popularity.counts.sum() == chosen.sum()
    assert popularity.rows == len(dataset.catalog) + 1


@pytest.mark.parametrize("predict", ["next_event", "next_basket"])
def test_pairs_are_the_same_however_many_are_counted_at_a_time(
    predict: Predict, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = draw_dataset(baskets=predict == "next_basket")
    everything = np.ones(len(dataset), dtype=np.bool_)
    at_once = count_pairs(dataset, everything, predict)
    monkeypatch.setattr(event_counts, "_PAIRS_AT_A_TIME", 5)
    in_parts = count_pairs(dataset, everything, predict)
    for name in ("items", "followers", "weights", "totals"):
        assert np.array_equal(getattr(in_parts, name), getattr(at_once, name)), name


def test_of_very_many_pairs_the_most_frequent_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = draw_dataset()
    everything = np.ones(len(dataset), dtype=np.bool_)
    every = count_pairs(dataset, everything, "next_event")
    monkeypatch.setattr(event_counts, "MOST_KEPT", 0)
    monkeypatch.setattr(event_counts, "_LEAST_KEPT", 3)
    kept = count_pairs(dataset, everything, "next_event")
    for item in range(1, every.rows):
        weights = every.weights[0][every.items == item]
        assert sorted(kept.weights[0][kept.items == item]) == sorted(weights)[-3:]
    # A share is one of all that followed, of which some are not kept.
    found, expected = rank_followers(kept), rank_followers(every)
    assert torch.equal(found.log_counts, expected.log_counts)
    assert torch.equal(found.log_shares[0, :, :3], expected.log_shares[0, :, :3])
