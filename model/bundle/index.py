"""Nearest-item search."""

import math
from collections.abc import Collection
from pathlib import Path
from typing import Literal, final

import faiss
import numpy as np
from numpy.typing import NDArray

from model.bundle.faiss_file import open_index, read_vectors
from model.bundle.inverted_file import InvertedFile
from model.catalog import PADDING_ROW

Similarity = Literal["dot", "l2"]

_FEW = 2_000
"""Up to this many allowed rows, scoring each is faster than a search that tests every row."""

_MORE = 1.25
"""Times as many candidates as otherwise, of which a filter may leave out the difference."""
_ASKED = 1_000
"""Items that are asked whether a filter leaves out little."""

_RANKED = 16_384
"""Rows that are scored at a time, so that their vectors take some megabytes at most."""

_OF_A_LIST = 0.15
"""Time to read the code of an item in a list, over that to score an item anywhere in memory."""

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
    for better items under either similarity: a distance is negated. With an inverted file a search
    scores the candidates that it finds; without one it scores all items.
    """

    def __init__(
        self,
        index: faiss.IndexFlat,
        inverted: InvertedFile | None = None,
        *,
        content: NDArray[np.uint8] | None = None,
    ) -> None:
        self._index = index
        self._content = content  # where FAISS reads the vectors
        self._vectors = read_vectors(index)
        self._sign = 1.0 if index.metric_type == faiss.METRIC_INNER_PRODUCT else -1.0
        self.inverted = inverted

    @classmethod
    def build(cls, vectors: NDArray[np.float32], similarity: Similarity) -> "ItemIndex":
        """Index `vectors`, one per catalog row from 1 on, without an inverted file."""
        index = faiss.IndexFlat(vectors.shape[1], _METRIC[similarity])
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        return cls(index)

    @classmethod
    def load(
        cls, content: NDArray[np.uint8], inverted: NDArray[np.uint8] | None = None
    ) -> "ItemIndex":
        """Open the content of files written by `save`, which must not change while it is used.

        Raises:
            BundleError: if FAISS cannot read it.
        """
        return cls(
            open_index(content, faiss.IndexFlat),
            None if inverted is None else InvertedFile.load(inverted),
            content=content,
        )

    def save(self, file: Path) -> None:
        """Write the vectors; `inverted` has a file of its own."""
        faiss.write_index(self._index, str(file))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def width(self) -> int:
        """Width of the vectors."""
        return int(self._index.d)

    @property
    def similarity(self) -> Similarity:
        """What a score is: a dot product, or a negated squared distance."""
        return "dot" if self._sign > 0 else "l2"

    def with_inverted_file(self, users: NDArray[np.float32]) -> "ItemIndex":
        """Return an index of the same vectors with a new inverted file.

        Args:
            users: a sample of user vectors, as the index is searched with.
        """
        is_distance = self._sign < 0
        inverted = InvertedFile.build(self._vectors, users, is_distance=is_distance)
        return ItemIndex(self._index, inverted, content=self._content)

    def with_probes(self, probes: int) -> "ItemIndex":
        """Return an index whose searches read so many lists of the inverted file."""
        assert self.inverted is not None
        return ItemIndex(self._index, self.inverted.with_probes(probes), content=self._content)

    def finds_candidates(self, n: int) -> bool:
        """Return whether a search for the `n` best items scores candidates instead of all items."""
        return self.inverted is not None and _widen(n) < self.inverted.read_per_search

    def replace_vectors(self, vectors: NDArray[np.float32]) -> "ItemIndex":
        """Return an index of other vectors of the same items, with the same lists."""
        index = ItemIndex.build(vectors, self.similarity)
        if self.inverted is not None:
            index.inverted = self.inverted.encode(
                vectors, self._vectors, is_distance=self._sign < 0
            )
        return index

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of some catalog rows."""
        return self._vectors[rows - 1]

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
            of_most = self._search_before_filter(user, n, excluded, allowed)
            if of_most is not None:
                return of_most
            allowed = allowed.copy()
            allowed[excluded] = False
            allowed[PADDING_ROW] = False
            count = np.count_nonzero(allowed)
            if count <= max(n, self._few):
                return self._rank(user, np.flatnonzero(allowed), n)
            if self.inverted is not None:
                candidates = self.inverted.search(user, _widen(n), allowed)
                if len(candidates) >= n:
                    return self._rank(user, candidates, n)
        # Search for the excluded rows too and drop them here: FAISS ignores a selector silently on
        # some kinds of index, and the extra neighbours cost less than filtering inside.
        neighbours = min(n + (len(excluded) if allowed is None else 0), len(self))
        if neighbours == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if self.inverted is not None and self.finds_candidates(neighbours):
            found = self.inverted.search(user, _widen(neighbours))
            candidates = found[~are_among(found, excluded)]
            # The lists that were read may hold fewer than usual: then all items are scored.
            if len(candidates) >= min(n, len(self) - len(excluded)):
                return self._rank(user, candidates, n)
        scores, indices = self._search_index(user, neighbours, allowed)
        rows = indices[0] + 1
        keep = (rows > 0) & ~are_among(rows, excluded)
        if allowed is not None:
            keep &= allowed[np.maximum(rows, 0)]
        return rows[keep][:n], (scores[0] * self._sign)[keep][:n]

    def _search_before_filter(
        self,
        user: NDArray[np.float32],
        n: int,
        excluded: NDArray[np.int64],
        allowed: NDArray[np.bool_],
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]] | None:
        """Search among all items and leave out what is not allowed, where that is little.

        Most filters leave out a few deleted items; to ask for each item whether it is allowed takes
        several times as long as the search. None if too few are left.
        """
        candidates = round(_MORE * _widen(n))
        if self.inverted is None or candidates >= self.inverted.read_per_search:
            return None
        if np.mean(allowed[1 :: max(1, len(self) // _ASKED)]) * _MORE < 1:
            return None
        found = self.inverted.search(user, candidates)
        left = found[allowed[found] & ~are_among(found, excluded)]
        return self._rank(user, left, n) if len(left) >= _widen(n) else None

    @property
    def _few(self) -> int:
        """Up to this many allowed rows, scoring each is faster than finding candidates.

        Among `m` of `len(self)` items, candidates are found in `read_per_search * len(self) / m`
        codes; that takes as long as to score `m` items where both products are equal.
        """
        if self.inverted is None:
            return _FEW
        read = self.inverted.read_per_search
        return max(_FEW, read, math.isqrt(round(_OF_A_LIST * read * len(self))))

    def _rank(
        self, user: NDArray[np.float32], rows: NDArray[np.int64], n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the `n` best of some rows; of equal ones, the first of the catalog."""
        best = [
            self._keep_best(user, rows[first : first + _RANKED], n)
            for first in range(0, max(len(rows), 1), _RANKED)
        ]
        rows, scores = (np.concatenate(column) for column in zip(*best, strict=True))
        order = np.lexsort((rows, -scores))[:n]
        return rows[order], scores[order]

    def _keep_best(
        self, user: NDArray[np.float32], rows: NDArray[np.int64], n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of some rows that no `n` others are better than, in any order."""
        scores = self.score(user, rows)
        if not 0 < n < len(rows):
            return rows, scores
        # Sorting all of them would take as long as their scores. NaN is the worst, and kept.
        most = np.partition(-scores, n - 1)[n - 1]
        kept = np.flatnonzero(~(-scores > most))
        return rows[kept], scores[kept]

    def _search_index(
        self, user: NDArray[np.float32], n: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        scores: NDArray[np.float32]
        numbers: NDArray[np.int64]
        if allowed is None:
            scores, numbers = self._index.search(user[None], n)
            return scores, numbers
        # FAISS keeps pointers to the bits and to the selector: both must outlive the search.
        bits = np.packbits(allowed[1:], bitorder="little")
        selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        parameters = faiss.SearchParameters()
        parameters.sel = selector
        scores, numbers = self._index.search(user[None], n, params=parameters)
        return scores, numbers


def _widen(n: int) -> int:
    """Return how many candidates are scored for `n` results, as codes rank only roughly."""
    return 2 * n + 100
