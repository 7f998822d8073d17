import pytest
import torch
from torch import Tensor

from model.layers.timed_purchases import TimedPurchases


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


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"offsets": torch.tensor([0, 2, 9])}, "offsets must lead from 0 to its 3 purchases"),
        ({"offsets": torch.tensor([0, 4, 3])}, "offsets must lead from 0 to its 3 purchases"),
        ({"rows": torch.tensor([1, 3, 5]).int()}, "rows must be from 0 to 4"),
        ({"rows": torch.tensor([1, 3, -1]).int()}, "rows must be from 0 to 4"),
        ({"times": torch.tensor([7, 5])}, "as many times as rows, 3, not 2"),
        ({"times": torch.tensor([[7, 5, 6]])}, "arrays must have one dimension"),
    ],
    ids=str,
)
def test_a_state_that_does_not_fit_itself_is_refused(changed: dict[str, Tensor], rule: str) -> None:
    purchases = build_purchases()
    with pytest.raises(RuntimeError, match=rule):
        purchases.load_state_dict({**purchases.state_dict(), **changed})
