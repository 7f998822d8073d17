import pytest
import torch
from torch import Tensor

from model.layers import timed_purchases
from model.layers.timed_purchases import TimedPurchases
from tests.contracts.histories import DAY, START


def build_purchases() -> TimedPurchases:
    """Two users, of whom one has bought twice."""
    purchases = TimedPurchases(items=4)
    purchases.store(
        rows=torch.tensor([3, 1, 2]), times=torch.tensor([5, 7, 6]), users=torch.tensor([0, 0, 1])
    )
    return purchases


def test_purchases_are_sorted_by_user_and_item() -> None:
    purchases = build_purchases()
    assert purchases.offsets.tolist() == [0, 2, 3]
    assert purchases.rows.tolist() == [1, 3, 2]
    assert purchases.times.tolist() == [7, 5, 6]


def test_a_loaded_state_decides_the_number_of_purchases() -> None:
    stored = build_purchases()
    loading = TimedPurchases(items=4)
    loading.load_state_dict(stored.state_dict())
    vector = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0])
    expected = stored.average_nearest(vector, 10, 1)
    assert expected[1] > 0
    assert torch.equal(loading.average_nearest(vector, 10, 1), expected)


def test_users_without_a_common_item_are_not_averaged() -> None:
    purchases = build_purchases()
    only_second = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    for count in (1, 2, 9):
        assert torch.equal(
            purchases.average_nearest(only_second, 10, count),
            purchases.average_nearest(only_second, 10, 1),
        )
    nobody = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])
    assert not purchases.average_nearest(nobody, 10, 2).any()


def test_users_who_have_bought_later_are_not_averaged() -> None:
    purchases = build_purchases()
    every = torch.ones(5)
    # At 5, user 0 has bought item 3 alone.
    found = purchases.average_nearest(every, 5, 2)
    assert found.nonzero().squeeze(1).tolist() == [3]
    assert torch.equal(found, purchases.average_nearest(every, 5, 1))


@pytest.mark.parametrize("count", range(1, 9))
def test_of_equally_near_users_the_first_are_averaged(count: int) -> None:
    # All have item 1 alone, at another time: equal cosines, but for their last bits.
    users = torch.arange(9)
    times = START + (users.double().add(0.3) * 7.7 * DAY).long()
    purchases, first = TimedPurchases(items=4), TimedPurchases(items=4)
    purchases.store(torch.ones(9, dtype=torch.int64), times, users)
    first.store(torch.ones(count, dtype=torch.int64), times[:count], users[:count])
    vector = torch.tensor([0.0, 0.7, 0.1, 0.0, 0.2])
    found, expected = (
        one.average_nearest(vector, START + 99 * DAY, count) for one in (purchases, first)
    )
    torch.testing.assert_close(found, expected)


def test_without_purchases_there_are_no_nearest_users() -> None:
    purchases = TimedPurchases(items=4)
    nothing = {"rows": torch.tensor([]).int(), "times": torch.tensor([]).long()}
    for offsets in ([0], [0, 0]):
        arrays = {"offsets": torch.tensor(offsets), **nothing}
        purchases.load_state_dict({**purchases.state_dict(), **arrays})
        assert not purchases.average_nearest(torch.ones(5), 10, 1).any()


def test_seconds_count_decades_before_the_last_purchase() -> None:
    purchases = TimedPurchases(items=4)
    long_ago = START - 30 * 365 * DAY
    purchases.store(torch.tensor([1, 1]), torch.tensor([long_ago, START]), torch.tensor([0, 1]))
    vector = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0])
    assert not purchases.average_nearest(vector, long_ago - 1, 1).any()
    assert purchases.average_nearest(vector, long_ago, 1).any()


@pytest.mark.parametrize("seed", range(20))
def test_users_without_a_common_item_need_no_comparison(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(seed)
    users = torch.randint(30, (120,), generator=generator).unique(return_inverse=True)[1]
    users = users.sort().values
    rows = torch.randint(1, 41, users.shape, generator=generator)
    times = START + torch.randint(90 * DAY, users.shape, generator=generator)
    purchases = TimedPurchases(items=40)
    purchases.store(rows, times, users)
    vector = torch.zeros(41)
    vector[torch.randint(1, 41, (3,), generator=generator)] = torch.tensor([0.7, 0.1, 0.2])

    def average(most_shared: float) -> Tensor:
        monkeypatch.setattr(timed_purchases, "_MOST_SHARED", most_shared)
        return purchases.average_nearest(vector, START + 60 * DAY, 4)

    of_all, of_some = average(0.0), average(1.0)
    assert of_all.any()
    assert torch.equal(of_some, of_all)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"offsets": torch.tensor([0, 2, 9])}, "offsets must lead from 0 to its 3 purchases"),
        ({"offsets": torch.tensor([0, 4, 3])}, "offsets must lead from 0 to its 3 purchases"),
        ({"rows": torch.tensor([1, 3, 5]).int()}, "rows must be from 0 to 4"),
        ({"rows": torch.tensor([1, 3, -1]).int()}, "rows must be from 0 to 4"),
        ({"rows": torch.tensor([3, 1, 2]).int()}, "rows must ascend within a user"),
        ({"times": torch.tensor([7, 5])}, "as many times as rows, 3, not 2"),
        ({"times": torch.tensor([[7, 5, 6]])}, "arrays must have one dimension"),
    ],
    ids=str,
)
def test_a_state_that_does_not_fit_itself_is_refused(changed: dict[str, Tensor], rule: str) -> None:
    purchases = build_purchases()
    with pytest.raises(RuntimeError, match=rule):
        purchases.load_state_dict({**purchases.state_dict(), **changed})
