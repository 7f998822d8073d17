"""Chunk sizes that bound the memory of a loss over many items."""

from collections.abc import Iterator

CHUNK_ELEMENTS = 2_000_000
"""Elements of the largest intermediate tensor: logits, or candidate vectors."""


def split_into_chunks(count: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `size` that cover `count` rows."""
    for begin in range(0, count, size):
        yield slice(begin, min(begin + size, count))
