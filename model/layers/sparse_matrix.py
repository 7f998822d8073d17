"""A sparse matrix of counts in the buffers of a module, whose size the data decide."""

from typing import Any, ClassVar, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from model.layers.sized_by_state import SizedByState, are_offsets

SparseRows: TypeAlias = Any
"""A `scipy.sparse.csr_array`; SciPy is imported where one is built, as a start needs none."""


def build_sparse_rows(entries: tuple[Any, ...], shape: tuple[int, int]) -> SparseRows:
    """Build a matrix of compressed sparse rows from what the constructor of SciPy reads.

    Args:
        entries: `(values, (rows, columns))`, which adds up entries of one place; or
            `(values, columns, offsets)`.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - a start needs no SciPy

    return csr_array(entries, shape=shape)


@final
class SparseMatrix(SizedByState):
    """Compressed sparse rows, without an entry until `store`.

    A state that is loaded decides the number of entries, and of rows if none is given. Products are
    those of SciPy, on the CPU.

    Attributes:
        width: number of columns.
        height: number of rows; None for as many as are stored, none at first.
        offsets: row `r` owns the entries `offsets[r]` up to `offsets[r + 1]`.
        columns: of the entries, ascending within a row.
        values: of the entries, from 0; doubles, or integers that are counts.
    """

    stored: ClassVar[dict[str, torch.dtype]] = {
        "offsets": torch.int64,
        "columns": torch.int32,
        "values": torch.float64,
    }

    offsets: Tensor
    columns: Tensor
    values: Tensor

    def __init__(
        self, *, width: int, height: int | None = None, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        self.width, self.height = width, height
        self.offsets = self.offsets.new_zeros((height or 0) + 1)
        self.values = self.values.to(dtype)
        self._derived: dict[str, Any] = {}

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.offsets) - 1

    def store(self, matrix: SparseRows) -> None:
        """Replace the matrix."""
        matrix.sort_indices()
        self.forget_derived()
        arrays = matrix.indptr, matrix.indices, matrix.data
        for name, array in zip(self.stored, arrays, strict=True):
            buffer = getattr(self, name)
            setattr(self, name, torch.from_numpy(array).to(buffer.device, buffer.dtype))

    @property
    def matrix(self) -> SparseRows:
        """The matrix, on the CPU."""
        if "matrix" not in self._derived:
            offsets, columns, values = (getattr(self, name).cpu().numpy() for name in self.stored)
            shape = (len(self), self.width)
            self._derived["matrix"] = build_sparse_rows((values, columns, offsets), shape)
        return self._derived["matrix"]

    @property
    def transposed(self) -> SparseRows:
        """The transposed matrix, again in compressed rows."""
        if "transposed" not in self._derived:
            self._derived["transposed"] = self.matrix.T.tocsr()
        return self._derived["transposed"]

    @property
    def square_lengths(self) -> Float64[np.ndarray, " rows"]:
        """The squared Euclidean length of every row."""
        if "square_lengths" not in self._derived:
            self._derived["square_lengths"] = self.matrix.power(2).sum(axis=1)
        lengths: Float64[np.ndarray, " rows"] = self._derived["square_lengths"]
        return lengths

    def forget_derived(self) -> None:
        """Forget the matrices of the buffers."""
        self._derived = {}

    def describe_misfit(self, arrays: dict[str, Tensor]) -> str | None:
        """Describe what a product would read beyond the ends, or no score can be summed from."""
        offsets, columns, values = (arrays[name] for name in self.stored)
        if not are_offsets(offsets, len(columns)):
            return f"its offsets must lead from 0 to its {len(columns):,} columns"
        if len(columns) != len(values):
            return f"it must have as many values as columns, {len(columns):,}, not {len(values):,}"
        if not bool(((columns >= 0) & (columns < self.width)).all()):
            return f"its columns must be from 0 to {self.width - 1:,}"
        if self.height is not None and len(offsets) - 1 != self.height:
            return f"it must have {self.height:,} rows, not {len(offsets) - 1:,}"
        if not bool(((values >= 0) & (values < torch.inf)).all()):
            return "its values must be finite and not negative"
        return None
