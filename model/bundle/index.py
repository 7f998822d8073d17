"""Nearest-item search; the only module that uses FAISS."""

from collections.abc import Collection
from pathlib import Path
from typing import Literal, final

import faiss
import numpy as np
from numpy.typing import NDArray

from model.errors import BundleError

Similarity = Literal["dot", "l2"]

_FEW = 2_000
"""Up to this many allowed rows, scoring each is faster than a search that tests every row."""

_METRIC = {"dot": faiss.METRIC_INNER_PRODUCT, "l2": faiss.METRIC_L2}


def are_among(rows: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for each of some catalog rows, whether it is among others."""
    if not len(others):
        return np.zeros(len(rows), dtype=np.bool_)
    # For a few hundred rows a third of the time of `isin`, and a fifth of comparing them all.
    ordered = np.sort(others)
    among: NDArray[np.bool_] = ordered[np.searchsorted(ordered[:-1], rows)] == rows
    return among


@final
class ItemIndex:
    """Item vectors, searchable by their similarity with a user vector.

    Holds one vector per catalog row from 1 on; row 0, padding, is not in it. Scores are larger
    for better items under either similarity: a distance is negated.
    """

    def __init__(self, index: faiss.Index) -> None:
        self._index = index
        self._sign = 1.0 if index.metric_type == faiss.METRIC_INNER_PRODUCT else -1.0

    @classmethod
    def build(cls, vectors: NDArray[np.float32], similarity: Similarity) -> "ItemIndex":
        """Index `vectors`, one per catalog row from 1 on."""
        index = faiss.IndexFlat(vectors.shape[1], _METRIC[similarity])
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        return cls(index)

    @classmethod
    def load(cls, content: bytes) -> "ItemIndex":
        """Read an index from a file written by `save`.

        Raises:
            BundleError: if FAISS cannot read it.
        """
        try:
            return cls(faiss.deserialize_index(np.frombuffer(content, dtype=np.uint8)))
        except RuntimeError as error:
            raise BundleError(
                "an index must be readable by FAISS, but items.faiss is not; publish again"
            ) from error

    def save(self, file: Path) -> None:
        """Write the index."""
        faiss.write_index(self._index, str(file))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def width(self) -> int:
        """Width of the vectors."""
        return int(self._index.d)

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of some catalog rows."""
        vectors: NDArray[np.float32] = self._index.reconstruct_batch(rows - 1)
        return vectors

    def score(self, user: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the scores of some catalog rows, equal to those of `search`."""
        vectors = self.vectors(rows)
        scores: NDArray[np.float32] = (
            vectors @ user if self._sign > 0 else -((vectors - user) ** 2).sum(-1)
        )
        return scores

    def search(
        self,
        user: NDArray[np.float32],
        n: int,
        *,
        exclude: Collection[int] | NDArray[np.int64] = (),
        allowed: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Find the `n` best rows outside `exclude`, best first, with their scores.

        Returns fewer only where no more are left.

        Args:
            allowed: per catalog row, padding included, whether it may be returned; None: any.
        """
        excluded = (
            exclude
            if isinstance(exclude, np.ndarray)
            else np.fromiter(exclude, dtype=np.int64, count=len(exclude))
        )
        if allowed is not None:
            allowed = allowed.copy()
            allowed[excluded] = False
            candidates = np.flatnonzero(allowed)
            candidates = candidates[candidates > 0]
            if len(candidates) <= max(n, _FEW):
                scores = self.score(user, candidates)
                best = np.lexsort((candidates, -scores))[:n]
                return candidates[best], scores[best]
        # Search for the excluded rows too and drop them here: FAISS ignores a selector silently on
        # some kinds of index, and the extra neighbours cost less than filtering inside.
        neighbours = min(n + (len(excluded) if allowed is None else 0), len(self))
        if neighbours == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        scores, indices = self._search_index(user, neighbours, allowed)
        rows = indices[0] + 1
        keep = (rows > 0) & ~are_among(rows, excluded)
        if allowed is not None:
            keep &= allowed[np.maximum(rows, 0)]
        return rows[keep][:n], (scores[0] * self._sign)[keep][:n]

    def _search_index(
        self, user: NDArray[np.float32], n: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        if allowed is None:
            return self._index.search(user[None], n)
        # FAISS keeps pointers to the bits and to the selector: both must outlive the search.
        bits = np.packbits(allowed[1:], bitorder="little")
        selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        parameters = faiss.SearchParameters()
        parameters.sel = selector
        return self._index.search(user[None], n, params=parameters)
