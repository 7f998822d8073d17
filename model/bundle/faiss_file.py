"""FAISS: files that are read in place, and its threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import faiss
import numpy as np
from numpy.typing import NDArray

from model.errors import BundleError

_Kind = TypeVar("_Kind")


def open_index(content: NDArray[np.uint8], kind: type[_Kind]) -> _Kind:
    """Open an index in the content of its file, which must stay in memory as long as the index.

    Raises:
        BundleError: if FAISS cannot read it, or it is of another kind.
    """
    reader = faiss.ZeroCopyIOReader(faiss.swig_ptr(content), content.size)
    try:
        index = faiss.read_index(reader)
    except RuntimeError as error:
        raise BundleError(
            f"an index must be readable by FAISS, but this is not ({error}); publish again"
        ) from error
    if not isinstance(index, kind):
        raise BundleError(
            f"an index must be of the kind {kind.__name__}, but this is of {type(index).__name__}; "
            "publish again"
        )
    return index


def read_vectors(index: faiss.IndexFlat) -> NDArray[np.float32]:
    """Return the vectors of a flat index, without a copy."""
    vectors: NDArray[np.float32] = faiss.rev_swig_ptr(
        index.get_xb(), index.ntotal * index.d
    ).reshape(index.ntotal, index.d)
    return vectors


@contextmanager
def limit_search_threads() -> Iterator[None]:
    """Limit FAISS to one thread, as in the service."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
