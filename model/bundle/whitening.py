"""Vectors between which a distance means a difference of scores.

A dot product is no distance: the items of largest norm are far from most user vectors, and the
scales of the coordinates differ by orders of magnitude (similarities beside log counts). An index
that compares distances finds little of what it should.

So both sides are rotated and scaled such that dot products stay and the user vectors of a sample
have the same second moment in every direction: a distance between items is then the mean difference
of their scores. One more coordinate makes all norms of items equal, so that the nearest item is
that of the largest dot product (Bachrach et al. 2014, "Speeding up the Xbox recommender system
using a Euclidean transformation for inner-product spaces").
"""

from typing import final

import numpy as np
from numpy.typing import NDArray

_LEAST_MOMENT = 1e-4
"""Share of the largest second moment of the user vectors that every direction has at least."""
_LANES = 16
"""The width is a multiple of this, or FAISS decodes one coordinate at a time."""
_BATCH = 65_536
"""Vectors whose norms are computed at a time."""


def compute_whitening(
    users: NDArray[np.float32], *, is_distance: bool = False
) -> NDArray[np.float32]:
    """Compute the matrix that user vectors are multiplied with, wider than they are.

    Args:
        users: a sample of user vectors, one per row.
        is_distance: whether a score is a negated squared distance: then only the width changes.
    """
    width = users.shape[1]
    matrix = np.zeros((-(-(width + 1) // _LANES) * _LANES, width), dtype=np.float32)
    matrix[:width] = np.eye(width) if is_distance else _whiten(users)
    return matrix


def _whiten(users: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute the symmetric matrix that gives user vectors the second moment of the identity."""
    exact = users.astype(np.float64)
    moments, directions = np.linalg.eigh(exact.T @ exact / len(exact))
    moments = np.maximum(moments, max(_LEAST_MOMENT * moments[-1], np.finfo(np.float32).tiny))
    whitened: NDArray[np.float64] = (directions / np.sqrt(moments)) @ directions.T
    return whitened


@final
class ItemTransform:
    """Transforms item vectors, so that the nearest to a transformed user vector scores best."""

    def __init__(
        self,
        matrix: NDArray[np.float32],
        vectors: NDArray[np.float32],
        *,
        is_distance: bool = False,
    ) -> None:
        """Compute the largest norm of the vectors, which all items get.

        Args:
            matrix: of `compute_whitening`.
            vectors: all item vectors, one per row.
        """
        width = matrix.shape[1]
        self._shape = matrix.shape
        self._inverse = np.linalg.inv(matrix[:width].astype(np.float64)).astype(np.float32)
        self._is_distance = is_distance
        self._largest = 0.0 if is_distance else self._find_largest(vectors)

    def exceeds(self, vectors: NDArray[np.float32]) -> bool:
        """Return whether a norm of some item vectors is larger than the largest one."""
        return not self._is_distance and self._find_largest(vectors) > self._largest

    def _find_largest(self, vectors: NDArray[np.float32]) -> float:
        """Find the largest squared norm of transformed vectors."""
        return max(
            float(((vectors[first : first + _BATCH] @ self._inverse) ** 2).sum(-1).max())
            for first in range(0, len(vectors), _BATCH)
        )

    def apply(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Transform some of the item vectors."""
        padded, width = self._shape
        transformed = np.zeros((len(vectors), padded), dtype=np.float32)
        transformed[:, :width] = vectors @ self._inverse
        if not self._is_distance:
            missing = self._largest - (transformed[:, :width] ** 2).sum(-1)
            transformed[:, width] = np.sqrt(np.maximum(missing, 0))
        return transformed
