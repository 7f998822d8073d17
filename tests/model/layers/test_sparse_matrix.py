"""A sparse matrix in the buffers of a module."""

import numpy as np
import pytest
import torch
from torch import Tensor

from model.layers.sparse_matrix import SparseMatrix, build_sparse_rows

DENSE = np.array([[0, 0.5, 0, 2], [0, 0, 0, 0], [1, 0, 0, 0.25]])


def build_matrix() -> SparseMatrix:
    matrix = SparseMatrix(width=4)
    places = DENSE.nonzero()
    matrix.store(build_sparse_rows((DENSE[places], places), DENSE.shape))
    return matrix


def test_a_stored_matrix_is_kept_with_what_follows_from_it() -> None:
    matrix = build_matrix()
    assert len(matrix) == 3
    assert (matrix.matrix.toarray() == DENSE).all()
    assert (matrix.transposed.toarray() == DENSE.T).all()
    assert (matrix.square_lengths == np.square(DENSE).sum(1)).all()


def test_another_stored_matrix_replaces_the_first() -> None:
    matrix = build_matrix()
    assert matrix.square_lengths.any()
    matrix.store(build_sparse_rows((np.ones(1), ([0], [3])), (1, 4)))
    assert matrix.matrix.toarray().tolist() == [[0, 0, 0, 1]]
    assert matrix.square_lengths.tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32])
def test_a_matrix_is_empty_until_one_is_stored(dtype: torch.dtype) -> None:
    matrix = SparseMatrix(width=4, dtype=dtype)
    assert len(matrix) == 0
    assert matrix.matrix.shape == (0, 4)


def test_a_loaded_state_decides_the_size() -> None:
    for loading in (SparseMatrix(width=4), build_matrix()):
        assert loading.square_lengths.size in {0, 3}
        state = {"offsets": torch.tensor([0, 2]), "columns": torch.tensor([1, 3]).int()}
        loading.load_state_dict(state | {"values": torch.tensor([0.5, 2.0]).double()})
        assert loading.matrix.toarray().tolist() == [[0, 0.5, 0, 2]]
        assert loading.square_lengths.tolist() == [4.25]


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"offsets": torch.tensor([0, 2, 2, 9])}, "offsets must lead from 0 to its 4 columns"),
        ({"offsets": torch.tensor([0, 3, 2, 4])}, "offsets must lead from 0 to its 4 columns"),
        ({"offsets": torch.tensor([1, 2, 2, 4])}, "offsets must lead from 0 to its 4 columns"),
        ({"offsets": torch.tensor([], dtype=torch.int64)}, "offsets must lead from 0"),
        ({"columns": torch.tensor([1, 3, 0, 4]).int()}, "columns must be from 0 to 3"),
        ({"columns": torch.tensor([1, 3, -1, 2]).int()}, "columns must be from 0 to 3"),
        ({"columns": torch.tensor([1, 3]).int()}, "offsets must lead from 0 to its 2 columns"),
        ({"values": torch.ones(5, dtype=torch.float64)}, "as many values as columns, 4, not 5"),
        ({"values": torch.tensor([1, 1, torch.nan, 1]).double()}, "values must be finite"),
        ({"values": torch.tensor([1, 1, torch.inf, 1]).double()}, "values must be finite"),
        ({"values": torch.tensor([1, 1, -1, 1]).double()}, "values must be finite and not neg"),
        (
            {"offsets": torch.tensor([0, 2, 2, 4]).double()},
            "must have the types offsets torch.int64",
        ),
        ({"values": torch.ones(4, 1, dtype=torch.float64)}, "arrays must have one dimension"),
    ],
    ids=str,
)
def test_a_state_that_is_no_matrix_is_refused(changed: dict[str, Tensor], rule: str) -> None:
    matrix = build_matrix()
    with pytest.raises(RuntimeError, match=rule):
        matrix.load_state_dict({**matrix.state_dict(), **changed})


def test_a_state_of_another_height_is_refused() -> None:
    matrix = SparseMatrix(width=4, height=5)
    assert matrix.matrix.toarray().tolist() == [[0] * 4] * 5
    with pytest.raises(RuntimeError, match="it must have 5 rows, not 3"):
        matrix.load_state_dict(build_matrix().state_dict())


def test_a_state_without_the_matrix_is_refused() -> None:
    matrix = build_matrix()
    state = matrix.state_dict()
    del state["values"]
    with pytest.raises(RuntimeError, match="Missing key"):
        matrix.load_state_dict(state)
