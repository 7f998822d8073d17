"""A sparse matrix of counts in the buffers of a module, whose size the data decide."""

from typing import Any, TypeAlias, final

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor, nn

SparseRows: TypeAlias = Any
"""A `scipy.sparse.csr_array`; SciPy is imported where one is built, as a start needs none."""

_BUFFERS = ("offsets", "columns", "values")


def build_sparse_rows(entries: tuple[Any, ...], shape: tuple[int, int]) -> SparseRows:
    """Build a matrix of compressed sparse rows from what the constructor of SciPy reads.

    Args:
        entries: `(values, (rows, columns))`, which adds up entries of one place; or
            `(values, columns, offsets)`.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - a start needs no SciPy

    return csr_array(entries, shape=shape)


@final
class SparseMatrix(nn.Module):
    """Compressed sparse rows, without a row until `store`.

    A state that is loaded decides the number of rows and entries. Products are those of SciPy, on
    the CPU.

    Attributes:
        width: number of columns.
        offsets: row `r` owns the entries `offsets[r]` up to `offsets[r + 1]`.
        columns: of the entries, ascending within a row.
        values: of the entries; doubles, or integers that are counts.
    """

    offsets: Tensor
    columns: Tensor
    values: Tensor

    def __init__(self, *, width: int, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.width = width
        self._derived: dict[str, Any] = {}
        self.register_buffer("offsets", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("columns", torch.zeros(0, dtype=torch.int32))
        self.register_buffer("values", torch.zeros(0, dtype=dtype))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.offsets) - 1

    def store(self, matrix: SparseRows) -> None:
        """Replace the matrix."""
        matrix.sort_indices()
        self._derived = {}
        for name, array in zip(_BUFFERS, (matrix.indptr, matrix.indices, matrix.data), strict=True):
            buffer = getattr(self, name)
            setattr(self, name, torch.from_numpy(array).to(buffer.device, buffer.dtype))

    @property
    def matrix(self) -> SparseRows:
        """The matrix, on the CPU."""
        if "matrix" not in self._derived:
            offsets, columns, values = (getattr(self, name).cpu().numpy() for name in _BUFFERS)
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

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        self._derived = {}
        names = [prefix + name for name in _BUFFERS]
        if all(name in state_dict for name in names):
            offsets, columns, values = (state_dict[name] for name in names)
            if not _is_sparse_matrix(offsets, columns, values, self.width):
                error_msgs.append(
                    f"{prefix[:-1]} must be a sparse matrix of {self.width} columns, but its "
                    "offsets, columns and values do not fit each other"
                )
                return
            self.offsets = self.offsets.new_empty(offsets.shape)
            self.columns = self.columns.new_empty(columns.shape)
            self.values = self.values.new_empty(values.shape)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


def _is_sparse_matrix(offsets: Tensor, columns: Tensor, values: Tensor, width: int) -> bool:
    """Check what a product would read beyond the ends of the arrays otherwise."""
    if not (offsets.dim() == columns.dim() == values.dim() == 1 and len(offsets)):
        return False
    if not (len(columns) == len(values) == offsets[-1] and offsets[0] == 0):
        return False
    in_order = bool((offsets.diff() >= 0).all())
    return in_order and bool(((columns >= 0) & (columns < width)).all())
