"""An inverted file over item vectors: what finds candidates where a catalog is too large to score.

Items are stored in lists around centroids, with eight bits per coordinate, and a search reads the
lists whose centroids are nearest to the user vector (IVF with scalar quantisation; Jégou et al.
2011, "Product quantization for nearest neighbor search"). What it finds are candidates, whose exact
scores `ItemIndex` computes.

The lists hold vectors between which a distance means a difference of scores
(`model.bundle.whitening`).
"""

import math
from copy import copy
from pathlib import Path
from typing import NamedTuple, final

import faiss
import numpy as np
from numpy.typing import NDArray

from model.bundle.faiss_file import open_index, read_vectors
from model.bundle.whitening import ItemTransform, compute_whitening
from model.errors import BundleError

_SAMPLED = 64
"""Vectors per list that centroids are computed from."""
_PASSES = 10
"""Passes of k-means over them."""
_BATCH = 65_536
"""Vectors that are encoded at a time."""
_MOVED = 1.1
"""Growth of the squared distance from its centroid from which on an item is put elsewhere."""


@final
class InvertedFile:
    """Finds rows that are likely to score best for a user vector, without scoring all of them.

    Holds one code per catalog row from 1 on. Safe to share between threads: nothing changes after
    construction.

    Attributes:
        probes: the lists that a search reads.
    """

    def __init__(
        self,
        index: faiss.IndexPreTransform,
        *,
        probes: int | None = None,
        content: NDArray[np.uint8] | None = None,
        placement: "_Placement | None" = None,
    ) -> None:
        self._index = index
        self._placement = placement
        self._content = content  # where FAISS reads the codes
        transform = faiss.downcast_VectorTransform(index.chain.at(0))
        matrix = faiss.vector_to_array(transform.A).reshape(transform.d_out, transform.d_in)
        self._matrix: NDArray[np.float32] = matrix
        self._lists = faiss.downcast_index(index.index)
        self.probes = int(self._lists.nprobe) if probes is None else probes
        self._centroids: NDArray[np.float32] = read_vectors(
            faiss.downcast_index(self._lists.quantizer)
        )
        self._norms = (self._centroids**2).sum(-1)
        self._members = [
            _read_ids(self._lists.invlists, number) for number in range(self._lists.nlist)
        ]

    @classmethod
    def build(
        cls,
        vectors: NDArray[np.float32],
        users: NDArray[np.float32],
        *,
        is_distance: bool,
        lists: int | None = None,
    ) -> "InvertedFile":
        """Cluster and encode vectors, one per catalog row from 1 on.

        Args:
            users: a sample of user vectors, as the index is searched with.
            is_distance: whether a score is a negated squared distance instead of a dot product.
            lists: by default four per root of the number of items.
        """
        lists = min(lists or round(4 * math.sqrt(len(vectors))), len(vectors))
        matrix = compute_whitening(users, is_distance=is_distance)
        items = ItemTransform(matrix, vectors, is_distance=is_distance)
        drawn = np.random.default_rng(0).permutation(len(vectors))[: _SAMPLED * lists]
        sample = items.apply(vectors[np.sort(drawn)])
        quantiser = faiss.IndexFlatL2(len(matrix))
        clustering = faiss.Clustering(len(matrix), lists)
        clustering.niter = _PASSES
        clustering.min_points_per_centroid = 1
        clustering.max_points_per_centroid = _SAMPLED
        clustering.train(sample, quantiser)
        index = _build_lists(quantiser, lists)
        index.train(sample)
        for first in range(0, len(vectors), _BATCH):
            index.add(items.apply(vectors[first : first + _BATCH]))
        return cls(_join(matrix, index))

    @classmethod
    def load(cls, content: NDArray[np.uint8]) -> "InvertedFile":
        """Open the content of a file written by `save`, which must not change while it is used.

        Raises:
            BundleError: if FAISS cannot read it, or it holds something else.
        """
        index = open_index(content, faiss.IndexPreTransform)
        if not _is_complete(index):
            raise BundleError(
                "an inverted file must hold every item once, in lists around centroids, but this "
                "one does not; publish again"
            )
        return cls(index, content=content)

    def save(self, file: Path) -> None:
        """Write the inverted file."""
        self._lists.nprobe = self.probes
        faiss.write_index(self._index, str(file))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def width(self) -> int:
        """Width of the user vectors that it is searched with."""
        return int(self._index.d)

    @property
    def lists(self) -> int:
        """How many lists there are."""
        return int(self._lists.nlist)

    @property
    def read_per_search(self) -> int:
        """The number of items that a search reads, on average."""
        return math.ceil(len(self) * self.probes / self.lists)

    def with_probes(self, probes: int) -> "InvertedFile":
        """Return an inverted file with the same codes, of which a search reads so many lists."""
        other = copy(self)
        other.probes = probes
        return other

    def encode(
        self, vectors: NDArray[np.float32], former: NDArray[np.float32], *, is_distance: bool
    ) -> "InvertedFile":
        """Encode other vectors of the same items, in the same lists.

        Items that have moved away from the centroid of their list, such as those that are popular
        now, go into the list that is nearest to them: computing lists anew takes most of the time
        of `build`, and finding the nearest list for all items much of the rest.

        Args:
            former: the vectors that the codes are of.
        """
        list_of = np.empty(len(self), dtype=np.int64)
        for number, members in enumerate(self._members):
            list_of[members] = number
        placement = self._placement or self._measure(former, list_of, is_distance=is_distance)
        items, distances = placement.items, placement.distances.copy()
        if items.exceeds(vectors):
            items = ItemTransform(self._matrix, vectors, is_distance=is_distance)
            distances[:] = 0  # every item is somewhere else
        quantiser = faiss.IndexFlatL2(self._lists.d)
        quantiser.add(self._centroids)
        index = _build_lists(quantiser, self.lists)
        # The ranges of the coordinates, which eight bits divide.
        faiss.copy_array_to_vector(faiss.vector_to_array(self._lists.sq.trained), index.sq.trained)
        index.is_trained = True
        for first in range(0, len(vectors), _BATCH):
            batch = items.apply(vectors[first : first + _BATCH])
            numbers = np.arange(first, first + len(batch))
            lists, placed = list_of[numbers], distances[first : first + len(batch)]
            moved = _square_distances(batch, self._centroids[lists]) > _MOVED * placed
            if moved.any():
                nearest, found = quantiser.search(batch[moved], 1)
                lists[moved], placed[moved] = found[:, 0], nearest[:, 0]
            index.add_core(
                len(batch), faiss.swig_ptr(batch), faiss.swig_ptr(numbers), faiss.swig_ptr(lists)
            )
        return InvertedFile(
            _join(self._matrix, index),
            probes=self.probes,
            placement=_Placement(items, distances),
        )

    def _measure(
        self, vectors: NDArray[np.float32], list_of: NDArray[np.int64], *, is_distance: bool
    ) -> "_Placement":
        """Measure how far items are from the centroids of their lists."""
        items = ItemTransform(self._matrix, vectors, is_distance=is_distance)
        distances = [
            _square_distances(
                items.apply(vectors[first : first + _BATCH]),
                self._centroids[list_of[first : first + _BATCH]],
            )
            for first in range(0, len(vectors), _BATCH)
        ]
        return _Placement(items, np.concatenate(distances))

    def search(
        self, user: NDArray[np.float32], n: int, allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Find up to `n` rows that are likely to score best.

        A search among some items reads the nearest lists that have any of them, until it has seen
        as many of them as it else sees items: a filter that few items pass makes it read more
        lists instead of finding less.

        Args:
            allowed: per catalog row, padding included, whether it may be returned; None: any.
        """
        query = self._matrix @ user
        if allowed is None:
            parameters = faiss.SearchParametersIVF(nprobe=self.probes)
            return _to_rows(self._lists.search(query[None], n, params=parameters)[1][0])
        probed = self._choose_lists(query, allowed)
        # FAISS keeps pointers to the bits and to the selector: both must outlive the search.
        bits = np.packbits(allowed[1:], bitorder="little")
        selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        distances, numbers = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.int64)
        # The wrapper of FAISS for NumPy passes no selector.
        self._lists.search_preassigned_c(
            1,
            faiss.swig_ptr(query),
            n,
            faiss.swig_ptr(probed),
            faiss.swig_ptr(np.zeros(len(probed), dtype=np.float32)),
            faiss.swig_ptr(distances),
            faiss.swig_ptr(numbers),
            False,
            faiss.SearchParametersIVF(nprobe=len(probed), sel=selector),
        )
        return _to_rows(numbers)

    def _choose_lists(
        self, query: NDArray[np.float32], allowed: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Return the nearest lists that together have enough allowed items."""
        nearest = np.argsort(self._norms - 2 * (self._centroids @ query))
        first, width = 0, self.probes
        missing: int = self.read_per_search
        while first < len(nearest) and missing > 0:
            members = [self._members[number] for number in nearest[first : first + width]]
            missing -= int(np.count_nonzero(allowed[1:][np.concatenate(members)]))
            first += width
            # As many again, as the share of the allowed items among them is not known.
            width = first
        return nearest[:first]


class _Placement(NamedTuple):
    """How items were put into lists.

    Attributes:
        items: turned their vectors into those that the lists hold.
        distances: squared, of each item from the centroid of its list when it was put there.
    """

    items: ItemTransform
    distances: NDArray[np.float32]


def _square_distances(
    vectors: NDArray[np.float32], others: NDArray[np.float32]
) -> NDArray[np.float32]:
    squared: NDArray[np.float32] = ((vectors - others) ** 2).sum(-1)
    return squared


def _is_complete(index: faiss.IndexPreTransform) -> bool:
    """Return whether an index that was read is such as `save` writes."""
    lists = faiss.downcast_index(index.index)
    if (
        index.chain.size() != 1
        or not isinstance(faiss.downcast_VectorTransform(index.chain.at(0)), faiss.LinearTransform)
        or not isinstance(lists, faiss.IndexIVFScalarQuantizer)
        or not isinstance(faiss.downcast_index(lists.quantizer), faiss.IndexFlat)
    ):
        return False
    ids = [_read_ids(lists.invlists, number) for number in range(lists.nlist)]
    return np.array_equal(np.sort(np.concatenate(ids)), np.arange(lists.ntotal))


def _build_lists(quantiser: faiss.IndexFlatL2, lists: int) -> faiss.IndexIVFScalarQuantizer:
    return faiss.IndexIVFScalarQuantizer(
        quantiser, quantiser.d, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_L2, True
    )


def _join(
    matrix: NDArray[np.float32], lists: faiss.IndexIVFScalarQuantizer
) -> faiss.IndexPreTransform:
    """Put the transformation of user vectors before the lists, so that one file holds both."""
    padded, width = matrix.shape
    transform = faiss.LinearTransform(width, padded, False)
    faiss.copy_array_to_vector(matrix.ravel(), transform.A)
    transform.is_trained = True
    return faiss.IndexPreTransform(transform, lists)


def _read_ids(lists: faiss.InvertedLists, number: int) -> NDArray[np.int64]:
    size = lists.list_size(number)
    if not size:
        return np.empty(0, dtype=np.int64)
    ids: NDArray[np.int64] = faiss.rev_swig_ptr(lists.get_ids(number), size)
    return ids


def _to_rows(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert the numbers of FAISS, where -1 is none, to catalog rows."""
    return numbers[numbers >= 0] + 1
