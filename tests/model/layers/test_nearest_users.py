"""The largest values of each row."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.encoders.tifu_knn import TIFUKNN, TIFUKNNConfig
from model.encoders.up_cf import UPCF, UPCFConfig
from model.layers.nearest_users import compute_in_slices, order_users, select_largest
from model.layers.sparse_matrix import SparseRows, build_sparse_rows


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3),
    st.integers(0, 6),
)
def test_of_equal_values_the_first_are_selected(rows: list[list[int]], count: int) -> None:
    chosen = select_largest(np.array(rows, dtype=np.float64), count)
    for row, selected in zip(rows, chosen, strict=True):
        expected = sorted(range(4), key=lambda column: -row[column])[:count]
        assert np.flatnonzero(selected).tolist() == sorted(expected)


def test_the_order_of_users_is_that_of_no_file() -> None:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(30), 4)
    rows, times = rng.integers(9, size=120), rng.integers(3, size=(30, 4))
    times.sort(axis=1)
    found = order_users(*(torch.from_numpy(one) for one in (rows, times.ravel(), users)))
    renamed = rng.permutation(30)[users]
    order = np.lexsort((rng.random(120), times.ravel(), renamed))
    again = order_users(*(torch.from_numpy(one[order]) for one in (rows, times.ravel(), renamed)))
    for one, other in zip(found, again, strict=True):
        assert torch.equal(one, other)
    events = np.stack([one.numpy() for one in found], axis=1).reshape(30, 4, 3)
    assert events[:, :, 2].tolist() == [[user] * 4 for user in range(30)]
    assert (np.diff(events[:, :, 1]) >= 0).all()
    given = sorted(
        sorted(zip(times[user], rows.reshape(30, 4)[user], strict=True)) for user in range(30)
    )
    assert sorted([(at, row) for row, at, _ in user] for user in events.tolist()) == given


def test_no_users_have_no_order() -> None:
    nothing = torch.tensor([], dtype=torch.int64)
    assert [len(one) for one in order_users(nothing, nothing, nothing)] == [0, 0, 0]


def draw_histories(count: int) -> SparseRows:
    rng = np.random.default_rng(0)
    values = rng.random((count, 5)) * (rng.random((count, 5)) < 0.5)
    places = values.nonzero()
    return build_sparse_rows((values[places], places), values.shape)


@pytest.mark.parametrize(("most", "sizes"), [(3, [1] * 7), (6, [2, 2, 2, 1]), (21, [7])])
def test_slices_hold_as_many_pairs_as_they_may(most: int, sizes: list[int]) -> None:
    histories, found = draw_histories(7), []

    def double(part: SparseRows) -> SparseRows:
        found.append(part.shape[0])
        return part * 2

    doubled = compute_in_slices(double, histories, users=3, most_pairs=most)
    assert found == sizes
    assert (doubled.toarray() == 2 * histories.toarray()).all()


@pytest.mark.parametrize(
    "encoder",
    [
        TIFUKNNConfig(neighbours=2).build(items=4),
        UPCFConfig(neighbours=2).build(items=4),
        UPCFConfig().build(items=4),
    ],
    ids=["tifu_knn", "up_cf", "up_cf of all"],
)
def test_slices_have_the_scores_of_the_whole(encoder: TIFUKNN | UPCF) -> None:
    encoder.users.store(draw_histories(6))
    compute = encoder._average_nearest if isinstance(encoder, TIFUKNN) else encoder._sum_similar
    histories = draw_histories(9)
    sliced = compute_in_slices(compute, histories, users=6, most_pairs=12)
    whole = compute_in_slices(compute, histories, users=6)
    assert (sliced.toarray() == whole.toarray()).all()
